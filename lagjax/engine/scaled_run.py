"""The driver of the scaled system: steps in a loop, replicas sharded over devices, counts flushed to 64 bits per chunk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import compiler_options, place_replicas
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp import OccSolution
from lagjax.models import scaled, streams
from lagjax.models.hypergeometric import MAX_TOTAL, TRIES
from lagjax.models.race import SPLITS
from lagjax.policies.table import Policy

MOST_RACES = 2**32 // (SPLITS * TRIES)
MOST_STEPS = 2**31  # steps are 32-bit numbers
CHUNK = 512  # most steps per call of the compiled program; results do not depend on it


class Window(NamedTuple):
    """Exact counts over a window of steps.

    Attributes:
      served: (V, R, B) int64 copies given to tasks of each type, by server type and replica.
      arrived, blocked: (V, B) int64 tasks, and those lost.
      steps: length of the window.
    """

    served: np.ndarray
    arrived: np.ndarray
    blocked: np.ndarray
    steps: int


def simulate_scaled(
    instance: Instance,
    policy: Policy,
    *,
    copies: int,
    dispatchers: int,
    steps: int,
    warmup: int = 0,
    replicas: int = 128,
    seed: int = 0,
    start: OccSolution | None = None,
    most_dispatchers: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
) -> tuple[Window, Window]:
    """Simulates the (m,n)-scaled system of one policy and counts two windows: the first and the second half of `steps`.

    Two halves, so that what is left of the start shows as a difference between them. Tasks and durations are the same for
    every policy and, at equal m, for every n. Results depend on the instance, the policy, the sizes, `steps`, `warmup`,
    `seed` and `start` alone.

    Args:
      instance: what to simulate, at its load.
      policy: built for this instance.
      copies: n, copies of each server type per dispatcher.
      dispatchers: m; m n is at most 2^25.
      steps, warmup: steps counted (at least 2) and dropped before them, per replica.
      replicas: B.
      seed: in [0, 2^64).
      start: an OCC-LP solution whose fluid fixed point x_hat is the start (Lag, Lemma 4.4); by default all copies are free.
      most_dispatchers: largest m of a study; studies that name it compile once for all sizes.
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most steps per call of the compiled program.
      progress: called with the steps (times replicas and dispatchers) done in each chunk.

    Raises:
      InputError: an argument outside its range.
    """
    check_size(instance, policy, copies, dispatchers, replicas)
    for field, value, least in (("steps", steps, 2), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least, MOST_STEPS)
    placed = place_replicas(replicas, devices)
    tables = scaled.scaled_tables(instance, policy, copies, dispatchers, most_dispatchers or dispatchers)
    state = scaled.empty(tables, replicas) if start is None else scaled.warm(tables, instance, start, replicas)
    with jax.enable_x64(True):  # the weights stay float64
        tables = placed.everywhere(tables)
    numbers = np.arange(replicas)
    keys = scaled.Keys(
        *(streams.replica_keys(seed, s, numbers) for s in (streams.EXOGENOUS, streams.PARTITION, streams.TIES))
    )
    keys, state = placed.by_replica(keys), placed.by_replica(state)
    zero = placed.by_replica(_no_counts(instance, replicas))
    run = _program(placed.mesh, tuple(compiler_options(placed.platform).items()))
    longest = max(1, min(chunk, (2**31 - 1) // (copies * dispatchers)))  # a chunk's counts fit 32 bits
    windows, now = [], 0
    for length in (warmup, steps // 2, steps - steps // 2):
        sums = [np.zeros(x.shape, np.int64) for x in zero]
        for first in range(now, now + length, longest):
            last = min(first + longest, now + length)
            state, counts = run(state, zero, np.uint32(first), np.uint32(last), tables, keys)
            for total, part in zip(sums, jax.device_get(counts), strict=True):
                total += part
            if progress is not None:
                progress((last - first) * replicas * dispatchers)
        now += length
        windows.append(Window(sums[0], sums[1], sums[2], length))
    return windows[1], windows[2]


def check_size(instance: Instance, policy: Policy, copies: int, dispatchers: int, replicas: int) -> None:
    """Raises InputError where `simulate_scaled` would not be exact, or not possible."""
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    for field, value in (("copies", copies), ("dispatchers", dispatchers)):
        whole_number(field, value, 1)
    if copies * dispatchers > MAX_TOTAL:
        raise InputError(
            f"copies {copies} times dispatchers {dispatchers} is {copies * dispatchers}; the samplers are exact up to "
            f"{MAX_TOTAL} copies of a server, so use fewer"
        )
    if policy.rule == "race" and dispatchers * instance.num_servers > MOST_RACES:
        raise InputError(
            f"dispatchers {dispatchers} times {instance.num_servers} servers is more than {MOST_RACES}, as far as the "
            f"random words of policy '{policy.name}' reach; use fewer dispatchers"
        )
    if policy.tier.shape != instance.scores.shape:
        raise InputError(
            f"policy '{policy.name}' has shape {policy.tier.shape}, instance '{instance.name}' has {instance.scores.shape}"
        )


def _no_counts(instance, replicas):
    num_types, num_servers = instance.scores.shape
    per_type = jnp.zeros((num_types, replicas), jnp.int32)
    return scaled.Counts(jnp.zeros((num_types, num_servers, replicas), jnp.int32), per_type, per_type)


@functools.cache
def _program(mesh, options):
    """The compiled chunk. Each device runs its own replicas' loops: their numbers of turns need not agree."""

    def chunk(state, counts, first, last, tables, keys):
        def one_step(now, carry):
            state, counts = carry
            return scaled.step(state, counts, now, tables, keys)

        return lax.fori_loop(first, last, one_step, (state, counts))

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
