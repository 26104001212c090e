"""Sharing a tier by a race: copies drawn one after another without replacement, with probability proportional to weight.

Equal weights make the winners multivariate hypergeometric. Unequal ones make them Wallenius' noncentral hypergeometric, drawn
here exactly by giving each copy an exponential clock of rate w_r: the winners are the copies whose clocks ring first. How many
ring in a stretch of time is binomial and independent by type, so the moment at which just enough have rung is closed in on by
splitting the stretch in which it lies, at a time chosen so that about enough have rung before it. Each split leaves a surplus of
about the square root of the one before: ten or so splits for any number of copies.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import lax

from lagjax.allocate.tiers import budget_ends
from lagjax.models.hypergeometric import TRIES, binomial, hypergeometric

SPLITS = 256  # sets of random words set aside for one race; the chance that it needs more is below 1e-30
_HALVINGS = 14  # how finely a split time is found; any split is exact, a good one is quick


def race(budget, capacity, tier, weight, keys, event, turn, even: bool):
    """Shares a budget among tiers in order; within the last one the winners are random.

    Args:
      budget: (B,) int32; capacity: (R, B) int32; tier: (R, B) int32; weight: (R, B) float32, positive.
      keys, event, turn: stream keys, event number and task number of the random words.
      even: whether all weights within a tier are equal (static): a quicker way to the same law.

    Returns:
      (R, B) int32 summing to the budget (or to the capacity, if less).
    """
    full, partly, left = budget_ends(budget, capacity, tier)
    rivals = jnp.where(partly, capacity, 0)
    won = _even(left, rivals, keys, event, turn) if even else _weighted(left, rivals, weight, keys, event, turn)
    return jnp.where(partly, won, jnp.where(full, capacity, 0))


def _even(left, rivals, keys, event, turn):
    """One type after another: its winners are hypergeometric given the winners left to find."""

    def draw(carry, server):
        left, rivals_left = carry
        rival, number = server
        slot = jnp.broadcast_to((turn * jnp.uint32(rivals.shape[0]) + number) * jnp.uint32(TRIES), rival.shape)
        won = hypergeometric(keys, event, slot, rival, jnp.maximum(rivals_left, 1), left)
        return (left - won, rivals_left - rival), won

    numbers = jnp.arange(rivals.shape[0], dtype=jnp.uint32)
    return lax.scan(draw, (left, jnp.sum(rivals, axis=0)), (rivals, numbers))[1]


def _weighted(left, rivals, weight, keys, event, turn):
    servers = jnp.arange(rivals.shape[0], dtype=jnp.uint32)[:, None]
    weight = weight / jnp.max(jnp.where(rivals > 0, weight, 0), axis=0, keepdims=True, initial=1e-30)

    def split(state):
        tried, rung, between, length = state  # rung by the start of the stretch, and within it; length may be infinite
        missing = left - jnp.sum(rung, axis=0)
        cut = _cut(missing, between, weight, length)
        share = _rung_share(cut, length, weight)
        slot = ((turn * SPLITS + tried) * jnp.uint32(rivals.shape[0]) + servers) * jnp.uint32(TRIES)
        early = binomial(keys, event, slot, between, share)
        enough = jnp.sum(early, axis=0) >= missing
        todo = _undecided(rung, between)
        rung_next = jnp.where(enough, rung, rung + early)
        between_next = jnp.where(enough, early, between - early)
        length_next = jnp.where(enough, cut, length - cut)
        return (
            tried + 1,
            jnp.where(todo, rung_next, rung),
            jnp.where(todo, between_next, between),
            jnp.where(todo, length_next, length),
        )

    def _undecided(rung, between):
        first = jnp.sum(rung, axis=0)
        return (first != left) & (first + jnp.sum(between, axis=0) != left)

    start = (jnp.uint32(0), jnp.zeros_like(rivals), rivals, jnp.full(left.shape, jnp.inf, jnp.float32))
    _, rung, between, _ = lax.while_loop(lambda s: jnp.any(_undecided(s[1], s[2])), split, start)
    return jnp.where(jnp.sum(rung, axis=0) == left, rung, rung + between)


def _rung_share(cut, length, weight):
    """Probability that a clock that rings within `length` rings within `cut` of its start."""
    return jnp.clip(jnp.expm1(-weight * cut) / jnp.expm1(-weight * length), 0, 1)


def _cut(missing, between, weight, length):
    """A time at which about `missing` of `between` have rung, found on a scale from 0 to `length` by halving."""
    slowest = jnp.min(jnp.where(between > 0, weight, jnp.inf), axis=0)
    reach = jnp.minimum(length, 40 / jnp.maximum(slowest, 1e-30))
    goal = jnp.minimum(missing.astype(jnp.float32), jnp.sum(between, axis=0).astype(jnp.float32) - 0.5)
    copies = between.astype(jnp.float32)

    def halve(_, bounds):
        low, high = bounds  # logarithms relative to reach: weights may differ by orders of magnitude
        middle = (low + high) / 2
        rung = jnp.sum(copies * _rung_share(reach * jnp.exp(middle), length, weight), axis=0)
        return jnp.where(rung < goal, middle, low), jnp.where(rung < goal, high, middle)

    low = jnp.full(missing.shape, -30, jnp.float32)
    low, high = lax.fori_loop(0, _HALVINGS, halve, (low, jnp.zeros_like(low)))
    return reach * jnp.exp((low + high) / 2)
