"""Exact integer counts of who arrived and who served what, from the slots that a block of arrivals took."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

WORD = 32  # a block is a multiple of this many arrivals
WIDEST_BITMAP = 2048  # beyond this many (type, slot) cells, adding one by one is cheaper


def tally(arrived, served, task_type, slots):
    """Adds one block of arrivals to the counts.

    Args:
      arrived: (V, B) int32: tasks of type v.
      served: per group of policies ([P,] V, S, B) int32, tasks of type v that took slot s, or None.
      task_type: (E, B) unsigned; a value of V or more is not counted. E is a multiple of 32.
      slots: per group (E, k, [P,] B) unsigned, different within an arrival, or None; S or more is not counted.

    Returns:
      The new `arrived` and `served`.
    """
    if any(c is not None and c.shape[-3] * c.shape[-2] > WIDEST_BITMAP for c in served):
        counted = tuple(None if c is None else _one_by_one(c, task_type, s) for c, s in zip(served, slots, strict=True))
        return _one_by_one(arrived[:, None], task_type, jnp.zeros_like(task_type)[:, None])[:, 0], counted
    words = task_type.shape[0] // WORD
    page = WORD * max(n for n in range(1, 8) if words % n == 0)  # at most 224 arrivals: a page's counts fit a byte
    pages = jax.tree.map(lambda x: x.reshape(-1, page, *x.shape[1:]), (task_type, slots))
    return lax.scan(lambda counts, block: (_add_page(counts, *block), None), (arrived, served), pages)[0]


def _add_page(counts, task_type, slots):
    # Scans because what a loop reads is in memory: outside one, XLA would draw each arrival's type again for every row
    # of the bitmap, and widen the bytes before they are summed.
    def one_byte(pending, block):
        arrived, served = pending
        types = _bitmap(block[0], arrived.shape[0])  # (V, B)
        served = tuple(None if c is None else _by_bitmap(c, types, s) for c, s in zip(served, block[1], strict=True))
        return (arrived + lax.population_count(types), served), None

    nothing = jax.tree.map(lambda x: jnp.zeros(x.shape, jnp.uint8), counts)
    by_byte = jax.tree.map(lambda x: x.reshape(-1, 8, *x.shape[1:]), (task_type[:, None], slots))
    page = lax.scan(one_byte, nothing, by_byte, unroll=4)[0]
    return jax.tree.map(lambda x, new: x + new.astype(jnp.int32), counts, page)


def _by_bitmap(counts, types, slots):
    """Bit e of a byte says whether arrival e had this type, or took this slot: a count is a population count of an AND.

    V S / 8 byte operations per arrival, 64 to a vector instruction, and the counts of a page are bytes too: faster on
    the CPU than one scattered increment per server taken, and twice as fast as bitmaps in 32-bit words.
    """
    taken = jnp.moveaxis(_bitmap(slots, counts.shape[-2]), 0, -2)  # ([P,] S, B)
    return counts + lax.population_count(types[:, None] & taken[..., None, :, :])


def _bitmap(values, n):
    """Returns (n, ...) uint8: bit i of row j is set where j is among `values[i]`; `values` is (8, k, ...)."""
    k = values.shape[1]
    values = values.reshape(-1, *values.shape[2:])  # reduced as one axis: XLA does not vectorise a sum over two
    rows = jnp.arange(n, dtype=values.dtype).reshape(n, *[1] * values.ndim)
    bit = (jnp.uint8(1) << jnp.arange(8, dtype=jnp.uint8)).repeat(k).reshape(-1, *[1] * (values.ndim - 1))
    return jnp.sum(jnp.where(values == rows, bit, jnp.uint8(0)), axis=1, dtype=jnp.uint8)


def _one_by_one(counts, task_type, slots):
    kinds = jnp.expand_dims(task_type, tuple(range(1, slots.ndim - 1))).astype(jnp.int32)
    lanes = [jnp.arange(n) for n in (*counts.shape[:-3], counts.shape[-1])]
    *policy, replica = [jnp.expand_dims(lane, tuple(range(1, len(lanes) - i))) for i, lane in enumerate(lanes)]
    return counts.at[*policy, kinds, slots.astype(jnp.int32), replica].add(1, mode="drop")
