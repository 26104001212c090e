"""Rounding a waterfill to whole copies by largest remainders (Lag, Appendix A)."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

SLACK = 1e-6  # amounts so near a whole number are it, and remainders so near are tied: noise decides nothing


def largest_remainders(amount, total):
    """Rounds amounts down, then adds 1 to the largest positive remainders, earlier servers first, until they sum to `total`.

    Args:
      amount: (..., R, B) float64, summing to `total` up to rounding noise.
      total: (..., B) int32.

    Returns:
      (..., R, B) int32 summing to `total`, each less than 1 (plus noise) from its amount, and equal to a whole amount.
    """
    down = jnp.floor(amount + SLACK)
    rest = amount - down
    server = lax.broadcasted_iota(jnp.int32, amount.shape, amount.ndim - 2)

    def give_one(state):
        down, rest, missing = state
        largest = jnp.max(rest, axis=-2, keepdims=True)
        first = jnp.min(jnp.where(rest >= largest - SLACK, server, amount.shape[-2]), axis=-2, keepdims=True)
        given = (server == first) & (missing[..., None, :] > 0)
        return down + given.astype(down.dtype), jnp.where(given, -1.0, rest), missing - 1

    missing = total - jnp.sum(down, axis=-2).astype(total.dtype)
    down, _, _ = lax.while_loop(lambda state: jnp.any(state[2] > 0), give_one, (down, rest, missing))
    return down.astype(total.dtype)
