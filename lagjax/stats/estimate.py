"""Means and 95% confidence intervals from independent replicas (Student's t over replicas)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit  # scipy.stats has it too, and takes a second of a start

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A mean and the half-width of its 95% confidence interval; NaN half-width from a single replica."""

    mean: np.ndarray
    ci95: np.ndarray


def estimate(values, confidence: float = CONFIDENCE) -> Estimate:
    """Estimates the mean of independent, identically distributed replicas along the last axis."""
    values = np.asarray(values, dtype=np.float64)
    n = values.shape[-1]
    if n < 2:
        return Estimate(values.mean(axis=-1), np.full(values.shape[:-1], np.nan))
    spread = values.std(axis=-1, ddof=1) / np.sqrt(n)
    return Estimate(values.mean(axis=-1), stdtrit(n - 1, (1 + confidence) / 2) * spread)


def ratio_of_means(numerator, denominator) -> np.ndarray:
    """Returns per-replica values whose mean is mean(numerator) / mean(denominator), both of the same replicas.

    `estimate` of them gives that ratio with its interval. To first order (the delta method): what each replica adds to the
    ratio, its errors in numerator and denominator being correlated. The mean of the ratios themselves is biased, and the
    interval of the numerator alone is that of a ratio to a number without error.

    Args:
      numerator, denominator: (..., B) values of B independent replicas, which broadcast together; the denominator's mean is
        not 0 (where it is, the values are not finite).
    """
    numerator, denominator = np.asarray(numerator, dtype=np.float64), np.asarray(denominator, dtype=np.float64)
    base = denominator.mean(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = numerator.mean(axis=-1, keepdims=True) / base
        return ratio + (numerator - ratio * denominator) / base


def percent_of_bound(reward, blocked, bound: float, slope: float) -> np.ndarray:
    """Returns per-replica values whose mean is reward as a percentage of OPT(OCC-LP(B_hat)), B_hat from these replicas.

    `estimate` of them gives that percentage with its interval, and `estimate` of the difference of two policies' values
    their paired difference. This is `ratio_of_means`, since an error in B_hat moves the bound by `slope`. A number without
    error, such as an optimum, belongs beside the bound at the exact B instead.

    Args:
      reward: (..., B) reward per step of each replica.
      blocked: (B,) fraction of tasks lost in each replica.
      bound: OPT(OCC-LP(B_hat)) at B_hat = mean(blocked), reward per step.
      slope: its derivative with respect to B, reward per step.
    """
    blocked = np.asarray(blocked, dtype=np.float64)
    return 100 * ratio_of_means(reward, bound + slope * (blocked - blocked.mean()))
