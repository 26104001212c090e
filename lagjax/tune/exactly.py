"""The search on systems small enough for exact chains: no noise, so the best of all that was evaluated is taken."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lagjax.errors import InputError
from lagjax.exact.groups import single_tiers
from lagjax.exact.orders import best_fixed_order, count_orders
from lagjax.instance import Instance
from lagjax.policies.table import Policy, make_policy
from lagjax.tune.candidates import lag_policies, named_policies, price_policies
from lagjax.tune.gradient import gradient_policies
from lagjax.tune.moves import tier_moves

Reward = Callable[..., float]  # (tier, weight) to reward per step
MAX_ORDERS = 5_000  # fixed orders are enumerated as long as there are no more
MAX_PARTS = 3
MAX_EVALUATIONS = 3000  # of the local search
_BETTER = 1e-9  # relative: a gain below this changes nothing


class Found(NamedTuple):
    """What a search ends with.

    Attributes:
      policy: the one chosen.
      tried: policies evaluated.
    """

    policy: Policy
    tried: int


def search_exactly(instance: Instance, reward: Callable[..., float]) -> Found:
    """Evaluates named policies, LAG at other prices and fixed orders, and climbs from the best of them.

    Where fixed orders are too many to enumerate, orders from gradient steps take their place.

    Args:
      instance: the system.
      reward: from `lagjax.exact.many.tier_rewards`.
    """
    starts = [*lag_policies(instance), *named_policies(instance), *price_policies(instance)]
    orders, enumerated = _orders(instance)
    starts += orders
    tried = len(starts) + enumerated
    best, value = starts[0], reward(*single_tiers(starts[0]))
    for policy in starts[1:]:
        other = reward(*single_tiers(policy))
        if other > value * (1 + _BETTER):
            best, value = policy, other
    policy, steps = _climb(best, value, reward)
    return Found(policy, tried + steps)


def _orders(instance: Instance) -> tuple[list[Policy], int]:
    """The best fixed order and how many others were enumerated, or what gradient steps find where they are too many."""
    for parts in range(MAX_PARTS, 0, -1):
        if count_orders(instance, parts) <= MAX_ORDERS:
            try:
                best = best_fixed_order(instance, parts)
            except InputError:  # its chain is too large
                break
            return [best.policy], best.candidates - 1
    return gradient_policies(instance), 0


def _climb(start: Policy, value: float, reward: Reward) -> tuple[Policy, int]:
    """Takes the best of all single moves as long as one is better; servers that share a tier then do so by even chances."""
    tier, weight = single_tiers(start)
    if np.unique(weight).size > 1:  # uneven shares stay as they are
        return start, 0
    tier, evaluations, moved = np.asarray(tier, dtype=np.int64), 0, False
    while True:
        best, found = value, None
        for other in tier_moves(tier):
            if evaluations >= MAX_EVALUATIONS:
                break
            evaluations += 1
            gained = reward(other, weight)
            if gained > best * (1 + _BETTER):
                best, found = gained, other
        if found is None:
            break
        tier, value, moved = found, best, True
    return (make_policy(f"{start.name}, climbed", tier) if moved else start), evaluations
