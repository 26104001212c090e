"""Names of policies, the tuned one included."""

from __future__ import annotations

from lagjax.errors import InputError
from lagjax.exact.levels import LEVELS, level_policy
from lagjax.instance import Instance
from lagjax.policies.registry import POLICIES, PolicyLike, build_policy
from lagjax.policies.table import Policy

TUNED = "tuned"
NAMES = (*POLICIES, TUNED)  # at any number of copies
SINGLE_NAMES = (*NAMES, LEVELS)  # at one copy of every server
SLOW = (TUNED, LEVELS)  # to build


def named_policy(
    policy: PolicyLike,
    instance: Instance,
    selection: str = "canonical",
    *,
    seed: int = 0,
    copies: int = 1,
    dispatchers: int = 1,
) -> Policy:
    """As `build_policy`, with all the names of SINGLE_NAMES; only `tuned` depends on the seed and the size.

    Raises:
      InputError: no such policy, or an argument outside its range.
    """
    if isinstance(policy, str) and policy not in SINGLE_NAMES:
        raise InputError(f"no policy '{policy}'; choose from {', '.join(SINGLE_NAMES)}")
    if isinstance(policy, str) and policy == TUNED:
        from lagjax.tune.tuned import tune

        return tune(instance, copies=copies, dispatchers=dispatchers, seed=seed).policy
    if isinstance(policy, str) and policy == LEVELS:
        return level_policy(instance)
    if callable(policy):
        return named_policy(policy(instance), instance, selection, seed=seed, copies=copies, dispatchers=dispatchers)
    return build_policy(policy, instance, selection)
