"""The slope of a quantity against size on a log-log plot."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Slope(NamedTuple):
    """A slope and its standard error."""

    value: float
    error: float


def log_log_slope(x, values) -> Slope:
    """Fits log mean(values) on log x by least squares, over every x alike.

    The error is that of the means alone (the delta method over replicas, which may be paired: replica b the same tasks at
    every x); it says nothing of how straight the line is.

    Args:
      x: (S,) positive sizes.
      values: (S, B) of B replicas at each size, of positive means.

    Returns:
      The slope; NaN where fewer than two sizes differ, and a NaN error from a single replica.
    """
    x, values = np.log(np.asarray(x, np.float64)), np.asarray(values, np.float64)
    centred, mean = x - x.mean(), values.mean(axis=1)
    spread = float(np.sum(centred**2))
    if spread == 0 or not np.all(mean > 0):
        return Slope(float("nan"), float("nan"))
    share = centred / spread
    replicas = values.shape[1]
    per_replica = share @ (values / mean[:, None])  # to first order, what each replica adds to the slope
    error = per_replica.std(ddof=1) / np.sqrt(replicas) if replicas > 1 else np.nan
    return Slope(float(share @ np.log(mean)), float(error))
