"""The waterfill: tiers fill in order, and the tier in which the budget ends is shared by weight.

Lag, Appendix A, Definition A.1, for any number of tiers: every server with a positive or negative index is a tier of its own,
the servers with index zero and positive weight are one tier. Servers lie on axis -2 and batches on axis -1 (and before), as in
the simulators.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lagjax.allocate.tiers import budget_ends


def waterfill(budget, capacity, tier, weight):
    """Shares a budget among servers.

    Args:
      budget: (..., B) amount to hand out, 0 or more.
      capacity: (..., R, B) most that each server can take, 0 or more.
      tier: (..., R, B), or (..., R, 1) for a whole batch, integers in [0, R); lower ones fill first.
      weight: as tier, positive; within a tier u_r = min(capacity_r, theta weight_r), theta the smallest that uses what is
        left of the budget, or everything where there is not enough capacity.

    Returns:
      (..., R, B) amounts in [0, capacity], summing to min(budget, total capacity). Exact to rounding (the servers that fill
      up are found in at most R rounds, then theta is a quotient), and differentiable almost everywhere in budget, capacity
      and weight. In the l1 norm it is 2-Lipschitz in the capacities (Lag, Lemma 4.3, has 4): a server with more capacity
      takes no less and by that much no more, and the others take no more and together no less than that.
    """
    full, partly, left = budget_ends(budget, capacity, tier)
    room, share = jnp.where(partly, capacity, 0), jnp.where(partly, weight, 0)
    level = lax.stop_gradient(_level(*lax.stop_gradient((left, room, share))))
    filled = room <= level * share
    amount = jnp.where(filled, room, _level_given(left, room, share, filled) * share)
    return jnp.where(full, capacity, amount)


def _level(left, room, share):
    """theta: servers full at a level are full at the final one, so it rises until no more fill up."""

    def rise(state):
        level, _ = state
        higher = jnp.maximum(level, _level_given(left, room, share, room <= level * share))
        return higher, jnp.any(higher > level)

    start = jnp.zeros_like(left)[..., None, :]
    return lax.while_loop(lambda state: state[1], rise, (start, jnp.asarray(True)))[0]


def _level_given(left, room, share, filled):
    """theta, given which servers of the partly filled tier are full."""
    used = jnp.sum(jnp.where(filled, room, 0), axis=-2, keepdims=True)
    open_share = jnp.sum(jnp.where(filled, 0, share), axis=-2, keepdims=True)
    return (left[..., None, :] - used) / jnp.where(open_share > 0, open_share, 1)
