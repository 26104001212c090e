"""Sharing a tier by a race: copies drawn one after another without replacement, with probability proportional to weight."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

from lagjax.allocate.waterfill import spent_by_tier
from lagjax.models.hypergeometric import TRIES, hypergeometric


def race(budget, capacity, tier, weight, keys, event, turn):
    """Shares a budget among tiers in order; within the last one the winners are random.

    Args:
      budget: (B,) int32; capacity: (R, B) int32; tier: (R, B) int32; weight: (R, B) float32, positive.
      keys, event, turn: stream keys, event number and task number of the random words.

    Returns:
      (R, B) int32 summing to the budget (or to the capacity, if less). With equal weights in the tier, exactly the
      multivariate hypergeometric law, one server after another.
    """
    before, whole = spent_by_tier(budget, capacity, tier)
    partly = (before < budget) & (before + whole > budget)
    rivals = jnp.where(partly, capacity, 0)
    left = jnp.max(jnp.where(partly, budget - before, 0), axis=0)

    def draw(carry, server):
        left, rivals_left = carry
        rival, number = server
        slot = jnp.broadcast_to((turn * jnp.uint32(capacity.shape[0]) + number) * jnp.uint32(TRIES), rival.shape)
        won = hypergeometric(keys, event, slot, rival, jnp.maximum(rivals_left, 1), left)
        return (left - won, rivals_left - rival), won

    numbers = jnp.arange(capacity.shape[0], dtype=jnp.uint32)
    _, won = lax.scan(draw, (left, jnp.sum(rivals, axis=0)), (rivals, numbers))
    return jnp.where(partly, won, jnp.where(before + whole <= budget, capacity, 0))
