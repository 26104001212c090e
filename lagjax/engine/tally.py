"""Exact integer counts of who arrived and who served what, from the slots that a block of arrivals took."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

WORD = 32  # arrivals per machine word
WIDEST_BITMAP = 2048  # beyond this many (type, slot) cells, adding one by one is cheaper


def tally(arrived, served, task_type, slots):
    """Adds one block of arrivals to the counts.

    Args:
      arrived: (V, B) int32: tasks of type v.
      served: per group of policies ([P,] V, S, B) int32, tasks of type v that took slot s, or None.
      task_type: (E, B) unsigned; a value of V or more is not counted. E is a multiple of 32.
      slots: per group (E, k, [P,] B) unsigned, different within an arrival, or None; a value of S or more is not counted.

    Returns:
      The new `arrived` and `served`.
    """
    if any(c is not None and c.shape[-3] * c.shape[-2] > WIDEST_BITMAP for c in served):
        add = _one_by_one
    else:
        add = _by_bitmap

    # A scan over words of arrivals because what a loop reads is in memory: outside one, XLA would draw each arrival's type
    # again for every row of the bitmap.
    def one_word(counts, block):
        arrived, served = counts
        task_type, slots = block
        types = _bitmap(task_type, arrived.shape[0])  # (V, B)
        served = tuple(
            None if c is None else add(c, task_type, types, s) for c, s in zip(served, slots, strict=True)
        )
        return (arrived + _ones(types), served), None

    words = jax.tree.map(lambda x: x.reshape(-1, WORD, *x.shape[1:]), (task_type, slots))
    return lax.scan(one_word, (arrived, served), words)[0]


def _by_bitmap(counts, task_type, types, slots):
    """Bit e of a word says whether arrival e had this type, or took this slot: a count is a population count of an AND.

    V S / 32 word operations per arrival: faster on the CPU than one scattered increment per server taken.
    """
    taken = sum(_bitmap(slots[:, j], counts.shape[-2]) for j in range(slots.shape[1]))  # (S, [P,] B)
    taken = jnp.moveaxis(lax.optimization_barrier(taken), 0, -2)[..., None, :, :]  # ([P,] 1, S, B)
    return counts + _ones(types[:, None] & taken)


def _ones(words):
    return lax.population_count(words).astype(jnp.int32)


def _bitmap(values, n):
    """Returns (n, ...) uint32: bit i of row j is set where `values[i]` is j; `values` is (32, ...)."""
    lanes = values.shape[1:]
    rows = jnp.arange(n, dtype=values.dtype).reshape(n, 1, *[1] * len(lanes))
    bit = (jnp.uint32(1) << jnp.arange(WORD, dtype=jnp.uint32)).reshape(WORD, *[1] * len(lanes))
    return jnp.sum(jnp.where(values == rows, bit, jnp.uint32(0)), axis=1, dtype=jnp.uint32)


def _one_by_one(counts, task_type, types, slots):
    kinds = jnp.expand_dims(task_type, tuple(range(1, slots.ndim - 1))).astype(jnp.int32)
    lanes = [jnp.arange(n) for n in (*counts.shape[:-3], counts.shape[-1])]
    *policy, replica = [jnp.expand_dims(lane, tuple(range(1, len(lanes) - i))) for i, lane in enumerate(lanes)]
    return counts.at[*policy, kinds, slots.astype(jnp.int32), replica].add(1, mode="drop")
