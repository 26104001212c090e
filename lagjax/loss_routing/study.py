"""Policies compared on one set of queues: simulated with intervals, exact and against the optimum where that can be computed."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from lagjax.engine.devices import device_name
from lagjax.errors import InputError
from lagjax.loss_routing.exact import exact_loss, least_loss
from lagjax.loss_routing.policies import POLICIES, RoutingPolicy, build_routing
from lagjax.loss_routing.simulate import simulate_routing
from lagjax.loss_routing.splitting import relaxation_bounds, split_loss
from lagjax.loss_routing.system import System
from lagjax.results import provenance
from lagjax.stats import RELAXATIONS, estimate, left_of_start, pooled_relaxation, ratio_of_means, told

DEFAULT_ARRIVALS = 20_000
DEFAULT_REPLICAS = 1024
EXACT_STATES = 20_000  # joint states up to which a study solves the chain unasked: some seconds
LEAST_SEEN = 30  # replicas, or all of them if fewer, that must have seen a loss before an interval is given

ROW_KEYS = (
    "arrival_rate", "traffic", "policy", "loss_rate", "loss_ci95", "exact_loss", "optimal_loss", "loss_lower_bound",
    "optimal_bracket", "states", "residual", "ratio_to_first", "ratio_ci95", "drift", "drift_ci95", "events", "replicas",
    "stationary",
)  # fmt: skip


def compare_routing(
    systems: Sequence[System],
    *,
    policies: Sequence[str | Callable[[System], RoutingPolicy]] = tuple(POLICIES),
    arrivals: int = DEFAULT_ARRIVALS,
    warmup: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    exact_states: int = EXACT_STATES,
    progress: Callable[[int, int], object] | None = None,
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
    makers = [(lambda s, name=p: build_routing([name], s)[0]) if isinstance(p, str) else p for p in policies]
    names = [make(systems[0]).name for make in makers]
    if len(set(names)) < len(names):
        raise InputError(f"policies {names} repeat; name each once")
    done, parts = 0, []
    total = len(systems) * len(names) * arrivals * replicas
    for system in systems:
        built = [make(system) for make in makers]
        drop = arrivals // 5 + 2 * int(system.room.sum()) if warmup is None else warmup
        part = arrivals + drop

        def advance(count, before=done, share=arrivals / part):
            if progress is not None:
                nonlocal done
                done = min(done + round(count * share), total)
                progress(done, total)

        counts = simulate_routing(
            system, built, arrivals=arrivals, warmup=drop, replicas=replicas, seed=seed, progress=advance
        )
        warm = drop >= RELAXATIONS * relaxation_jobs(system)
        parts.append(_cell(system, built, counts, exact_states, warm))
    data = xr.concat(parts, "arrival_rate")
    system = systems[0]
    data.attrs = {
        "title": "Loss of routing policies for parallel finite queues",
        **provenance(seed=seed, selection="none", device=device_name()),
        "configuration": json.dumps(
            {
                "servers": system.servers.tolist(),
                "room": system.room.tolist(),
                "service_rates": system.service_rate.tolist(),
                "arrivals": arrivals,
                "warmup": warmup,
            }
        ),
    }
    return data


def relaxation_jobs(system: System) -> float:
    """Returns the jobs that come while the queues forget their start, at best: those of one queue that pools them all."""
    pooled = pooled_relaxation(system.arrival_rate, system.capacity, float(system.room.sum()))
    return system.arrival_rate * pooled


def _cell(system, policies, counts, exact_states, warm):
    per_event = system.arrival_rate / counts.events
    first, second = (half * rate for half, rate in zip(counts.lost, per_event, strict=True))
    loss = counts.lost.sum(axis=0) * (system.arrival_rate / counts.events.sum())
    seen = (loss > 0).sum(axis=1)
    known = seen >= needed(loss.shape[1])
    rate, left = estimate(loss), left_of_start(first, second)
    difference = estimate(loss[:, None] - loss[None])
    with np.errstate(invalid="ignore"):  # where no loss was seen
        ratio = estimate(ratio_of_means(loss[:, None], loss[None]))
    both = known[:, None] & known[None]
    stationary = np.where(known, left.stationary() if warm else 0.0, np.nan)
    exact = _exact(system, policies, exact_states)
    by_policy = {
        "loss_rate": rate.mean, "loss_ci95": np.where(known, rate.ci95, np.nan), "seen": seen, "drift": left.drift.mean,
        "drift_ci95": np.where(known, left.drift.ci95, np.nan), "stationary": stationary, "exact_loss": exact["loss"],
        "residual": exact["residual"],
    }  # fmt: skip
    by_pair = {
        "difference": difference.mean, "difference_ci95": np.where(both, difference.ci95, np.nan),
        "ratio": np.where(both, ratio.mean, np.nan), "ratio_ci95": np.where(both, ratio.ci95, np.nan),
    }  # fmt: skip
    single = {
        "traffic": system.traffic, "loss_lower_bound": relaxation_bounds(system).loss, "optimal_loss": exact["optimal"],
        "optimal_bracket": exact["bracket"], "states": float(system.states), "events": float(counts.events.sum()),
    }  # fmt: skip
    at = "arrival_rate"
    variables: dict = {name: ((at,), [value]) for name, value in single.items()}
    variables |= {name: ((at, "policy"), value[None]) for name, value in by_policy.items()}
    variables |= {name: ((at, "policy", "than"), value[None]) for name, value in by_pair.items()}
    variables["loss"] = ((at, "policy", "replica"), loss[None])
    names = [policy.name for policy in policies]
    return xr.Dataset(variables, {at: [system.arrival_rate], "policy": names, "than": names})


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


def rows(data: xr.Dataset) -> list[dict]:
    """One dict per arrival rate and policy with the keys `ROW_KEYS` and plain Python values; None where there is none."""
    out = []
    for rate in data.arrival_rate.values:
        for policy in data.policy.values:
            cell = data.sel(arrival_rate=rate, policy=policy)
            pair = cell.sel(than=data.policy.values[0])
            given = {"policy": str(policy), "replicas": data.sizes["replica"]}
            given |= {key: int(cell[key]) for key in ("states", "events")}
            given["stationary"] = told(cell.stationary)
            given |= {"ratio_to_first": _number(pair.ratio), "ratio_ci95": _number(pair.ratio_ci95)}
            out.append({key: given[key] if key in given else _number(cell[key]) for key in ROW_KEYS})
    return out


def _number(value):
    value = float(value)
    return value if np.isfinite(value) else None
