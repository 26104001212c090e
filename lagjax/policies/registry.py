"""The named policies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.kiid import KiidSolution, solve_kiid
from lagjax.lp.occ import OccSolution, solve_occ
from lagjax.policies.greedy import greedy
from lagjax.policies.lag import lag
from lagjax.policies.safe_choice import safe_choice
from lagjax.policies.table import Policy, check_shape, from_priorities
from lagjax.policies.uniform import uniform
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
