"""The convergence study: reward per copy against n and m, as a share of the upper bound (Lag, Figure 6)."""

from __future__ import annotations

import functools
import json
import math
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from lagjax.engine.checks import whole_number
from lagjax.engine.scaled_run import check_size, simulate_scaled
from lagjax.errors import InputError
from lagjax.fluid.fixed_point import lp_fixed_point
from lagjax.instance import Instance
from lagjax.lp import check_selection, occ_bound, occ_upper_bound, solve_kiid, solve_occ
from lagjax.policies import Policy, build_policy
from lagjax.results import check_served, provenance
from lagjax.stats import estimate, percent_of_bound
from lagjax.tune import TUNED, named_policy

DEFAULT_COPIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
DEFAULT_REPLICAS = 256
TARGET = 0.25  # points: half-width of the 95% interval when the caller names no number of steps
TOLERANCE = 1.2  # times that, an interval is left as it is
SAFETY = 1.15  # more steps than an interval asks for, since it is an estimate, and short runs understate it
SETTLED = 1.5  # a drift of more than this many half-widths doubles the warm-up: 0.3% of settled cells do
MOST_RESIZES = 5
PILOT_TASKS = 200_000  # tasks, over all replicas, of the run that finds how many steps that takes
LEAST_STEPS = 20
WARMUP_SERVICES = 3  # mean service times dropped after a warm start
EMPTY_WARMUP_SERVICES = 10  # and after an empty one, at least d steps
STARTS = ("warm", "empty")


class Size(NamedTuple):
    """One (n, m)."""

    copies: int
    dispatchers: int


def sizes_of(copies: Sequence[int], dispatchers: str | Sequence[int] = "sqrt") -> list[Size]:
    """Pairs n and m: m = floor(sqrt(n)) for "sqrt"; else lists of equal length, or one number that goes with every other.

    Raises:
      InputError: a size that is not a positive whole number, a size twice, or lists of different lengths.
    """
    copies = list(copies)
    for n in copies:
        whole_number("copies", n, 1)
    if isinstance(dispatchers, str):
        if dispatchers != "sqrt":
            raise InputError(f"dispatchers is '{dispatchers}'; give sqrt or whole numbers")
        listed = [math.isqrt(n) for n in copies]
    else:
        listed = list(dispatchers)
        for m in listed:
            whole_number("dispatchers", m, 1)
    if len(listed) == 1:
        listed = listed * len(copies)
    if len(copies) == 1:
        copies = copies * len(listed)
    if len(copies) != len(listed) or not copies:
        raise InputError(
            f"{len(copies)} values of copies go with {len(listed)} of dispatchers; give as many of each, or one of either"
        )
    sizes = [Size(int(n), int(m)) for n, m in zip(copies, listed, strict=True)]
    for i, size in enumerate(sizes):
        if size in sizes[:i]:
            raise InputError(f"copies {size.copies} with dispatchers {size.dispatchers} is named twice; name it once")
    return sizes


def converge(
    instances: Sequence[Instance],
    *,
    sizes: Sequence[Size],
    policies: Sequence[str | Callable[[Instance], Policy]] = ("lag",),
    steps: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    selection: str = "canonical",
    start: str = "warm",
    progress: Callable[[int, int], object] | None = None,
) -> xr.Dataset:
    """Simulates the scaled system at every size and compares reward per copy with OPT(OCC-LP(B_hat)).

    Args:
      instances: at their loads, with different names.
      sizes: from `sizes_of`.
      policies: names from `lagjax.tune.NAMES`, or functions from an instance to a `Policy`; `tuned` is tuned for each size.
      steps: steps counted per replica at every size. By default a pilot run of 200,000 tasks sizes each cell so that its
        interval comes to about ±0.25 points, 0.3 at most; the pilot is the beginning of the run that counts, or all of it.
        Where the two halves of a run differ by more than chance, it starts again with twice the warm-up.
      replicas: independent replicas.
      seed: of all randomness, in [0, 2^64).
      selection: which LP optimum makes LAG, ALG-SC-LP and the warm start.
      start: "warm" (the fluid fixed point x_hat, then 3 mean service times dropped) or "empty" (10, and at least d steps).
      progress: called with the cells done so far and those in all.

    Returns:
      A Dataset with dimensions instance, size (coordinates copies and dispatchers), policy and replica; `drift` is the second
      half of the counted steps less the first, in points: what is left of the start, with its interval.

    Raises:
      InputError: an argument that cannot be used.
    """
    if steps is not None:
        whole_number("steps", steps, 2)
    check_selection(selection)
    if start not in STARTS:
        raise InputError(f"start is '{start}'; choose from {', '.join(STARTS)}")
    if not instances or not policies or not sizes:
        raise InputError("nothing to simulate; give at least one instance, one policy and one size")
    names = [instance.name for instance in instances]
    if len(set(names)) < len(names):
        raise InputError(f"instances share a name ({', '.join(names)}); rename one")
    plan = [
        (instance, policy, size)
        for instance in instances
        for policy in (_built(p, instance, selection) for p in policies)
        for size in sizes
    ]
    for instance, policy, size in plan:
        like = build_policy("lag", instance, selection) if isinstance(policy, str) else policy
        check_size(instance, like, size.copies, size.dispatchers, replicas)
    most = max(size.dispatchers for size in sizes)
    parts = []
    for done, (instance, built, size) in enumerate(plan):
        policy = (
            named_policy(built, instance, selection, seed=seed, **size._asdict()) if isinstance(built, str) else built
        )
        run = functools.partial(
            _point, instance, policy, size, sizes.index(size), replicas, seed, selection, start, most
        )
        tasks_per_step = replicas * size.dispatchers * instance.total_rate
        counted = steps or max(LEAST_STEPS, math.ceil(PILOT_TASKS / tasks_per_step))
        warmup = _warmup(instance, start)
        point = run(counted, warmup)
        for _ in range(MOST_RESIZES if steps is None else 0):
            if abs(point.drift.item()) > SETTLED * point.drift_ci95.item():
                warmup *= 2
            elif point.percent_ci95.item() > TARGET * TOLERANCE:
                counted = math.ceil(counted * SAFETY * (point.percent_ci95.item() / TARGET) ** 2)
            else:
                break
            point = run(counted, warmup)
        parts.append(point)
        if progress is not None:
            progress(done + 1, len(plan))
    data = xr.merge(parts, join="outer", compat="no_conflicts", combine_attrs="drop")
    ordered = dict.fromkeys(policy if isinstance(policy, str) else policy.name for _, policy, _ in plan)
    data = data.sel(instance=names, policy=list(ordered))
    data = data.assign_coords(
        copies=("size", [s.copies for s in sizes]), dispatchers=("size", [s.dispatchers for s in sizes])
    )
    configuration = {"start": start, "loads": {i.name: round(i.load, 9) for i in instances}}
    data.attrs = {
        "title": "Reward per copy of the (m,n)-scaled system against its upper bound",
        **provenance(seed=seed, selection=selection, device=str(jax.local_devices()[0].device_kind)),
        "configuration": json.dumps(configuration),
    }
    return data


def _built(policy, instance, selection):
    """The policy, or its name where it is made for each size."""
    if policy == TUNED:
        return policy
    return build_policy(policy, instance, selection) if isinstance(policy, str) else policy(instance)


def _warmup(instance, start):
    service = instance.mean_duration.max()
    return math.ceil(
        WARMUP_SERVICES * service if start == "warm" else max(EMPTY_WARMUP_SERVICES * service, instance.max_duration)
    )


def _point(instance, policy, size, place, replicas, seed, selection, start, most, steps, warmup):
    begun = time.perf_counter()
    halves = simulate_scaled(
        instance, policy, copies=size.copies, dispatchers=size.dispatchers, steps=steps, warmup=warmup, replicas=replicas,
        seed=seed, start=lp_fixed_point(instance, solve_occ(instance, 0.0, selection)) if start == "warm" else None,
        most_dispatchers=most,
    )  # fmt: skip
    seconds = time.perf_counter() - begun
    arrived = sum(half.arrived.sum(axis=0) for half in halves)
    blocked = sum(half.blocked.sum(axis=0) for half in halves) / np.maximum(arrived, 1)
    check_served(blocked)
    bound, slope = occ_bound(instance, float(blocked.mean()))

    def per_copy(windows):
        total = sum(np.einsum("vr,vrb->b", instance.scores, half.served, dtype=np.float64) for half in windows)
        return total / (sum(half.steps for half in windows) * size.copies * size.dispatchers)

    rewards = per_copy(halves)
    reward, share = estimate(rewards), estimate(percent_of_bound(rewards, blocked, bound, slope))
    drift = estimate(100 * (per_copy(halves[1:]) - per_copy(halves[:1])) / bound)
    at = ("instance", "size", "policy")
    values = {
        "reward_per_step": reward.mean, "reward_ci95": reward.ci95, "percent_of_occ_ub": share.mean,
        "percent_ci95": share.ci95, "blocking": blocked.mean(), "blocking_ci95": estimate(blocked).ci95, "occ_ub": bound,
        "drift": drift.mean, "drift_ci95": drift.ci95, "steps": float(steps), "warmup": float(warmup), "seconds": seconds,
        "tasks": float(arrived.sum()), "load": round(instance.load, 9), "occ_ub_0": occ_upper_bound(instance, 0.0),
        "kiid_ub": solve_kiid(instance).objective,
    }  # fmt: skip
    variables: dict = {key: (at, np.full((1, 1, 1), value, dtype=float)) for key, value in values.items()}
    variables["reward"] = ((*at, "replica"), rewards[None, None, None])
    return xr.Dataset(variables, {"instance": [instance.name], "size": [place], "policy": [policy.name]})


ROW_KEYS = (
    "instance", "load", "copies", "dispatchers", "policy", "reward_per_step", "reward_ci95", "percent_of_occ_ub", "percent_ci95",
    "blocking", "occ_ub", "occ_ub_0", "kiid_ub", "steps", "replicas", "seconds", "drift", "drift_ci95",
)  # fmt: skip


def rows(data: xr.Dataset) -> list[dict]:
    """Returns one dict per instance, size and policy with the keys `ROW_KEYS` and plain Python values."""
    out = []
    for instance in data.instance.values:
        for policy in data.policy.values:
            for place in range(data.sizes["size"]):
                cell = data.sel(instance=instance, policy=policy).isel(size=place)
                known = {"instance": str(instance), "policy": str(policy), "replicas": data.sizes["replica"]}
                row: dict = {key: known[key] if key in known else cell[key].item() for key in ROW_KEYS}
                row |= {key: int(row[key]) for key in ("copies", "dispatchers", "steps")}
                out.append({key: None if value != value else value for key, value in row.items()})
    return out
