"""Service laws as probability vectors: entry i of a law is P(D = i + 1), D in whole steps.

A law is a plain float64 array, so that any of them can be inspected, plotted, mixed or differentiated.
"""

from __future__ import annotations

import math

import numpy as np

from lagjax.errors import InputError

GEOMETRIC_TAIL = 1e-9
_MAX_SUPPORT = 1_000_000


def deterministic(steps: int) -> np.ndarray:
    """Returns the law of D = `steps` exactly.

    Raises:
      InputError: `steps` is not a whole number of steps, 1 or more.
    """
    if not _is_number(steps) or steps != math.floor(steps) or steps < 1:
        raise InputError(f"deterministic duration is {steps!r}; give a whole number of steps, 1 or more")
    law = np.zeros(_checked_support(int(steps)))
    law[-1] = 1.0
    return law


def geometric(mean: float, tail: float = GEOMETRIC_TAIL) -> np.ndarray:
    """Returns the geometric law on {1, 2, ...} with the given mean in steps, truncated and renormalised.

    The support ends at the first d with P(D > d) < `tail` before truncation (1e-9 by default), which
    moves the mean by less than `tail * (d + mean)` steps.
    """
    if not _is_number(mean) or mean < 1:
        raise InputError(f"geometric mean duration is {mean!r} steps; give a number of steps, 1 or more")
    if not 0 < tail < 1:
        raise InputError(f"geometric tail is {tail!r}; give a probability between 0 and 1")
    if mean == 1:
        return np.ones(1)
    log_stay = math.log1p(-1 / mean)
    support = _checked_support(max(1, math.ceil(math.log(tail) / log_stay)))
    law = np.exp(log_stay * np.arange(support)) / mean
    return law / law.sum()


def from_pmf(pmf) -> np.ndarray:
    """Returns a checked copy of a law given as P(D = 1), P(D = 2), ..., without trailing zeros.

    Raises:
      InputError: an entry is negative or not finite, or they do not sum to 1 within 1e-6.
    """
    try:
        law = np.array(pmf, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"service pmf is {pmf!r}; give numbers P(D = 1), P(D = 2), ...") from None
    if law.ndim != 1 or law.size == 0:
        raise InputError(f"service pmf has shape {law.shape}; give a non-empty vector P(D = 1), P(D = 2), ...")
    if not np.all(np.isfinite(law)) or law.min() < 0:
        worst = int(np.argmin(np.where(np.isfinite(law), law, -np.inf)))
        raise InputError(f"service pmf entry {worst} is {law[worst]!r}; probabilities are finite and not negative")
    if abs(law.sum() - 1) > 1e-6:
        raise InputError(f"service pmf sums to {law.sum():.9g}; probabilities sum to 1")
    law = law[: int(np.flatnonzero(law)[-1]) + 1]
    _checked_support(law.size)
    return law / law.sum()


def from_sample(times) -> np.ndarray:
    """Returns the empirical law of observed times, each rounded to the nearest whole step and at least 1.

    Args:
      times: (n,) positive durations in steps (days, if a step is a day); rounding to nearest keeps the mean.
    """
    try:
        times = np.asarray(times, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise InputError(f"duration sample is {times!r}; give numbers") from None
    if times.size == 0:
        raise InputError("duration sample is empty; give at least one observed time")
    bad = np.flatnonzero(~np.isfinite(times) | (times <= 0))
    if bad.size:
        raise InputError(f"duration sample entry {bad[0]} is {times[bad[0]]!r}; times are positive and finite")
    steps = np.maximum(np.rint(times), 1)
    _checked_support(int(min(steps.max(), 2.0**53)))
    return np.bincount(steps.astype(np.int64) - 1) / steps.size


def mean_duration(laws) -> np.ndarray:
    """Returns E[D] in steps of each law along the last axis of `laws`."""
    laws = np.asarray(laws)
    return np.einsum(
        "...i,i->...", laws, np.arange(1.0, laws.shape[-1] + 1)
    )  # BLAS would add in the order of its threads


def survival(laws) -> np.ndarray:
    """Returns P(D >= i), i = 1..d, of each law along the last axis of `laws`."""
    return np.cumsum(np.asarray(laws)[..., ::-1], axis=-1)[..., ::-1]


def stack_laws(laws) -> np.ndarray:
    """Returns (V, d) laws padded with zero probability to the longest support d."""
    d = max(len(law) for law in laws)
    return np.stack([np.pad(np.asarray(law, dtype=np.float64), (0, d - len(law))) for law in laws])


def _is_number(value):
    try:
        return not isinstance(value, (bool, str)) and math.isfinite(value)
    except TypeError:
        return False


def _checked_support(d: int) -> int:
    if d > _MAX_SUPPORT:
        raise InputError(f"durations reach {d} steps; count time in longer steps to stay at {_MAX_SUPPORT} or below")
    return d
