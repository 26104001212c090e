"""The loop of every model that moves one step, event or slot at a time: replicas sharded, counts returned per chunk."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
from jax import lax
from jax.sharding import PartitionSpec

from lagjax.engine.devices import Placement, compiler_options


def driver(step: Callable, placed: Placement) -> Callable:
    """Returns advance(state, counts, first, last, tables, keys): the state and counts after steps `first` to `last`.

    Compiled once per shape. Each device runs the loop of its own replicas, so that loops inside a step turn as often as its
    own replicas need; nothing is exchanged, and results are bitwise the same on any number of devices.

    Args:
      step: step(state, counts, now, tables, keys) -> (state, counts), a function of a module (compiled programs are kept by
        it); `now` is the uint32 number of the step. Arrays of state, counts and keys have the replicas as their last axis.
      placed: where the replicas live; state, counts and keys are placed `by_replica`, tables `everywhere`.
    """
    return _program(step, placed.mesh, tuple(compiler_options(placed.platform).items()))


@functools.cache
def _program(step, mesh, options):
    def chunk(state, counts, first, last, tables, keys):
        return lax.fori_loop(first, last, lambda now, carry: step(*carry, now, tables, keys), (state, counts))

    def along_replicas(tree):
        return jax.tree.map(lambda x: PartitionSpec(*[None] * (x.ndim - 1), "replica"), tree)

    def sharded(state, counts, first, last, tables, keys):
        split = along_replicas((state, counts))
        whole = jax.tree.map(lambda _: PartitionSpec(), (first, last, tables))
        body = jax.shard_map(
            chunk, mesh=mesh, in_specs=(*split, *whole, along_replicas(keys)), out_specs=split, check_vma=False
        )
        return body(state, counts, first, last, tables, keys)

    return jax.jit(sharded, compiler_options=dict(options) or None)
