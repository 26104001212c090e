"""Graphs compared with their mean field: each with each load is a case, simulated as long as its start shows."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray as xr

from lagjax.compatibility import mean_field
from lagjax.compatibility.certificate import Certificate, certify, check_epsilon
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import Graph, Margin, check_load
from lagjax.compatibility.model import LEVELS
from lagjax.compatibility.policies import ALL, Policy
from lagjax.compatibility.queues import STATIONARY, bundles_of, interval_events, replica_bytes, set_up
from lagjax.compatibility.run import CHUNK, bundle_means, most_time, trace
from lagjax.compatibility.starts import law_is_known
from lagjax.engine.checks import whole_number
from lagjax.engine.devices import device_name, place_replicas
from lagjax.engine.loop import Loop, Watched, standing
from lagjax.errors import InputError
from lagjax.runs.batched import Batch, batched, stage_of
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record, digest
from lagjax.runs.running import Running
from lagjax.stats import (
    FALSE_ALARM,
    RELAXATIONS,
    RUN_ON,
    Estimate,
    estimate,
    left_of_start,
    pooled_relaxation,
)
from lagjax.studies.dataset import part_of, provenance, record_of, rows_of, worded
from lagjax.studies.study import conduct

TIME, WARMUP = 100, 50  # least mean service times counted and dropped where the caller names none
MOST_TIMES = 64  # times as long is simulated, at most, where the caller names no time and the start still shows
MOST_AT_FIRST = (
    20_000  # mean service times that are dropped, and counted, at most, before it is asked whether that was enough
)
MOST_EVENTS = 2**26  # of a replica, the same
TIMES_PER_UNIT = 4  # of a trajectory
UNEVEN = (0.5,) * 4  # where trajectories start: half of the servers, side by side, hold 4 tasks each


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


class CaseSpec(NamedTuple):
    """What determines a case; fields as in `measure`."""

    graph: Graph
    policy: Policy
    load: float
    time: int | None
    warmup: int | None
    replicas: int
    seed: int
    horizon: float
    epsilon: float
    allow_overloaded: bool


def compat(
    graphs: Sequence[Graph],
    policy: Policy,
    loads: Sequence[float],
    *,
    time: int | None = None,
    warmup: int | None = None,
    replicas: int = 1024,
    seed: int = 0,
    horizon: float = 0,
    epsilon: float = 0.2,
    allow_overloaded: bool = False,
    progress: Callable[[int, int], object] | None = None,
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Measures every graph at every load; see `measure` for the arguments.

    Args:
      progress: called with the cases done so far and those in all.
      out: folder that keeps every finished case, and in the end what `lagjax compat` leaves.
      running: where and how the cases run; see `lagjax.runs.running.Running`. No result depends on it.

    Returns:
      A Dataset over (case, level, bundle); see `dataset`.

    Raises:
      InputError: an argument outside its range, a server overloaded under random routing, or a queue that grows without end.
    """
    if not graphs or not loads:
        raise InputError("nothing to simulate; give at least one graph and one load")
    specs = [
        CaseSpec(graph, policy, float(load), time, warmup, replicas, seed, horizon, epsilon, allow_overloaded)
        for graph in graphs
        for load in loads
    ]
    for spec in specs:
        _check(spec)
    configuration = {
        "graphs": [_described(graph) for graph in graphs], "policy": list(policy), "loads": [float(load) for load in loads],
        "time": time, "warmup": warmup, "replicas": int(replicas), "seed": int(seed), "horizon": float(horizon),
        "epsilon": float(epsilon), "allow overloaded": bool(allow_overloaded),
    }  # fmt: skip
    jobs = [case_job(spec, place) for place, spec in enumerate(specs)]
    return conduct(
        "compat", jobs, configuration, lambda records: _assembled(records, seed), out=out,
        running=running or Running(unit="cases"), progress=progress, done=lambda status: (status.ended, status.jobs),
    )  # fmt: skip


def _described(graph):
    tables = digest(graph.neighbours, graph.size, graph.row)[:16]
    return {"name": graph.name, "servers": graph.num_servers, "types": graph.num_types, "edges": tables}


def case_job(spec: CaseSpec, place: int) -> Job:
    """The job of a case; its work is 1, since how long it takes shows on the way."""
    graph = spec.graph
    name = f"{place + 1}: {graph.name} of {graph.num_servers} servers at {spec.load:.10g}"
    shape = f"{graph.num_servers} {graph.num_types} {graph.neighbours.shape[1]} {spec.policy.choices}"
    return Job(name, shape, 1.0, functools.partial(run_case, spec))


def run_case(spec: CaseSpec, watch: Watch) -> Record:
    """Measures a case; see `measure`."""
    return record_of_case(_measured(spec, _certified(spec.graph, spec.epsilon), watch))


@functools.lru_cache(maxsize=4)
def _certified(graph, epsilon):
    """The certificate of a graph, once for all its loads."""
    return certify(graph, epsilon)


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
    progress: Callable[[float], object] | None = None,
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
      progress: called with the share that is done.

    Raises:
      InputError: an argument outside its range, a server overloaded under random routing, or a queue that grows without end.
    """
    spec = CaseSpec(graph, policy, load, time, warmup, replicas, seed, horizon, epsilon, allow_overloaded)
    _check(spec)
    known = _certified(graph, epsilon) if certificate is None else certificate
    return _measured(spec, known, Watch() if progress is None else Watch(progress=progress))


def _check(spec):
    check_times(spec.time, spec.warmup, spec.horizon)
    check_epsilon(spec.epsilon)
    check_load(spec.graph, spec.load, spec.allow_overloaded and spec.policy.choices > 1)
    bundles_of(spec.replicas)
    whole_number("seed", spec.seed, 0, 2**64 - 1)
    _first_span(spec)


def _measured(spec, certificate, watch) -> Case:
    graph, policy, load = spec.graph, spec.policy, spec.load
    margin = check_load(graph, load, spec.allow_overloaded and policy.choices > 1)
    fixed = mean_field.fixed_point(policy, load, LEVELS)
    run = _stationary(spec, watch)

    def per_server(sums):
        return bundle_means(sum(sums) / (graph.num_servers * run.span.counted))

    distance = None
    if spec.horizon > 0 and policy.choices < ALL:
        times = np.arange(1, max(1, round(spec.horizon * TIMES_PER_UNIT)) + 1) / TIMES_PER_UNIT
        path = mean_field.trajectory(policy, load, times, UNEVEN)
        path = np.pad(path, ((0, 0), (0, max(0, LEVELS - path.shape[1]))))[:, :LEVELS]
        seen = trace(
            graph, policy, load, times=times, start=UNEVEN, together=True, replicas=spec.replicas, seed=spec.seed,
            allow_overloaded=spec.allow_overloaded,
        )  # fmt: skip
        distance = bundle_means(np.abs(seen - path[:, :, None]).max(axis=(0, 1)))
    return Case(
        graph=graph, policy=policy, load=load, occupancy=per_server(run.servers), queue_length=per_server(run.tasks),
        drift=run.drift, stationary=run.stationary, fixed_point=fixed,
        fixed_queue_length=mean_field.mean_queue_length(policy, load), sup_distance=distance, margin=margin,
        certificate=certificate, time=run.span.counted, warmup=run.span.dropped,
        events=run.span.counted * interval_events(graph, load) * spec.replicas,
    )  # fmt: skip


def check_times(time: int | None, warmup: int | None, horizon: float) -> None:
    """Raises InputError unless `measure` can use them."""
    whole_number("time", TIME if time is None else time, 2)
    whole_number("warmup", WARMUP if warmup is None else warmup, 0)
    if not 0 <= horizon < 1e6:
        raise InputError(f"horizon is {horizon:g}; give mean service times, below 1e6, 0 for no trajectories")


class Span(NamedTuple):
    """Mean service times: where a run begins, how many are dropped before those counted, and how many these are."""

    begin: int
    dropped: int
    counted: int

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.dropped + self.counted


class _Run(NamedTuple):
    """What was counted in the two halves of a span, and what it says of the start."""

    servers: tuple[np.ndarray, np.ndarray]
    tasks: tuple[np.ndarray, np.ndarray]
    drift: Estimate
    stationary: float
    span: Span


def relaxation(graph: Graph, load: float) -> float:
    """Returns the mean service times in which the slowest pool of servers forgets its start, at best (`pooled_relaxation`)."""
    return max(pooled_relaxation(n * rho, n) for n, rho in zip(*graph.pools(load), strict=True))


def _first_span(spec) -> Span:
    """What is dropped and counted at first.

    Raises:
      InputError: it is more than a replica can have.
    """
    longest = most_time(spec.graph, spec.load)
    at_first = math.ceil(min(_needed(spec), MOST_AT_FIRST, longest * MOST_EVENTS / 2**32))
    dropped = max(WARMUP, at_first) if spec.warmup is None else spec.warmup
    counted = max(TIME, at_first) if spec.time is None else spec.time
    if counted + dropped > longest:
        raise InputError(
            f"{counted + dropped} mean service times are more than 2^32 events a replica; use more replicas instead"
        )
    return Span(0, dropped, counted)


def _needed(spec):
    """Mean service times to be dropped, by the relaxation time; none after a start from the exact law."""
    exact = law_is_known(spec.policy, spec.graph, spec.load)
    return 0.0 if exact else RELAXATIONS * relaxation(spec.graph, spec.load)


def _stationary(spec, watch) -> _Run:
    """Counts `time`; without one as long as the start shows, up to a bound."""
    graph, load = spec.graph, spec.load
    exact, needed, first = law_is_known(spec.policy, graph, load), _needed(spec), _first_span(spec)
    longest = min(most_time(graph, load), max(MOST_TIMES * (TIME + WARMUP), 4 * first.end))
    may_run_on = spec.time is None and needed <= longest
    span, queue = Span(*stage_of(watch, first)), None
    per_time = interval_events(graph, load) * spec.replicas
    while True:
        prepare = functools.partial(_batch, spec, span, queue)
        counts = batched(watch.within(span.begin * per_time, span.end * per_time), spec.replicas // LANES, prepare)
        lengths = (span.counted // 2, span.counted - span.counted // 2)
        tasks = counts["tasks 0"], counts["tasks 1"]
        means = (some / (graph.num_servers * length) for some, length in zip(tasks, lengths, strict=True))
        left = left_of_start(*means, bundle=LANES)
        found = float(left.stationary(RUN_ON if spec.time is None else FALSE_ALARM))
        if exact or span.dropped < needed:
            found = float(exact)
        if found != 0 or not may_run_on or span.dropped + 3 * span.counted > longest:
            return _Run((counts["servers 0"], counts["servers 1"]), tasks, left.drift, found, span)
        span, queue = Span(span.end, span.end, 2 * span.counted), counts["queue"]


def _batch(spec, span, queue, about):
    """The batch of a span, in bundles; one that does not begin at the start goes on from queues, kept since if not at hand."""
    if queue is None and span.begin:
        queue = about.arrays["queue"]
    about = Record({}, {} if queue is None else {"queue": queue})
    work = (span.end - span.begin) * interval_events(spec.graph, spec.load) * LANES
    piece = functools.partial(_piece, spec, span, queue)
    return Batch(piece, LANES * replica_bytes(spec.graph), work, about=about, stage=span)


def _piece(spec, span, queue, first, count, resume, save, progress):
    """`Batch.simulate`: the counts of the two halves, and the queues at their end."""
    graph, policy, load = spec.graph, spec.policy, spec.load
    start: Any = STATIONARY
    if not law_is_known(policy, graph, load):
        start = mean_field.fixed_point(policy, load, mean_field.levels_of(policy, load))
    run = set_up(graph, policy, load, count * LANES, spec.seed, start=start, first_replica=first * LANES)
    if resume is None and queue is not None:
        mine = queue[:, first * LANES : (first + count) * LANES]
        resume = standing(run, span.begin, mine.astype(np.result_type(mine.dtype, run.state.dtype)))
    loop = Loop(run, place_replicas(count), Watched(CHUNK, progress, resume, save), end=span.end)
    ends = (span.dropped, span.dropped + span.counted // 2, span.end)
    _, *halves = [loop.to(end) for end in ends]
    counts = {
        f"{name} {i}": x for i, half in enumerate(halves) for name, x in zip(("servers", "tasks"), half, strict=True)
    }
    return counts | {"queue": jax.device_get(loop.state)}


def record_of_case(case: Case) -> Record:
    """The case's part of the Dataset."""
    occupancy, queue = estimate(case.occupancy), estimate(case.queue_length)
    sojourn = Estimate(mean_field.mean_sojourn(queue.mean, case.load), mean_field.mean_sojourn(queue.ci95, case.load))
    distance = Estimate(*np.full(2, np.nan)) if case.sup_distance is None else estimate(case.sup_distance)
    figures: dict[str, Any] = {
        "graph": case.graph.name, "servers": case.graph.num_servers, "types": case.graph.num_types,
        "mean_server_degree": float(case.graph.server_degree().mean()), "policy": case.policy.name, "offered_load": case.load,
        "mean_queue_length": queue.mean, "mean_queue_length_ci95": queue.ci95,
        "fixed_point_queue_length": case.fixed_queue_length,
        "mean_sojourn_time": sojourn.mean, "mean_sojourn_time_ci95": sojourn.ci95,
        "fixed_point_sojourn_time": mean_field.mean_sojourn(case.fixed_queue_length, case.load),
        "drift": case.drift.mean, "drift_ci95": case.drift.ci95, "stationary": case.stationary,
        "queue_length_above_levels": queue.mean - occupancy.mean.sum(),
        "sup_distance": distance.mean, "sup_distance_ci95": distance.ci95,
        "sigma": case.certificate.sigma, "epsilon": case.certificate.epsilon,
        "bad_types_at_least": case.certificate.at_least, "bad_types_at_most": case.certificate.at_most,
        "subcriticality_margin": case.margin.margin, "overloaded_servers": case.margin.overloaded,
        "time": case.time, "warmup": case.warmup, "replicas": LANES * case.queue_length.size, "events": case.events,
    }  # fmt: skip
    variables: dict = {name: ("case", [value]) for name, value in figures.items()} | {
        "occupancy": (("case", "level", "bundle"), case.occupancy[None]),
        "queue_length": (("case", "bundle"), case.queue_length[None]),
        "fixed_point": (("case", "level"), case.fixed_point[None]),
    }
    return record_of(variables, {"level": list(range(1, LEVELS + 1))}, device=device_name())


def dataset(cases: Sequence[Case], *, seed: int) -> xr.Dataset:
    """Returns everything measured, over (case, level, bundle), with what made it in the attributes."""
    return _assembled([record_of_case(case) for case in cases], seed)


def _assembled(records, seed):
    data = xr.concat(map(part_of, records), "case")
    keys = ("graph", "servers", "types", "policy", "offered_load", "time", "warmup", "replicas", "epsilon")
    cases = list(rows_of(data, ("case",), keys))
    data.attrs = {
        "title": "Occupancy under compatibility constraints beside the mean field",
        **provenance(seed=seed, device=records[0].head["about"]["device"]),
        "configuration": json.dumps(cases),
    }
    return worded(data, "compat")
