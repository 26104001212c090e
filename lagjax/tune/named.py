"""Names of policies, the tuned one included."""

from __future__ import annotations

from lagjax.exact.levels import LEVELS, level_policy
from lagjax.instance import Instance
from lagjax.policies.registry import POLICIES, build_policy
from lagjax.policies.table import Policy

TUNED = "tuned"
NAMES = (*POLICIES, TUNED)  # at any number of copies
SINGLE_NAMES = (*NAMES, LEVELS)  # at one copy of every server
SLOW = (TUNED, LEVELS)  # to build


def named_policy(
    name: str, instance: Instance, selection: str = "canonical", *, seed: int = 0, copies: int = 1, dispatchers: int = 1
) -> Policy:
    """Builds any policy of SINGLE_NAMES; only `tuned` depends on the seed and the size.

    Raises:
      InputError: no such policy, or an argument outside its range.
    """
    if name == TUNED:
        from lagjax.tune.tuned import tune

        return tune(instance, copies=copies, dispatchers=dispatchers, seed=seed).policy
    if name == LEVELS:
        return level_policy(instance)
    return build_policy(name, instance, selection)
