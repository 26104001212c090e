"""What a stationary estimate still owes to its start, measured from the two halves of the run.

A start shows in two ways. It fades while the run counts: then the halves differ by more than chance. Or it fades so slowly that
the halves are alike: then a replica that was high in the first half is high in the second too, and the halves say nothing.
Queues near saturation move so slowly that both are faint for long; how slowly at least is known: see `pooled_relaxation`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr, stdtr, stdtrit

from lagjax.stats.estimate import Estimate, estimate

NOT_STATIONARY = "not stationary"  # what tables say of such a figure
FALSE_ALARM = 1e-4  # chance with which a figure is called so though nothing is left of its start
RUN_ON = 3e-3  # the same for a decision that costs only time: to run on
RELAXATIONS = 3.0  # relaxation times that a warm-up lasts at least: a twentieth of what the start was off is left
WARMUP_SERVICES = {"warm": 3, "empty": 10}  # mean service times that a loss system drops after such a start
SPAN = 2.0  # relaxation times that a half should last
# The correlation of two adjacent windows of SPAN relaxation times each, where correlations decay exponentially.
MEMORY = (1 - math.exp(-SPAN)) ** 2 / (2 * (SPAN - 1 + math.exp(-SPAN)))


class Left(NamedTuple):
    """What is left of the start of each figure; NaN where there are too few replicas to say.

    Attributes:
      drift: the second half less the first.
      by_drift: chance of so large a drift where nothing is left of the start.
      memory: rank correlation over replicas between the halves; of ranks, so that one burst at the middle does not make it.
      by_memory: chance of so large a correlation where a half lasts SPAN relaxation times.
    """

    drift: Estimate
    by_drift: np.ndarray
    memory: np.ndarray
    by_memory: np.ndarray

    def stationary(self, false_alarm: float = FALSE_ALARM) -> np.ndarray:
        """1 where nothing is seen to be left, 0 where something is, NaN where that is not known."""
        least = np.fmin(self.by_drift, self.by_memory)
        return np.where(least < false_alarm, 0.0, np.where(np.isnan(self.by_drift), np.nan, 1.0))


def left_of_start(first, second, *, bundle: int = 1) -> Left:
    """Compares the two halves of what was counted.

    Args:
      first, second: (..., B) means over the halves of each replica, in the unit of the figure.
      bundle: replicas, one after another, that share random numbers; the means of bundles are independent, and at least half of a
        bundle's replicas count as such for the correlation.
    """
    first, second = np.asarray(first, np.float64), np.asarray(second, np.float64)
    apart = second - first
    drift = estimate(apart.reshape(*apart.shape[:-1], -1, bundle).mean(axis=-1))
    memory = _correlation(_ranks(first), _ranks(second))
    independent = first.shape[-1] // 2 if bundle > 1 else first.shape[-1]
    return Left(drift, _by_drift(drift, first.shape[-1] // bundle), memory, _by_memory(memory, independent))


def warmup_steps(mean_duration: float, longest: int, start: str) -> float:
    """Returns the steps that a loss system drops, such that it forgets its start as its tasks end.

    Args:
      mean_duration, longest: of services, in steps.
      start: "warm" (from the fluid fixed point), or "empty": then at least the longest service.
    """
    steps = WARMUP_SERVICES[start] * mean_duration
    return float(steps if start == "warm" else max(steps, longest))


def pooled_relaxation(arrival_rate: float, service_rate: float, room: float = math.inf) -> float:
    """Returns the relaxation time of an M/M/1/room queue: what one server as fast as all together would take.

    It is the inverse of the spectral gap, about 4 / (service_rate (1 - rho)^2) near saturation. Queues in parallel are seldom
    faster there, for their sum moves no faster than that one queue; infinite where nothing is left of the gap.
    """
    gap = arrival_rate + service_rate - 2 * math.sqrt(arrival_rate * service_rate) * math.cos(math.pi / (room + 1))
    return 1 / gap if gap > 0 and (math.isfinite(room) or arrival_rate < service_rate) else math.inf


def told(stationary) -> bool | None:
    """A value of `Left.stationary` as rows have it: True, False, or None where it is not known."""
    value = float(stationary)
    return None if math.isnan(value) else value == 1


def _by_drift(drift, count):
    if count < 2:
        return np.full(np.shape(drift.mean), np.nan)
    half = stdtrit(count - 1, 0.975)
    with np.errstate(divide="ignore", invalid="ignore"):
        chance = 2 * stdtr(count - 1, -np.abs(drift.mean) / drift.ci95 * half)
    return np.where(drift.mean == 0, 1.0, chance)  # also where nothing varies


def _ranks(values):
    """Ranks along the last axis, equal values with the mean of theirs."""

    def ranked(row):
        _, place, count = np.unique(row, return_inverse=True, return_counts=True)
        return (np.cumsum(count) - (count - 1) / 2)[place] if not np.isnan(row).any() else np.full(row.shape, np.nan)

    return np.apply_along_axis(ranked, -1, values)


def _correlation(first, second):
    first, second = (x - x.mean(axis=-1, keepdims=True) for x in (first, second))
    scale = np.sqrt((first**2).sum(axis=-1) * (second**2).sum(axis=-1))
    return np.divide((first * second).sum(axis=-1), scale, out=np.zeros_like(scale), where=scale > 0)


def _by_memory(memory, count):
    """Fisher's transform of a correlation is nearly normal with variance 1 / (count - 3)."""
    if count < 4:
        return np.full(np.shape(memory), np.nan)
    with np.errstate(divide="ignore"):
        return ndtr((math.atanh(MEMORY) - np.arctanh(np.minimum(memory, 1.0))) * math.sqrt(count - 3))
