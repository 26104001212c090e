"""The named policies, and whether they depend on which optimum of their program is taken (Lag, Appendix A)."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.kiid import KiidSolution, solve_kiid
from lagjax.lp.occ import OccSolution, solve_occ
from lagjax.policies.baselines import greedy, safe_choice, uniform
from lagjax.policies.lag import lag
from lagjax.policies.table import Policy, check_shape, from_priorities, strict_order
from lagjax.policies.whittle import whittle, whittle_rate

POLICIES: dict[str, Callable[[Instance, str], Policy]] = {
    "lag": lambda instance, selection: lag(instance, solve_occ(instance, selection=selection)),
    "greedy": lambda instance, selection: greedy(instance),
    "random": lambda instance, selection: uniform(instance),
    "alg-sc-lp": lambda instance, selection: safe_choice(instance, solve_kiid(instance, selection)),
    "whittle": lambda instance, selection: whittle(instance),
    "whittle-rate": lambda instance, selection: whittle_rate(instance),
}


PolicyLike = str | Policy | Callable[[Instance], Any] | ArrayLike  # what every argument that is a policy may be


def build_policy(
    policy: PolicyLike,
    instance: Instance,
    selection: str = "canonical",
    solution: OccSolution | KiidSolution | None = None,
) -> Policy:
    """Returns the policy for an instance that an argument means.

    Args:
      policy: one of the names of POLICIES, a `Policy`, a function from the instance to one of the others, or a (V, R) table of
        priorities as `from_priorities` takes it.
      instance: the system.
      selection: which LP optimum "lag" and "alg-sc-lp" use; see `lagjax.lp.selection`. The others ignore it.
      solution: an OccSolution for "lag" or a KiidSolution for "alg-sc-lp" to use instead of solving.

    Raises:
      InputError: no such policy (the message lists them), one of another shape than the instance, or a solution that the policy
        cannot use.
    """
    if isinstance(policy, str):
        return _named(policy, instance, selection, solution)
    if solution is not None:
        raise InputError(f"solution goes with the policies lag and alg-sc-lp, not with {policy!r}; leave it out")
    if callable(policy):
        return build_policy(policy(instance), instance, selection)
    made = policy if isinstance(policy, Policy) else from_priorities(policy)
    check_shape(made, instance, levels=True)
    return made


def _named(name, instance, selection, solution):
    if name not in POLICIES:
        raise InputError(f"no policy '{name}'; choose from {', '.join(POLICIES)}")
    if solution is None:
        return POLICIES[name](instance, selection)
    if name == "lag" and isinstance(solution, OccSolution):
        return lag(instance, solution)
    if name == "alg-sc-lp" and isinstance(solution, KiidSolution):
        return safe_choice(instance, solution)
    raise InputError(f"policy '{name}' cannot use a {type(solution).__name__}; leave solution out")


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
