"""The named policies."""

from __future__ import annotations

from collections.abc import Callable

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.kiid import KiidSolution, solve_kiid
from lagjax.lp.occ import OccSolution, solve_occ
from lagjax.policies.baselines import greedy, safe_choice, uniform
from lagjax.policies.lag import lag
from lagjax.policies.table import Policy
from lagjax.policies.whittle import whittle, whittle_rate

POLICIES: dict[str, Callable[[Instance, str], Policy]] = {
    "lag": lambda instance, selection: lag(instance, solve_occ(instance, selection=selection)),
    "greedy": lambda instance, selection: greedy(instance),
    "random": lambda instance, selection: uniform(instance),
    "alg-sc-lp": lambda instance, selection: safe_choice(instance, solve_kiid(instance, selection)),
    "whittle": lambda instance, selection: whittle(instance),
    "whittle-rate": lambda instance, selection: whittle_rate(instance),
}


def build_policy(
    name: str, instance: Instance, selection: str = "canonical", solution: OccSolution | KiidSolution | None = None
) -> Policy:
    """Builds a named policy for an instance.

    Args:
      name: one of POLICIES.
      instance: the system.
      selection: which LP optimum "lag" and "alg-sc-lp" use; see `lagjax.lp.selection`. The others ignore it.
      solution: an OccSolution for "lag" or a KiidSolution for "alg-sc-lp" to use instead of solving.

    Raises:
      InputError: no such policy (the message lists them), or a solution that the policy cannot use.
    """
    if name not in POLICIES:
        raise InputError(f"no policy '{name}'; choose from {', '.join(POLICIES)}")
    if solution is None:
        return POLICIES[name](instance, selection)
    if name == "lag" and isinstance(solution, OccSolution):
        return lag(instance, solution)
    if name == "alg-sc-lp" and isinstance(solution, KiidSolution):
        return safe_choice(instance, solution)
    raise InputError(f"policy '{name}' cannot use a {type(solution).__name__}; leave solution out")
