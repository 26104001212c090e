"""What a race comes to when copies are many: its fluid limit, tier by tier."""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lagjax.allocate.tiers import budget_ends

_MAX_ROUNDS = 200  # Newton's rounds; a dozen do unless weights differ by many orders of magnitude


def race_limit(budget, capacity, tier, weight):
    """Shares a budget as a race among many copies does: u_r = c_r (1 - exp(-theta w_r)) in the tier in which it ends.

    Copies carry exponential clocks of rate w_r and the earliest win, so theta is the time by which just enough have rung;
    equal weights share in proportion to capacity. Shapes, tiers and derivatives as in `waterfill`; theta by Newton's method to
    rounding.
    """
    full, partly, left = budget_ends(budget, capacity, tier)
    room, rate = jnp.where(partly, capacity, 0), jnp.where(partly, weight, 0)
    rest = jnp.maximum(jnp.sum(room, axis=-2) - left, jnp.finfo(room.dtype).tiny)  # copies whose clocks have not rung
    time = _time(*lax.stop_gradient((rest, room, rate)))
    unrung, slope = _unrung(lax.stop_gradient(time), room, rate)
    # One more step of Newton carries the derivative of the root, whatever led to it.
    time = lax.stop_gradient(time) + (unrung - rest[..., None, :]) / lax.stop_gradient(slope)
    return jnp.where(full, capacity, -room * jnp.expm1(-time * rate))


def _unrung(time, room, rate):
    """sum c exp(-theta w), and minus its slope in theta (1 where nothing is shared)."""
    alive = room * jnp.exp(-time * rate)
    slope = jnp.sum(alive * rate, axis=-2, keepdims=True)
    return jnp.sum(alive, axis=-2, keepdims=True), jnp.where(slope > 0, slope, 1)


def _time(rest, room, rate):
    """theta with sum c exp(-theta w) = rest. The logarithm is convex in theta, so Newton's steps rise to the root."""

    def step(state):
        time, _, rounds = state
        unrung, slope = _unrung(time, room, rate)
        more = jnp.maximum(jnp.log(unrung / rest[..., None, :]), 0) * unrung / slope
        later = jnp.where(unrung > rest[..., None, :], time + more, time)
        return later, jnp.any(later > time * (1 + 4 * jnp.finfo(time.dtype).eps)), rounds + 1

    start = (jnp.zeros_like(rest)[..., None, :], jnp.asarray(True), jnp.int32(0))
    return lax.while_loop(lambda s: s[1] & (s[2] < _MAX_ROUNDS), step, start)[0]
