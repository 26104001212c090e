"""Means and 95% confidence intervals from independent replicas (Student's t over replicas)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.stats import t as student_t

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
    return Estimate(values.mean(axis=-1), student_t.ppf((1 + confidence) / 2, n - 1) * spread)


def percent_of_bound(reward, blocked, bound: float, slope: float) -> np.ndarray:
    """Returns per-replica values whose mean is reward as a percentage of OPT(OCC-LP(B_hat)), B_hat from these replicas.

    `estimate` of them gives that percentage with its interval, and `estimate` of the difference of two policies' values
    their paired difference. To first order (the delta method): an error in B_hat moves the bound by `slope`, and a
    replica's reward and blocking are correlated.

    Args:
      reward: (..., B) reward per step of each replica.
      blocked: (B,) fraction of tasks lost in each replica.
      bound: OPT(OCC-LP(B_hat)) at B_hat = mean(blocked), reward per step.
      slope: its derivative with respect to B, reward per step.
    """
    reward, blocked = np.asarray(reward, dtype=np.float64), np.asarray(blocked, dtype=np.float64)
    ratio = reward.mean(axis=-1, keepdims=True) / bound
    return 100 * (reward / bound - ratio * (slope / bound) * (blocked - blocked.mean()))
