"""The one compiled loop: blocks of steps, replicas sharded over devices, counts in the carry."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import lax
from jax.sharding import PartitionSpec

from lagjax.engine.devices import Placement, compiler_options
from lagjax.engine.model import Model

# Steps of the innermost loop on GPUs, where blocks are a multiple of it. There a kernel that reads or writes one step can be
# charged with the whole array that its loop slices, which a short loop bounds; on the CPU it would only add copies.
PIECE = 4


def program(model: Model, placed: Placement, block: int, donate: bool = True):
    """Returns advance(state, counts, first, last, tables, keys): the state and counts after blocks `first` to `last`.

    Compiled once per shape: loads, policies, seeds and lengths are data. Each device runs the loop of its own replicas, so that
    loops inside a step turn as often as its own replicas need; nothing is exchanged, and results are bitwise the same on any
    number of devices.

    Args:
      model: its functions are those of modules (compiled programs are kept by them).
      placed: where the replicas live; state, counts and keys are placed `by_replica`, tables `everywhere`.
      block: steps drawn together.
      donate: whether state and counts may be overwritten.
    """
    return _program(model, placed.mesh, tuple(compiler_options(placed.platform).items()), block, donate)


@functools.cache
def _program(model, mesh, options, block, donate):
    def along_replicas(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "replica"), tree)

    def advance(state, counts, first, last, tables, keys):
        split = along_replicas((state, counts))
        whole = jax.tree.map(lambda _: PartitionSpec(), (first, last, tables))
        body = jax.shard_map(
            functools.partial(blocks, model, block), mesh=mesh, in_specs=(*split, *whole, along_replicas(keys)),
            out_specs=split, check_vma=False,
        )  # fmt: skip
        return body(state, counts, first, last, tables, keys)

    return jax.jit(advance, donate_argnums=(0, 1) if donate else (), compiler_options=dict(options) or None)


def blocks(model, block, state, counts, first, last, tables, keys):
    """Blocks `first` to `last` of the replicas of one device."""

    def one(index, carry):
        state, counts = carry
        numbers = index * jnp.uint32(block) + jnp.arange(block, dtype=jnp.uint32)
        events = model.draw(tables, keys, numbers)
        state, seen = _in_turn(model, block, state, events, tables)
        return state, model.count(counts, numbers, events, seen, tables)

    return lax.fori_loop(first, last, one, (state, counts))


def _in_turn(model, block, state, events, tables):
    """The steps of a block, one after another."""

    def step(state, event):
        return model.step(state, event, tables)

    def in_one_loop(state, events):
        return lax.scan(step, state, events)

    def in_pieces(state, events):
        pieces = jax.tree.map(lambda x: x.reshape(-1, PIECE, *x.shape[1:]), events)
        state, seen = lax.scan(in_one_loop, state, pieces)
        return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), seen)

    if block == 1:
        state, seen = step(state, jax.tree.map(lambda x: x[0], events))
        return state, jax.tree.map(lambda x: x[None], seen)
    if block % PIECE:
        return in_one_loop(state, events)
    return lax.platform_dependent(state, events, cpu=in_one_loop, default=in_pieces)
