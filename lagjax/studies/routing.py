"""Routing policies compared on one set of queues: simulated with intervals, exact, and against the optimum if it is computed."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import device_name
from lagjax.errors import InputError
from lagjax.loss_routing.exact import exact_loss, least_loss
from lagjax.loss_routing.policies import POLICIES, RoutingPolicy, build_routing
from lagjax.loss_routing.simulate import check_policies, replica_bytes, simulate_routing
from lagjax.loss_routing.splitting import relaxation_bounds, split_loss
from lagjax.loss_routing.system import System
from lagjax.runs.batched import Batch, batched
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record, digest
from lagjax.runs.running import Running
from lagjax.stats import RELAXATIONS, estimate, left_of_start, pooled_relaxation, ratio_of_means
from lagjax.studies.dataset import part_of, provenance, record_of, worded
from lagjax.studies.study import conduct, named_apart

DEFAULT_ARRIVALS = 20_000
DEFAULT_REPLICAS = 1024
EXACT_STATES = 20_000  # joint states up to which a study solves the chain unasked: some seconds
LEAST_SEEN = 30  # replicas, or all of them if fewer, that must have seen a loss before an interval is given


def route(
    systems: Sequence[System],
    *,
    policies: Sequence[str | Callable[[System], RoutingPolicy]] = tuple(POLICIES),
    arrivals: int = DEFAULT_ARRIVALS,
    warmup: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    exact_states: int = EXACT_STATES,
    progress: Callable[[int, int], object] | None = None,
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Compares policies on the same queues at one or more arrival rates.

    Args:
      systems: the same queues at different arrival rates (see `System.with_arrival_rate`).
      policies: names of `POLICIES`, or functions that make a policy for a system.
      arrivals: jobs per replica, on average.
      warmup: jobs dropped before; by default a fifth of `arrivals` and two for every place.
      replicas, seed: as in `simulate_routing`.
      exact_states: joint states up to which the exact loss and the optimum are computed.
      progress: called with what is done and the total, in arrivals times policies and replicas.
      out: folder that keeps every finished arrival rate, and in the end what `lagjax route` leaves.
      running: where and how the cells run; see `lagjax.runs.running.Running`. No result depends on it.

    Returns:
      A Dataset. Over (arrival_rate, policy): loss_rate in jobs per unit time with loss_ci95 (NaN where fewer than `needed`
      replicas saw a loss), seen (that number), drift (loss rate of the second half less that of the first) with
      drift_ci95, stationary (1 where nothing is seen to be left of the start, 0 where something is or the warm-up was short of
      `RELAXATIONS`, NaN where that is not known; see `lagjax.stats.start`), exact_loss and residual (NaN where not computed).
      Over (arrival_rate, policy, than): difference and ratio of loss rates on the same events with their `_ci95`. Over
      arrival_rate: traffic, loss_lower_bound, optimal_loss, optimal_bracket (the width of the interval that value iteration
      leaves), states, events. Over (arrival_rate, policy, replica): loss.

    Raises:
      InputError: an argument outside its range.
    """
    rates = [system.arrival_rate for system in systems]
    if not rates or len(set(rates)) < len(rates):
        raise InputError(f"arrival rates {rates} repeat or are missing; give each once")
    whole_number("arrivals", arrivals, 1)
    whole_number("warmup", warmup or 0, 0)
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    whole_number("seed", seed, 0, 2**64 - 1)
    built = [[build_routing([p], s)[0] if isinstance(p, str) else p(s) for p in policies] for s in systems]
    named_apart("policies", [policy.name for policy in built[0]])
    specs = [
        RouteSpec(system, tuple(made), arrivals, _dropped(system, arrivals, warmup), replicas, seed, exact_states)
        for system, made in zip(systems, built, strict=True)
    ]
    for spec in specs:
        check_policies(spec.system, spec.policies)
    first = systems[0]
    queues = {
        "servers": first.servers.tolist(),
        "room": first.room.tolist(),
        "service_rates": first.service_rate.tolist(),
    }
    configuration = {
        **queues, "arrival_rates": [float(rate) for rate in rates],
        "policies": [_described(p, [made[i] for made in built]) for i, p in enumerate(policies)], "arrivals": int(arrivals),
        "warmup": warmup, "replicas": int(replicas), "seed": int(seed), "exact_states": int(exact_states),
    }  # fmt: skip

    def assemble(records):
        data = xr.concat(map(part_of, records), "arrival_rate")
        data.attrs = {
            "title": "Loss of routing policies for parallel finite queues",
            **provenance(seed=seed, device=records[0].head["about"]["device"]),
            "configuration": json.dumps({**queues, "arrivals": arrivals, "warmup": warmup}),
        }
        return worded(data, "route")

    jobs = [route_job(spec) for spec in specs]
    return conduct("route", jobs, configuration, assemble, out=out, running=running, progress=progress)


def _dropped(system, arrivals, warmup):
    return arrivals // 5 + 2 * int(system.room.sum()) if warmup is None else warmup


def _described(policy, made):
    """A policy in words: its name, or a digest of what a function made."""
    if isinstance(policy, str):
        return policy
    return {"name": made[0].name, "tables": digest(*(x for p in made for x in (p.rank, p.share) if x is not None))[:16]}


class RouteSpec(NamedTuple):
    """What determines a cell: queues at one arrival rate, built policies, jobs counted and dropped, and the rest of a study."""

    system: System
    policies: tuple[RoutingPolicy, ...]
    arrivals: int
    warmup: int
    replicas: int
    seed: int
    exact_states: int


def route_job(spec: RouteSpec) -> Job:
    """The job of a cell; its work is in jobs counted, times policies and replicas."""
    shape = f"{spec.system.num_queues} {spec.system.room.max()} {len(spec.policies)}"
    work = spec.arrivals * len(spec.policies) * spec.replicas
    return Job(f"arrivals {spec.system.arrival_rate:.10g}", shape, work, functools.partial(run_route, spec))


def run_route(spec: RouteSpec, watch: Watch) -> Record:
    """Simulates all policies on the same events and measures their losses."""
    counted = spec.arrivals / (spec.arrivals + spec.warmup)

    def piece(first, count, resume, save, progress):
        counts = simulate_routing(
            spec.system, spec.policies, arrivals=spec.arrivals, warmup=spec.warmup, replicas=count, first_replica=first,
            seed=spec.seed, progress=lambda more: progress(more * counted), resume=resume, save=save,
        )  # fmt: skip
        return {"lost": counts.lost, "events": counts.events[:, None]}

    batch = Batch(piece, replica_bytes(spec.system, spec.policies), spec.arrivals * len(spec.policies))
    counts = batched(watch, spec.replicas, lambda about: batch)
    return _measured(spec, counts["lost"], counts["events"][:, 0])


def relaxation_jobs(system: System) -> float:
    """Returns the jobs that come while the queues forget their start, at best: those of one queue that pools them all."""
    pooled = pooled_relaxation(system.arrival_rate, system.capacity, float(system.room.sum()))
    return system.arrival_rate * pooled


def _measured(spec, lost, events) -> Record:
    """The cell's part of the Dataset, from (2, P, B) losses in the two halves and the (2,) events of each."""
    system = spec.system
    first, second = (half * rate for half, rate in zip(lost, system.arrival_rate / events, strict=True))
    loss = lost.sum(axis=0) * (system.arrival_rate / events.sum())
    seen = (loss > 0).sum(axis=1)
    known = seen >= needed(loss.shape[1])
    rate, left = estimate(loss), left_of_start(first, second)
    difference = estimate(loss[:, None] - loss[None])
    with np.errstate(invalid="ignore"):  # where no loss was seen
        ratio = estimate(ratio_of_means(loss[:, None], loss[None]))
    both = known[:, None] & known[None]
    warm = spec.warmup >= RELAXATIONS * relaxation_jobs(system)
    exact = _exact(system, spec.policies, spec.exact_states)
    by_policy = {
        "loss_rate": rate.mean, "loss_ci95": np.where(known, rate.ci95, np.nan), "seen": seen, "drift": left.drift.mean,
        "drift_ci95": np.where(known, left.drift.ci95, np.nan),
        "stationary": np.where(known, left.stationary() if warm else 0.0, np.nan), "exact_loss": exact["loss"],
        "residual": exact["residual"],
    }  # fmt: skip
    by_pair = {
        "difference": difference.mean, "difference_ci95": np.where(both, difference.ci95, np.nan),
        "ratio": np.where(both, ratio.mean, np.nan), "ratio_ci95": np.where(both, ratio.ci95, np.nan),
    }  # fmt: skip
    single = {
        "traffic": system.traffic, "loss_lower_bound": relaxation_bounds(system).loss, "optimal_loss": exact["optimal"],
        "optimal_bracket": exact["bracket"], "states": float(system.states), "events": float(events.sum()),
    }  # fmt: skip
    at = "arrival_rate"
    variables: dict = {name: (at, [value]) for name, value in single.items()}
    variables |= {name: ((at, "policy"), value[None]) for name, value in by_policy.items()}
    variables |= {name: ((at, "policy", "than"), value[None]) for name, value in by_pair.items()}
    variables["loss"] = ((at, "policy", "replica"), loss[None])
    names = [policy.name for policy in spec.policies]
    coordinates: dict = {at: [float(system.arrival_rate)], "policy": names, "than": names}
    return record_of(variables, coordinates, device=device_name())


def needed(replicas: int) -> int:
    """Replicas that must have seen a loss before an interval is given: means of fewer are far from normal."""
    return max(2, min(LEAST_SEEN, replicas))


def _exact(system, policies, exact_states):
    """Exact losses; without the joint chain only those of splittings, whose queues are independent."""
    if system.states > exact_states:
        loss = [split_loss(system, policy.share) if policy.rank is None else np.nan for policy in policies]
        return {"loss": np.array(loss), "residual": np.full(len(loss), np.nan), "optimal": np.nan, "bracket": np.nan}
    found = [exact_loss(system, policy) for policy in policies]
    best = least_loss(system)
    return {
        "loss": np.array([e.loss for e in found]), "residual": np.array([e.residual for e in found]),
        "optimal": best.loss, "bracket": best.upper - best.lower,
    }  # fmt: skip
