"""The waterfill: tiers fill in order, and the tier in which the budget runs out is shared by weight.

Lag, Appendix A, Definition A.1, for any number of tiers: every server with a positive or negative index is a tier of its own,
the servers with index zero and positive weight are one tier. Servers lie on axis -2 and batches on axis -1 (and before), as in
the simulators.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax


def waterfill(budget, capacity, tier, weight):
    """Shares a budget among servers.

    Args:
      budget: (..., B) amount to hand out, 0 or more.
      capacity: (..., R, B) most that each server can take, 0 or more.
      tier: (..., R, B) integers; lower ones fill first.
      weight: (..., R, B) positive; within a tier u_r = min(capacity_r, theta weight_r), theta the smallest that uses what is
        left of the budget, or everything where there is not enough capacity.

    Returns:
      (..., R, B) amounts in [0, capacity], summing to min(budget, total capacity). Exact to rounding (the servers that fill
      up are found in at most R rounds, then theta is a quotient), and differentiable almost everywhere.
    """
    before, room = spent_by_tier(budget, capacity, tier)
    partly = (before < budget[..., None, :]) & (before + room > budget[..., None, :])
    left = budget[..., None, :] - before
    weight = jnp.where(partly, weight, 0)
    fixed_left, fixed_capacity, fixed_weight = lax.stop_gradient((jnp.where(partly, left, 0), capacity, weight))
    full = _full_servers(fixed_left, fixed_capacity, fixed_weight, partly)
    return jnp.where(
        partly,
        jnp.where(full, capacity, _level(left, capacity, weight, full & partly) * weight),
        jnp.where(before + room <= budget[..., None, :], capacity, 0),
    )


def spent_by_tier(budget, capacity, tier):
    """Returns, per server, the capacity of all lower tiers and that of its own tier, both (..., R, B)."""
    order = tier.astype(jnp.int32)

    # Server by server: a fused reduction over pairs of servers takes XLA 6 times as long on the CPU in float64.
    def add(sums, server):
        before, whole = sums
        their_tier, theirs = (x[..., None, :] for x in server)
        zero = jnp.zeros((), capacity.dtype)
        before = before + jnp.where(their_tier < order, theirs, zero)
        return (before, whole + jnp.where(their_tier == order, theirs, zero)), None

    servers = jnp.moveaxis(order, -2, 0), jnp.moveaxis(capacity, -2, 0)
    none = jnp.zeros(jnp.broadcast_shapes(order.shape, capacity.shape), capacity.dtype)
    return lax.scan(add, (none, none), servers)[0]


def _level(left, capacity, weight, full):
    """theta, given which servers of the partly filled tier are full."""
    filled = jnp.sum(jnp.where(full, capacity, 0), axis=-2, keepdims=True)
    open_weight = jnp.sum(jnp.where(full, 0, weight), axis=-2, keepdims=True)
    return (left - filled) / jnp.where(open_weight > 0, open_weight, 1)


def _full_servers(left, capacity, weight, partly):
    """Servers that theta fills: those full at today's theta are full at the final one, which is no smaller."""

    def more(state):
        full, _ = state
        grown = partly & (capacity <= _level(left, capacity, weight, full) * weight)
        return grown | full, jnp.any(grown & ~full)

    return lax.while_loop(lambda state: state[1], more, (jnp.zeros_like(partly), jnp.any(partly)))[0]
