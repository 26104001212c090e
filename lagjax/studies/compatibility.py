"""One graph, load and policy beside its mean field: what a row of the results is made of."""

from __future__ import annotations

import json
import math
import time as clock
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from lagjax.compatibility import mean_field
from lagjax.compatibility.certificate import Certificate, certify
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import Graph, Margin, check_load
from lagjax.compatibility.model import LEVELS
from lagjax.compatibility.policies import ALL, Policy
from lagjax.compatibility.queues import STATIONARY
from lagjax.compatibility.run import CHUNK, Window, bundle_means, follow, most_time, trace
from lagjax.compatibility.starts import law_is_known
from lagjax.engine.checks import whole_number
from lagjax.engine.devices import device_name
from lagjax.engine.loop import Watched
from lagjax.errors import InputError
from lagjax.stats import (
    FALSE_ALARM,
    RELAXATIONS,
    RUN_ON,
    Estimate,
    Left,
    estimate,
    left_of_start,
    pooled_relaxation,
    told,
)
from lagjax.studies.dataset import provenance

TIME, WARMUP = 100, 50  # least mean service times counted and dropped where the caller names none
MOST_TIMES = 64  # times as long is simulated, at most, where the caller names no time and the start still shows
MOST_AT_FIRST = (
    20_000  # mean service times that are dropped, and counted, at most, before it is asked whether that was enough
)
MOST_EVENTS = 2**26  # of a replica, the same
TIMES_PER_UNIT = 4  # of a trajectory
UNEVEN = (0.5,) * 4  # where trajectories start: half of the servers, side by side, hold 4 tasks each
SHOWN = 1e-6  # levels below this, measured and at the fixed point, are left out


class Case(NamedTuple):
    """What was measured; G bundles.

    Attributes:
      graph, policy, load: what was simulated.
      occupancy: (LEVELS, G) time averages of q_1, q_2, ... of each bundle.
      queue_length: (G,) tasks per server.
      drift: queue_length in the second half of the time less that in the first, with its interval.
      stationary: whether nothing is left of the start: 1 yes, 0 no, NaN not known (see `lagjax.stats.start`).
      fixed_point: (LEVELS,) q*.
      fixed_queue_length: tasks per server at the fixed point.
      sup_distance: (G,) largest distance of an occupancy from the ODE's over levels and times, from UNEVEN; None if not asked.
      margin, certificate: of the graph.
      time, warmup: mean service times counted and dropped.
      events: of all replicas.
      seconds: wall time of the stationary simulation.
    """

    graph: Graph
    policy: Policy
    load: float
    occupancy: np.ndarray
    queue_length: np.ndarray
    drift: Estimate
    stationary: float
    fixed_point: np.ndarray
    fixed_queue_length: float
    sup_distance: np.ndarray | None
    margin: Margin
    certificate: Certificate
    time: int
    warmup: int
    events: int
    seconds: float


def measure(
    graph: Graph,
    policy: Policy,
    load: float,
    *,
    time: int | None = None,
    warmup: int | None = None,
    replicas: int = 1024,
    seed: int = 0,
    horizon: float = 0,
    certificate: Certificate | None = None,
    epsilon: float = 0.2,
    allow_overloaded: bool = False,
    progress: Callable[[int], object] | None = None,
) -> Case:
    """Simulates the stationary state and compares it with the mean field.

    Where every task looks at one server the start is the exact stationary law, else the fixed point.

    Args:
      time, warmup: mean service times counted (at least 2) and dropped; by default 100 and 50, and as many as the relaxation
        time near saturation asks for. Without `time`, while the start still shows what was counted is dropped too and
        twice as much counted, up to MOST_TIMES times those in all, or four times the first run.
      replicas: a multiple of 64; intervals come from groups of 64, so give 128 or more.
      horizon: mean service times over which trajectories from UNEVEN are compared with the ODE; 0 for not.
      certificate: of the graph, if it is at hand.
      epsilon: of the certificate otherwise.
      progress: called with the events done in each chunk.

    Raises:
      InputError: an argument outside its range, a server overloaded under random routing, or a queue that grows without end.
    """
    check_times(time, warmup, horizon)
    margin = check_load(graph, load, allow_overloaded and policy.choices > 1)
    fixed = mean_field.fixed_point(policy, load, LEVELS)
    known = certify(graph, epsilon) if certificate is None else certificate
    common: dict[str, Any] = {"replicas": replicas, "seed": seed, "allow_overloaded": allow_overloaded}
    begun = clock.perf_counter()
    run = _stationary(graph, policy, load, time, warmup, replicas, seed, progress)
    seconds = clock.perf_counter() - begun

    def per_server(sums):
        return bundle_means(sum(sums) / (graph.num_servers * run.time))

    distance = None
    if horizon > 0 and policy.choices < ALL:
        times = np.arange(1, max(1, round(horizon * TIMES_PER_UNIT)) + 1) / TIMES_PER_UNIT
        path = mean_field.trajectory(policy, load, times, UNEVEN)
        path = np.pad(path, ((0, 0), (0, max(0, LEVELS - path.shape[1]))))[:, :LEVELS]
        seen = trace(graph, policy, load, times=times, start=UNEVEN, together=True, **common)
        distance = bundle_means(np.abs(seen - path[:, :, None]).max(axis=(0, 1)))
    return Case(
        graph=graph, policy=policy, load=load, occupancy=per_server([h.servers for h in run.halves]),
        queue_length=per_server([h.tasks for h in run.halves]), drift=run.left.drift, stationary=run.stationary,
        fixed_point=fixed, fixed_queue_length=mean_field.mean_queue_length(policy, load), sup_distance=distance, margin=margin,
        certificate=known, time=run.time, warmup=run.warmup, events=sum(h.events for h in run.halves) * replicas, seconds=seconds,
    )  # fmt: skip


def check_times(time: int | None, warmup: int | None, horizon: float) -> None:
    """Raises InputError unless `measure` can use them."""
    whole_number("time", TIME if time is None else time, 2)
    whole_number("warmup", WARMUP if warmup is None else warmup, 0)
    if not 0 <= horizon < 1e6:
        raise InputError(f"horizon is {horizon:g}; give mean service times, below 1e6, 0 for no trajectories")


class _Run(NamedTuple):
    """Two halves that were counted, and what they say of the start."""

    halves: tuple[Window, Window]
    left: Left
    stationary: float
    time: int
    warmup: int


def relaxation(graph: Graph, load: float) -> float:
    """Returns the mean service times in which the slowest pool of servers forgets its start, at best (`pooled_relaxation`)."""
    return max(pooled_relaxation(n * rho, n) for n, rho in zip(*graph.pools(load), strict=True))


def _stationary(graph, policy, load, time, warmup, replicas, seed, progress):
    """Counts `time`; without one as long as the start shows, up to a bound."""
    exact, longest = law_is_known(policy, graph, load), most_time(graph, load)
    needed = 0.0 if exact else RELAXATIONS * relaxation(graph, load)
    at_first = math.ceil(min(needed, MOST_AT_FIRST, longest * MOST_EVENTS / 2**32))
    dropped = max(WARMUP, at_first) if warmup is None else warmup
    counted = max(TIME, at_first) if time is None else time
    if counted + dropped > longest:
        raise InputError(
            f"{counted + dropped} mean service times are more than 2^32 events a replica; use more replicas instead"
        )
    start = STATIONARY if exact else mean_field.fixed_point(policy, load, mean_field.levels_of(policy, load))
    go_on = follow(graph, policy, load, replicas, seed, start, watched=Watched(CHUNK, progress))
    go_on(dropped)
    longest = min(longest, max(MOST_TIMES * (TIME + WARMUP), 4 * (counted + dropped)))
    may_run_on = time is None and needed <= longest
    while True:
        halves = go_on(counted // 2), go_on(counted - counted // 2)
        means = (half.tasks / (graph.num_servers * half.observations) for half in halves)
        left = left_of_start(*means, bundle=LANES)
        found = float(left.stationary(RUN_ON if time is None else FALSE_ALARM))
        if exact or dropped < needed:
            found = float(exact)
        if found != 0 or not may_run_on or dropped + 3 * counted > longest:
            return _Run(halves, left, found, counted, dropped)
        dropped, counted = dropped + counted, 2 * counted


def describe(case: Case) -> dict:
    """Returns plain values: one row per level, and the figures of the case beside them."""
    occupancy, queue = estimate(case.occupancy), estimate(case.queue_length)
    sojourn = Estimate(mean_field.mean_sojourn(queue.mean, case.load), mean_field.mean_sojourn(queue.ci95, case.load))
    shown = int(np.sum(np.maximum(occupancy.mean, case.fixed_point) >= SHOWN))
    distance = None if case.sup_distance is None else estimate(case.sup_distance)
    return {
        "graph": case.graph.name, "servers": case.graph.num_servers, "types": case.graph.num_types,
        "mean_server_degree": float(case.graph.server_degree().mean()), "policy": case.policy.name, "load": case.load,
        "mean_queue_length": float(queue.mean), "mean_queue_length_ci95": _known(queue.ci95),
        "fixed_point_queue_length": case.fixed_queue_length,
        "mean_sojourn_time": float(sojourn.mean), "mean_sojourn_time_ci95": _known(sojourn.ci95),
        "fixed_point_sojourn_time": float(mean_field.mean_sojourn(case.fixed_queue_length, case.load)),
        "drift": float(case.drift.mean), "drift_ci95": _known(case.drift.ci95), "stationary": told(case.stationary),
        "queue_length_above_levels": float(queue.mean - occupancy.mean.sum()),
        "sup_distance": None if distance is None else float(distance.mean),
        "sup_distance_ci95": None if distance is None else _known(distance.ci95),
        "sigma": case.certificate.sigma, "epsilon": case.certificate.epsilon,
        "bad_types_at_least": case.certificate.at_least, "bad_types_at_most": case.certificate.at_most,
        "subcriticality_margin": case.margin.margin, "overloaded_servers": case.margin.overloaded,
        "time": case.time, "warmup": case.warmup, "replicas": LANES * case.queue_length.size, "events": case.events,
        "seconds": case.seconds,
        "rows": [
            {
                "level": level + 1, "occupancy": float(occupancy.mean[level]), "occupancy_ci95": _known(occupancy.ci95[level]),
                "fixed_point": float(case.fixed_point[level]),
            }
            for level in range(max(shown, 1))
        ],
    }  # fmt: skip


def _known(value):
    return float(value) if np.isfinite(value) else None


def dataset(cases: Sequence[Case], *, seed: int) -> xr.Dataset:
    """Returns everything measured, over (case, level, bundle), with what made it in the attributes."""
    rows = [describe(case) for case in cases]
    scalars: dict[str, Any] = {key: ("case", [row[key] for row in rows]) for key in rows[0] if key != "rows"}
    for key in (
        "sup_distance", "sup_distance_ci95", "mean_queue_length_ci95", "mean_sojourn_time_ci95", "drift_ci95", "stationary",
    ):  # fmt: skip
        scalars[key] = ("case", np.array([np.nan if row[key] is None else row[key] for row in rows], dtype=float))
    variables: dict = scalars | {
        "occupancy": (("case", "level", "bundle"), np.stack([case.occupancy for case in cases])),
        "queue_length": (("case", "bundle"), np.stack([case.queue_length for case in cases])),
        "fixed_point": (("case", "level"), np.stack([case.fixed_point for case in cases])),
    }
    attributes = {
        "title": "Occupancy under compatibility constraints beside the mean field",
        **provenance(seed=seed, selection="none", device=device_name()),
        "configuration": json.dumps([{k: v for k, v in row.items() if k != "rows"} for row in rows]),
    }
    return xr.Dataset(variables, {"level": np.arange(1, LEVELS + 1)}, attributes)
