"""The load sweep: instances x loads x policies, each cell with its bound and its interval, as one xarray Dataset."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from lagjax.engine.run import Counts, check_length, simulate
from lagjax.errors import InputError
from lagjax.instance import Instance, as_number
from lagjax.lp import SELECTIONS, check_selection, occ_bound, occ_upper_bound, solve_kiid
from lagjax.policies import Policy, build_policy, strict_order
from lagjax.results import Cell, assemble, check_served
from lagjax.tune import SLOW, named_policy

DEFAULT_POLICIES = ("lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate")
DEFAULT_ARRIVALS = 6144  # tasks counted per replica when the caller names no number of steps
DEFAULT_REPLICAS = 1024
WARMUP_SERVICES = 10  # mean service times simulated from empty and dropped, and at least d steps


def sweep(
    instances: Sequence[Instance],
    *,
    loads: Sequence[float] | Callable[[Instance], Sequence[float]],
    policies: Sequence[str | Callable[[Instance], Policy]] = DEFAULT_POLICIES,
    steps: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    selection: str = "canonical",
    progress: Callable[[int, int], object] | None = None,
) -> xr.Dataset:
    """Simulates every policy on every instance at every load and compares it with its upper bound.

    Every input is checked, and every LP solved, before the first simulation starts. `tuned` is tuned for each cell when its
    turn comes, on random numbers other than the sweep's, and so is `lag-levels` built.

    Args:
      instances: with different names; their own loads are not used.
      loads: rho values in (0, 1 - k/R], or a function that gives those of an instance.
      policies: names from `lagjax.tune.SINGLE_NAMES`, or functions from an instance (at its load) to a `Policy`.
      steps: steps counted per replica at each load; by default as many as bring 6,144 tasks.
      replicas: independent replicas, at least 2 for intervals.
      seed: of all randomness, in [0, 2^64).
      selection: which LP optimum makes LAG and ALG-SC-LP; see `lagjax.lp.SELECTIONS`.
      progress: called again and again with the arrivals simulated so far, over policies and replicas, and those in all.

    Returns:
      A Dataset with dimensions instance, load, policy and replica; see `lagjax.results`.

    Raises:
      InputError: an argument that cannot be used.
    """
    if steps is not None and not _positive_whole(steps):
        raise InputError(f"steps is {steps!r}; give a whole number, 1 or more")
    check_selection(selection)
    instances = _listed("instances", instances, "instance")
    policies = _listed("policies", policies, "policy")
    if not callable(loads):
        loads = _listed("loads", loads, "load")
    names = [instance.name for instance in instances]
    if len(set(names)) < len(names):
        raise InputError(f"instances share a name ({', '.join(names)}); rename one")
    plan = [
        _prepare(instance.with_load(load), policies, selection)
        for instance in instances
        for load in _distinct(loads(instance) if callable(loads) else loads)
    ]
    for instance, _ in plan:
        check_length(sum(arrivals_and_warmup(instance, steps)))
    report = _progress(plan, steps, replicas, progress)
    cells = [
        _cell(instance, _complete(instance, built, selection, seed), steps, replicas, seed, report)
        for instance, built in plan
    ]
    return assemble(cells, seed=seed, selection=selection)


def arrivals_and_warmup(instance: Instance, steps: int | None) -> tuple[int, int]:
    """Returns tasks counted and dropped per replica for a number of steps (None: the default number of tasks)."""
    counted = DEFAULT_ARRIVALS if steps is None else max(1, math.ceil(steps * instance.total_rate - 1e-9))
    dropped = max(WARMUP_SERVICES * instance.mean_duration.max(), instance.max_duration)
    return counted, math.ceil(dropped * instance.total_rate)


def _listed(field, values, one):
    """The values as a list; a lone one or none is named."""
    try:
        listed = [] if isinstance(values, str) else list(values)
    except TypeError:
        listed = []
    if not listed:
        raise InputError(f"{field} is {values!r}; give a list of at least one {one}")
    return listed


def _positive_whole(value):
    try:
        return not isinstance(value, bool) and value == int(value) and value >= 1
    except (OverflowError, TypeError, ValueError):
        return False


def _distinct(loads):
    """Loads in order; those that results would not tell apart count once."""
    return sorted({round(as_number("load", load), 9): load for load in loads}.values())


def _progress(plan, steps, replicas, progress):
    if progress is None:
        return None
    total = sum(sum(arrivals_and_warmup(instance, steps)) * len(built) for instance, built in plan) * replicas
    done = 0

    def report(more):
        nonlocal done
        done = min(done + more, total)
        progress(done, total)

    return report


def _prepare(instance, policies, selection):
    built = [
        p if p in SLOW else build_policy(p, instance, selection) if isinstance(p, str) else p(instance)
        for p in policies
    ]
    names = [policy if isinstance(policy, str) else policy.name for policy in built]
    if len(set(names)) < len(names):
        raise InputError(f"policies share a name ({', '.join(names)}); rename one")
    occ_upper_bound(instance, 0.0)
    solve_kiid(instance)
    return instance, tuple(built)


def _complete(instance, built, selection, seed):
    """Builds what was left as a name because it takes long."""
    return tuple(named_policy(p, instance, selection, seed=seed) if isinstance(p, str) else p for p in built)


def _selection_matters(name, instance):
    """Whether the LP behind a named policy has several optima that make different policies (Lag, Appendix A)."""
    if name not in ("lag", "alg-sc-lp"):
        return False
    alike = np.unique(instance.scores, axis=1, return_inverse=True)[1].ravel()  # servers with equal scores
    first, *others = (build_policy(name, instance, selection) for selection in SELECTIONS)
    return not all(_same_choice(first, other, alike) for other in others)


def _same_choice(one, other, alike):
    order, another = strict_order(one), strict_order(other)
    if order is not None and another is not None:
        return np.array_equal(alike[np.argsort(order, axis=1)], alike[np.argsort(another, axis=1)])
    return np.array_equal(one.tier, other.tier) and np.allclose(one.weight, other.weight, atol=1e-3)


def _cell(instance, policies, steps, replicas, seed, progress):
    arrivals, warmup = arrivals_and_warmup(instance, steps)
    start = time.perf_counter()
    counts = simulate(
        instance, policies, arrivals=arrivals, warmup=warmup, replicas=replicas, seed=seed, progress=progress
    )
    seconds = time.perf_counter() - start
    return measure(instance, policies, counts, warmup=warmup, steps=steps, seconds=seconds)


def measure(
    instance: Instance, policies: Sequence[Policy], counts: Counts, *, warmup=0, steps=None, seconds=math.nan
) -> Cell:
    """Turns exact counts into rewards per step and compares them with the bounds at the blocking that was measured."""
    per_step = instance.total_rate / counts.arrivals
    blocked = counts.blocked.sum(axis=0) / counts.arrivals
    check_served(blocked)
    occ_ub, slope = occ_bound(instance, float(blocked.mean()))
    return Cell(
        instance=instance,
        policies=tuple(policies),
        reward=np.einsum("vr,pvrb->pb", instance.scores, counts.served, dtype=np.float64) * per_step,
        blocked=blocked,
        assigned=counts.served.mean(axis=3, dtype=np.float64) * per_step,
        occ_ub=occ_ub,
        occ_ub_0=occ_upper_bound(instance, 0.0),
        kiid_ub=solve_kiid(instance).objective,
        occ_slope=slope,
        steps=round(counts.arrivals / instance.total_rate) if steps is None else int(steps),
        warmup=round(warmup / instance.total_rate),
        seconds=seconds,
        selection_matters=np.array([_selection_matters(policy.name, instance) for policy in policies]),
    )
