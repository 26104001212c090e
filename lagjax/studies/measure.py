"""From exact counts to a cell: rewards per step, and the bounds at the blocking that was measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from lagjax.engine.devices import device_name
from lagjax.engine.run import Counts
from lagjax.exact import known_optimum
from lagjax.instance import Instance
from lagjax.lp import occ_bound, occ_upper_bound, solve_kiid
from lagjax.policies import PolicyLike, build_policy, selection_matters
from lagjax.stats import left_of_start, warmup_steps
from lagjax.studies.cell import Cell, check_served

DEFAULT_ARRIVALS = 6144  # tasks counted per replica when the caller names no number of steps


class Sums(NamedTuple):
    """What is kept of the counts of some replicas.

    Attributes:
      earned: (P, B) reward of the counted tasks.
      blocked: (B,) int64 tasks lost.
      served: (P, V, R) int64 servers given, summed over replicas.
      early: (P + 2, B) float64 of about the first half of the counted tasks: reward under each policy, tasks lost, and tasks; NaN
        where they were not counted apart.
    """

    earned: np.ndarray
    blocked: np.ndarray
    served: np.ndarray
    early: np.ndarray


def arrivals_and_warmup(instance: Instance, steps: int | None) -> tuple[int, int]:
    """Returns tasks counted and dropped per replica for a number of steps (None: the default number of tasks)."""
    counted = DEFAULT_ARRIVALS if steps is None else max(1, math.ceil(steps * instance.total_rate - 1e-9))
    dropped = warmup_steps(instance.mean_duration.max(), instance.max_duration, "empty")
    return counted, math.ceil(dropped * instance.total_rate)


def summed(instance: Instance, counts: Counts, early: np.ndarray | None = None) -> Sums:
    """Reduces exact counts, the same way for every replica whatever stands beside it; `early` as from `early_sums`."""
    earned = _earned(instance, counts)
    if early is None:
        early = np.full((len(earned) + 2, earned.shape[1]), np.nan)
    return Sums(earned, counts.blocked.sum(axis=0, dtype=np.int64), counts.served.sum(axis=3, dtype=np.int64), early)


def early_sums(instance: Instance, counts: Counts) -> np.ndarray:
    """Reduces the counts of the first half to `Sums.early`."""
    lost = counts.blocked.sum(axis=0, dtype=np.int64)
    return np.vstack([_earned(instance, counts), lost, np.full_like(lost, counts.arrivals)])


def _earned(instance, counts):
    earned = np.zeros((counts.served.shape[0], counts.served.shape[-1]))
    for v, r in zip(
        *np.nonzero(instance.scores), strict=True
    ):  # in this order: a contraction's may depend on the shape
        earned += instance.scores[v, r] * counts.served[:, v, r]
    return earned


def joined(parts: Sequence[Sums]) -> Sums:
    """The sums of all replicas, from those of consecutive parts."""
    earned, blocked, early = (
        np.concatenate([getattr(p, f) for p in parts], axis=-1) for f in ("earned", "blocked", "early")
    )
    return Sums(earned, blocked, np.sum([part.served for part in parts], axis=0), early)


def measure(
    instance: Instance,
    policies: Sequence[PolicyLike],
    counts: Counts,
    *,
    warmup: int = 0,
    steps=None,
    kiid: bool = True,
) -> Cell:
    """Turns exact counts into rewards per step and compares them with the bounds at the blocking that was measured.

    With `kiid` false OPT(KIID), which is for reference only, is not solved.
    """
    policies = [build_policy(policy, instance) for policy in policies]
    return measured(instance, policies, summed(instance, counts), counts.arrivals, warmup, steps, kiid)


def measured(
    instance: Instance, policies, sums: Sums, arrivals: int, warmup: int, steps: int | None, kiid: bool
) -> Cell:
    """`measure`, from what is kept of the counts."""
    per_step = instance.total_rate / arrivals
    blocked = sums.blocked / arrivals
    check_served(blocked)
    occ_ub, slope = occ_bound(instance, float(blocked.mean()))
    best = known_optimum(instance)
    left = left_of_start(*_halves(sums, arrivals))
    points = 100 * instance.total_rate / occ_ub
    stationary = left.stationary()
    return Cell(
        instance=instance,
        policies=tuple(policies),
        reward=sums.earned * per_step,
        blocked=blocked,
        assigned=sums.served / blocked.size * per_step,
        occ_ub=occ_ub,
        occ_ub_0=occ_upper_bound(instance, 0.0),
        kiid_ub=solve_kiid(instance).objective if kiid else None,
        optimum=None if best is None else best.reward,
        optimum_occ_ub=None if best is None else best.occ_ub,
        occ_slope=slope,
        steps=round(arrivals / instance.total_rate) if steps is None else int(steps),
        warmup=round(warmup / instance.total_rate),
        drift=points * left.drift.mean[:-1],
        drift_ci95=points * left.drift.ci95[:-1],
        stationary=np.minimum(stationary[:-1], stationary[-1]),  # a reward is compared at the blocking measured
        selection_matters=np.array([selection_matters(policy.name, instance) for policy in policies]),
        device=device_name(),
    )


def _halves(sums, arrivals):
    """(P + 1, B) reward of each policy and tasks lost, per task, in the first half and in the second."""
    *early, counted = sums.early
    whole = np.vstack([sums.earned, sums.blocked])
    return early / counted, (whole - early) / (arrivals - counted)
