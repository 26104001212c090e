"""Tiers fill in order: which are filled whole, and the one in which the budget ends."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

_TRIANGLE = 16


class Ends(NamedTuple):
    """Where a budget ends.

    Attributes:
      full: (..., R, B) servers in tiers that are taken whole.
      partly: (..., R, B) servers in the tier in which the budget ends; none where it outlasts every tier.
      left: (..., B) what that tier shares, 0 or more and less than its capacity (up to rounding).
    """

    full: jax.Array
    partly: jax.Array
    left: jax.Array


def budget_ends(budget, capacity, tier) -> Ends:
    """Finds the tier in which a budget ends.

    Args:
      budget: (..., B) amount to hand out, 0 or more.
      capacity: (..., R, B) most that each server can take, 0 or more; any real type.
      tier: (..., R, B) integers in [0, R), lower ones first; or (..., R, 1), one order for the whole batch, which is quicker.
    """
    ends = (_one_order if tier.shape[-1] == 1 else _order_per_lane)(budget, lax.stop_gradient(capacity), tier)
    full, partly = tier < ends, tier == ends
    used = jnp.sum(jnp.where(full, capacity, 0), axis=-2, dtype=capacity.dtype)
    left = jnp.where(jnp.any(partly, axis=-2), jnp.maximum(budget - used, 0), 0)
    return Ends(full, partly, left)


def _one_order(budget, capacity, tier):
    """(..., 1, B) the tier: that of the first server, in the order of filling, up to which there is more than the budget."""
    order = jnp.argsort(tier[..., 0], axis=-1, stable=True)
    in_order = capacity[order] if capacity.ndim == 2 else jnp.take_along_axis(capacity, order[..., None], axis=-2)
    beyond = _running_sum(in_order) > budget[..., None, :]
    tiers = jnp.take_along_axis(tier, order[..., None], axis=-2)
    return jnp.min(jnp.where(beyond, tiers, tier.shape[-2]), axis=-2, keepdims=True)


def _running_sum(x):
    """Sums along axis -2 by products with small triangles: linear in its length, where XLA's cumsum and scans are slower."""
    length, lanes = x.shape[-2:]
    blocks = -(-length // _TRIANGLE)
    padding = [(0, 0)] * (x.ndim - 2) + [(0, blocks * _TRIANGLE - length), (0, 0)]
    split = jnp.pad(x, padding).reshape(*x.shape[:-2], blocks, _TRIANGLE, lanes)
    triangle = jnp.tril(jnp.ones((_TRIANGLE, _TRIANGLE), x.dtype))
    within = jnp.matmul(triangle, split, precision=lax.Precision.HIGHEST)
    before = jnp.cumsum(within[..., -1, :], axis=-2) - within[..., -1, :]
    return (within + before[..., None, :]).reshape(*x.shape[:-2], -1, lanes)[..., :length, :]


def _order_per_lane(budget, capacity, tier):
    """(..., 1, B) the tier: the lowest that does not fit."""

    # Server by server: a fused reduction over pairs of servers takes XLA 6 times as long on the CPU in float64.
    def add(upto, server):
        their_tier, theirs = (x[..., None, :] for x in server)
        return upto + jnp.where(their_tier <= tier, theirs, jnp.zeros((), capacity.dtype)), None

    servers = jnp.moveaxis(tier, -2, 0), jnp.moveaxis(capacity, -2, 0)
    none = jnp.zeros(jnp.broadcast_shapes(tier.shape, capacity.shape), capacity.dtype)
    upto = lax.scan(add, none, servers)[0]
    return jnp.min(jnp.where(upto > budget[..., None, :], tier, tier.shape[-2]), axis=-2, keepdims=True)
