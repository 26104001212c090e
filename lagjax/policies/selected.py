"""Whether a policy depends on which optimum of its linear program is taken (Lag, Appendix A)."""

from __future__ import annotations

import math

import numpy as np

from lagjax.instance import Instance
from lagjax.lp import solve_occ
from lagjax.policies.registry import build_policy
from lagjax.policies.table import Policy, strict_order


def selection_matters(name: str, instance: Instance) -> float:
    """1 if the program behind a named policy has optima that make different policies, 0 if not, NaN if that is not known.

    Optima are solved for only until two policies differ, and not at all where there is one only. A solution that is optimal
    within a gap, as the dual method's, does not tell.
    """
    if name == "lag":
        central = solve_occ(instance)
        if central.method == "dual":
            return math.nan
        others = [] if central.face_dimensions == (0, 0) else ["vertex"]  # "interior" is the same point
    elif name == "alg-sc-lp":
        others = ["interior", "vertex"]
    else:
        return 0.0
    alike = np.unique(instance.scores, axis=1, return_inverse=True)[1].ravel()  # servers with equal scores
    first = build_policy(name, instance)
    return float(not all(_same_choice(first, build_policy(name, instance, other), alike) for other in others))


def _same_choice(one: Policy, other: Policy, alike: np.ndarray) -> bool:
    order, another = strict_order(one), strict_order(other)
    if order is not None and another is not None:
        return np.array_equal(alike[np.argsort(order, axis=1)], alike[np.argsort(another, axis=1)])
    return np.array_equal(one.tier, other.tier) and np.allclose(one.weight, other.weight, atol=1e-3)
