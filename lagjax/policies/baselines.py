"""What LAG is compared with: greedy, random, and ALG-SC-LP's sampling in the proportions of the KIID LP."""

from __future__ import annotations

import numpy as np

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.kiid import KiidSolution
from lagjax.policies.table import TIE_TOLERANCE, Policy, make_policy, tie_groups

_EQUAL_SCORES = 1e-12  # relative to max s_vr


def greedy_tiers(instance: Instance) -> np.ndarray:
    """(V, R) rank of each server's score for each type, the largest first; equal scores share a rank."""
    scores = np.asarray(instance.scores, dtype=np.float64)
    return tie_groups(scores, _EQUAL_SCORES * scores.max())


def greedy(instance: Instance) -> Policy:
    """The k free servers with the largest s_vr, ties at random at every arrival (Lag, section 5.1)."""
    return make_policy("greedy", greedy_tiers(instance))


def uniform(instance: Instance) -> Policy:
    """k free servers, uniformly at random (Lag, section 5.1)."""
    return make_policy("random", np.zeros((instance.num_types, instance.num_servers)))


def safe_choice(instance: Instance, solution: KiidSolution) -> Policy:
    """ALG-SC-LP (Lag, section 5.1).

    Servers are drawn without replacement with probability proportional to x*_vr among the free ones; when no free server has
    positive x*, greedy chooses. With the "interior" selection the entries with x* = 0 are drawn next, in the proportions in which
    they vanish along the central path (what is left when an interior-point solution is used as it comes, with its tiny positive
    entries), and greedy has nothing left to choose.

    Raises:
      InputError: the solution is of another shape.
    """
    shape = (instance.num_types, instance.num_servers)
    if solution.assignment_rate.shape != shape:
        raise InputError(f"solution has rates of shape {solution.assignment_rate.shape}; the instance has {shape}")
    share = solution.assignment_rate / np.asarray(instance.arrival_rate)[:, None]
    drawn, vanishing = share > TIE_TOLERANCE, solution.vanishing_weight > 0
    tier = np.where(drawn, 0, np.where(vanishing, 1, 2 + greedy_tiers(instance)))
    weight = np.where(drawn, share, np.where(vanishing, solution.vanishing_weight, 1.0))
    return make_policy("alg-sc-lp", tier, weight)
