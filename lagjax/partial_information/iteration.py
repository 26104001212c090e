"""Damped value iteration with a bracket.

For any V, the value exceeds V by between the least and the largest entry of TV - V, over 1 - beta (at beta = 1 these bracket the
mean reward itself).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lagjax.errors import InputError
from lagjax.partial_information.system import System

TOLERANCE = 1e-9  # width of a bracket, relative to K slots' worth of jobs per slot
MAX_SWEEPS = 100_000
_DAMPING = 0.7  # keeps what alternates from doing so for ever


class ExactReward(NamedTuple):
    """Discounted reward from the start, for ever; at discount 1 the mean reward per slot.

    Attributes:
      value: the middle of the bracket.
      lower, upper: bracket, with what truncating ages can change.
    """

    value: float
    lower: float
    upper: float


def iterate(
    operator: Callable[[np.ndarray], np.ndarray], v: np.ndarray, system: System, tolerance: float, counted=...
) -> tuple[np.ndarray, float, float]:
    """Applies `operator` from v until the bracket over the entries `counted` is narrow.

    Returns:
      V, and the least and the largest entry of TV - V.

    Raises:
      InputError: MAX_SWEEPS were not enough.
    """
    wide = tolerance * system.capacity
    for _ in range(MAX_SWEEPS):
        change = operator(v) - v
        low, high = change[counted].min(), change[counted].max()
        if high - low <= wide * (1 - system.discount if system.discount < 1 else 1):
            return v, float(low), float(high)
        v = v + _DAMPING * change
        # In the discounted problem a constant converges slowly by itself and at once if it is added; else it only grows.
        v = v + (low + high) / 2 / (1 - system.discount) if system.discount < 1 else v - v.min()
    raise InputError(f"value iteration did not settle in {MAX_SWEEPS:,} sweeps; ask for a coarser tolerance")


def bracket(here: float, low: float, high: float, discount: float) -> ExactReward:
    """The value of the start, from V there and the least and the largest entry of TV - V."""
    if discount < 1:
        low, high = here + low / (1 - discount), here + high / (1 - discount)
    return ExactReward(float((low + high) / 2), float(low), float(high))
