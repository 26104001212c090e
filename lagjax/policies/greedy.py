"""Greedy: the best free servers for the task at hand."""

from __future__ import annotations

import numpy as np

from lagjax.instance import Instance
from lagjax.policies.table import Policy, make_policy, tie_groups

_EQUAL_SCORES = 1e-12  # relative to max s_vr


def greedy_tiers(instance: Instance) -> np.ndarray:
    """(V, R) rank of each server's score for each type, the largest first; equal scores share a rank."""
    scores = np.asarray(instance.scores, dtype=np.float64)
    return tie_groups(scores, _EQUAL_SCORES * scores.max())


def greedy(instance: Instance) -> Policy:
    """The k free servers with the largest s_vr, ties at random at every arrival (Lag, section 5.1)."""
    return make_policy("greedy", greedy_tiers(instance))
