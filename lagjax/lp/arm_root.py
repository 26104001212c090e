"""Worth of a block of servers at given task prices: the roots of all their arm equations at once, in JAX.

A server that pays ell_v for a task of type v earns q, the root of

    q = sum_v lambda_v h(s_v - ell_v - E[D_v] q),        h(x) = max(x, 0) or smoothed,

per step (Lag, Lemma B.1). h is convex and increasing, so q - sum(...) is concave and increasing, and Newton's
method from any start lands at or below the root at its first step and climbs to it from then on; with
max(x, 0) it is policy iteration and ends after finitely many steps. The smoothed h is the quadratic one,

    h(x) = max over y in [0, 1] of  x y + mu (y - y^2) / 2,        y = clip(x / mu + 1/2, 0, 1),

which needs no transcendental function, is max(x, 0) outside |x| < mu / 2 and lies above it, by mu / 8 at most.

Blocks are (V, C), servers along the vector lanes. Sums are written out over `CHUNK` neighbours, so that XLA's CPU compiler makes
one vectorised loop of them (its own reductions take 2 to 9 times as long here), and go on in float64. V and C are multiples of
`PADDED`, so that few shapes are compiled; a padded type has rate 0, a padded server `live` 0.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Pair = tuple[jax.Array, jax.Array]
Sums = Callable[[jax.Array], Pair]
CHUNK = 8
PADDED = 64
_MAX_STEPS = 50  # of Newton's method; 3 to 6 are usual


class Types(NamedTuple):
    """What all servers share; all (V,) float64.

    Attributes:
      price: ell_v, in units of the scores.
      rate: lambda_v.
      duration: E[D_v].
    """

    price: jax.Array
    rate: jax.Array
    duration: jax.Array


class Recovered(NamedTuple):
    """The near-feasible primal point of a block and its exact worth, float64.

    Attributes:
      worth: (C,) an upper bound of the exact root, equal to it up to round-off.
      smooth_worth: (C,) the smoothed root.
      served: (V,) sum_r w_vr over the block, w_vr = phi_r y_vr.
      reward: (V,) sum_r s_vr w_vr over the block.
    """

    worth: jax.Array
    smooth_worth: jax.Array
    served: jax.Array
    reward: jax.Array


def _over(axis: int, term: Callable[..., Pair], scores: jax.Array, *along: jax.Array) -> Pair:
    """Sums of term(scores, *along) over types (axis 0) or servers (axis 1): two numbers a pair, each (C,) or (V,) in float64.

    `scores` is (V, C); what runs along the axis is (V,) or (C,).
    """
    inner = scores.shape[1] if axis == 0 else scores.shape[0]
    parts = [
        x.reshape((-1, CHUNK, m) if axis == 0 else (m, CHUNK, -1))
        for x, m in ((scores, inner), *((a, 1) for a in along))
    ]
    first, second = term(*(x[:, 0] for x in parts))
    for i in range(1, CHUNK):
        more, also = term(*(x[:, i] for x in parts))
        first, second = first + more, second + also
    return first.astype(jnp.float64).sum(axis), second.astype(jnp.float64).sum(axis)


def _newton(sums: Sums, worth: jax.Array, tolerance: jax.Array) -> tuple:
    """(steps, q, F(q), -F'(q), next q) near the root of q = F(q) for every column; `sums(q)` gives F and -F'.

    Ends when no column would move by more than `tolerance`. The next q errs by about the square of that; q is where the
    sums were taken.
    """

    def step(state: tuple) -> tuple:
        count, _, new, _, _ = state
        value, slope = sums(new)
        return count + 1, new, (value + slope * new) / (1 + slope), value, slope

    def go_on(state: tuple) -> jax.Array:
        return (state[0] < _MAX_STEPS) & (jnp.abs(state[2] - state[1]).max() > tolerance)

    zero = jnp.zeros_like(worth)
    count, worth, new, value, slope = jax.lax.while_loop(go_on, step, (0, worth - jnp.inf, worth, zero, zero))
    return count, worth, value, slope, new


def _parts(price: jax.Array, dtype: np.dtype) -> tuple[jax.Array, ...]:
    """A price as numbers of `dtype` that add up to it: float32 alone would move prices by more than late steps do."""
    high = price.astype(dtype)
    return (high,) if dtype == price.dtype else (high, (price - high.astype(price.dtype)).astype(dtype))


def _share(
    scores: jax.Array, prices: Sequence[jax.Array], duration: jax.Array, worth: jax.Array, narrow: jax.Array
) -> Pair:
    """(y, t): the share of a pair and its index in widths of the smoothing, shifted by one half."""
    index = scores.astype(narrow.dtype)
    for price in prices:  # the first difference is exact near a tie
        index = index - price
    t = (index - duration * worth) * narrow + narrow.dtype.type(0.5)
    return jnp.clip(t, 0, 1), t


def _smooth_sums(scores: jax.Array, types: Types, width: jax.Array, dtype: np.dtype) -> Sums:
    prices, rate, duration = _parts(types.price, dtype), types.rate.astype(dtype), types.duration.astype(dtype)
    narrow = (1 / width).astype(dtype)

    def sums(worth: jax.Array) -> Pair:
        worth = worth.astype(dtype)

        def term(s: jax.Array, lam: jax.Array, occupancy: jax.Array, d: jax.Array, *ell: jax.Array) -> Pair:
            y, t = _share(s, ell, d, worth, narrow)
            return lam * (y * (t - y / 2)), occupancy * y

        value, slope = _over(0, term, scores, rate, rate * duration, duration, *prices)
        return width * value, slope

    return sums


def _index(scores: jax.Array, types: Types, worth: jax.Array) -> jax.Array:
    return scores.astype(jnp.float64) - types.price[:, None] - types.duration[:, None] * worth


def _exact_sums(scores: jax.Array, types: Types) -> Sums:
    def sums(worth: jax.Array) -> Pair:
        def term(s: jax.Array, ell: jax.Array, lam: jax.Array, d: jax.Array) -> Pair:
            index = s.astype(jnp.float64) - ell - d * worth
            return lam * jnp.maximum(index, 0), jnp.where(index > 0, lam * d, 0)

        return _over(0, term, scores, *types)

    return sums


@functools.partial(jax.jit, static_argnames="dtype")
def smooth_block(
    scores: jax.Array, types: Types, live: jax.Array, worth: jax.Array, width: jax.Array, tolerance: jax.Array, *,
    dtype: np.dtype,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """One evaluation of a block.

    Args:
      scores: (V, C), any float type; read once from memory when the block fits in the cache.
      types: prices, rates, durations.
      live: (C,) 1 for a server, 0 for padding.
      worth: (C,) where Newton's method starts, reward per step.
      width: mu, in units of the scores.
      tolerance: largest Newton step not taken, reward per step.
      dtype: float type of the arithmetic on pairs; sums go on in float64.

    Returns:
      (worth (C,), served (V,), bend (V,), steps): the roots, sum_r phi_r y_vr, sum_r phi_r (y_vr - y_vr^2) / 2,
      and the Newton steps taken.
    """
    steps, worth, _, slope, root = _newton(_smooth_sums(scores, types, width, dtype), worth, tolerance)
    free = (live / (1 + slope)).astype(dtype)
    prices = [p[:, None] for p in _parts(types.price, dtype)]
    duration = types.duration.astype(dtype)[:, None]
    narrow, level = (1 / width).astype(dtype), worth.astype(dtype)

    def term(s: jax.Array, q: jax.Array, phi: jax.Array) -> Pair:
        y, _ = _share(s, prices, duration, q, narrow)
        return phi * y, phi * (y - y * y) / 2

    served, bend = _over(1, term, scores, level, free)
    return root, served, bend, steps


@jax.jit
def recover_block(
    scores: jax.Array, types: Types, live: jax.Array, worth: jax.Array, width: jax.Array, tolerance: jax.Array
) -> Recovered:
    """The primal point of a block and the exact worth of its servers, all in float64; arguments as `smooth_block`.

    The exact worth is max(q, F(q)) at the last Newton point q: at q below the root F(q) is above it, since F
    decreases, so it bounds the root from above wherever the iteration ended.
    """
    smooth = _smooth_sums(scores, types, width, jnp.dtype(jnp.float64))
    _, smooth_worth, _, slope, _ = _newton(smooth, worth, tolerance)
    free = live / (1 + slope)
    prices, duration = (types.price[:, None],), types.duration[:, None]

    def term(s: jax.Array, q: jax.Array, phi: jax.Array) -> Pair:
        y, _ = _share(s, prices, duration, q, 1 / width)
        return phi * y, s.astype(jnp.float64) * (phi * y)

    served, reward = _over(1, term, scores, smooth_worth, free)
    _, low, value, _, _ = _newton(_exact_sums(scores, types), smooth_worth, tolerance)
    return Recovered(jnp.maximum(low, value) * live, smooth_worth, served, reward)


@jax.jit
def share_block(
    scores: jax.Array, types: Types, live: jax.Array, worth: jax.Array, smooth_worth: jax.Array, width: jax.Array,
    keep: jax.Array, extra: jax.Array, zero: jax.Array,
) -> tuple[jax.Array, ...]:  # fmt: skip
    """The repaired shares of a block.

    Args:
      scores, types, live, width: as in `smooth_block`.
      worth, smooth_worth: (C,) of `recover_block`.
      keep: (V,) factor on the near-feasible share.
      extra: (V,) what is added to every server's share, in servers.
      zero: (V,) |index| up to which a pair counts as undecided.

    Returns:
      (w (V, C), free fraction (C,), undecided pairs), of live servers.
    """
    smooth = _smooth_sums(scores, types, width, jnp.dtype(jnp.float64))
    free = live / (1 + smooth(smooth_worth)[1])
    y, _ = _share(scores, (types.price[:, None],), types.duration[:, None], smooth_worth, 1 / width)
    w = keep[:, None] * (free * y) + extra[:, None]
    index = _index(scores, types, worth)
    near = (jnp.abs(index) <= zero[:, None]) & (live > 0) & (types.rate > 0)[:, None]
    return w, 1 - (types.rate * types.duration) @ w, near.sum()


@jax.jit
def bend_block(scores: jax.Array, types: Types, live: jax.Array, worth: jax.Array, width: jax.Array) -> jax.Array:
    """(V, V) second derivatives of the sum of a block's smoothed worths in the prices, at their roots `worth` (C,).

    Prices move q_r by -u_r, u_vr = lambda_v w_vr, and indices by J_r = 1 - E[D] u_r'; the Hessian is the sum over r of
    phi_r J_r' diag(lambda_v / mu where y_vr is strictly inside) J_r.
    """
    smooth = _smooth_sums(scores, types, width, jnp.dtype(jnp.float64))
    free = live / (1 + smooth(worth)[1])
    y, t = _share(scores, (types.price[:, None],), types.duration[:, None], worth, 1 / width)
    inside = jnp.where((t > 0) & (t < 1), types.rate[:, None] * free / width, 0.0)
    moved = types.rate[:, None] * (free * y)
    pulled = types.duration[:, None] * inside
    cross = pulled @ moved.T
    level = (types.duration[:, None] * pulled).sum(0)
    return jnp.diag(inside.sum(1)) - cross - cross.T + (moved * level) @ moved.T
