"""The one driver: blocks of arrivals in a scan, replicas side by side, sharded over devices, counted exactly."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.engine import tally
from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import compiler_options, default_block, place_replicas
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.models import loss, streams
from lagjax.models.policy_tables import policy_tables
from lagjax.policies.table import Policy, check_shape

# Arrivals of the innermost loop on GPUs, a divisor of 32. There a kernel that reads or writes one arrival can be
# charged with the whole array that its loop slices, which a short loop bounds; on the CPU it would only add copies.
PIECE = 4
CHUNK = 64  # blocks per call of the compiled program, between two updates of a progress bar
MAX_ARRIVALS = 2**31 - 2**16  # a replica's counts are int32 on the device
MAX_SERVERS = 65_534  # servers are 16-bit numbers, one of which stands for nobody


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """What happened, as exact integers, in the counted arrivals of every replica.

    Attributes:
      served: (P, V, R, B) int32 servers given by policy p to type-v tasks, by server and replica.
      arrived: (V, B) int32 tasks of each type, lost ones included; the same under every policy.
      blocked: (V, B) int32 tasks lost; the same under every work-conserving policy (Lag, Lemma 3.1).
      arrivals: tasks per replica; they took `arrivals / instance.total_rate` steps on average.
      state: per group of policies, the (P, R, B) waits (see `lagjax.models.loss.init`) after the last whole block, or None.
    """

    served: np.ndarray
    arrived: np.ndarray
    blocked: np.ndarray
    arrivals: int
    state: tuple


def simulate(
    instance: Instance,
    policies: Sequence[Policy],
    *,
    arrivals: int,
    warmup: int = 0,
    replicas: int = 1024,
    first_replica: int = 0,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    block: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
    halfway: Callable[[Counts], object] | None = None,
) -> Counts:
    """Simulates the original system from empty, all policies on the same arrivals and durations.

    Every replica sees `warmup + arrivals` tasks and counts the last `arrivals` of them. Steps without an arrival are
    skipped exactly. By "Bernoulli arrivals see time averages", a stationary rate per step is `instance.total_rate` times
    the rate per arrival. Results depend on the instance, the policies, `arrivals`, `warmup` and `seed` alone: bit for
    bit, replica i is the same whatever runs beside it and however the work is cut.

    Args:
      instance: what to simulate.
      policies: at least one; all must be built for this instance's V and R.
      arrivals, warmup: tasks per replica.
      replicas: B, independent replicas.
      first_replica: number of the first of them: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      block: arrivals drawn at a time, a multiple of 32; by default what suits the devices.
      chunk: blocks per call of the compiled program.
      progress: called after every chunk with the arrivals (times policies and replicas) done in it.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.
      halfway: called once with the counts of about the first half of the counted arrivals, up to the end of a block; not where
        no block ends among them, nor in a run that goes on from behind that.

    Raises:
      InputError: an argument outside its range, or a policy of another shape.
    """
    _check(instance, policies, arrivals, warmup, replicas, tally.WORD if block is None else block, chunk)
    whole_number("first_replica", first_replica, 0, MOST_REPLICAS - replicas)
    placed = place_replicas(replicas, devices)
    block = default_block(placed.platform) if block is None else block
    tables, layouts = policy_tables(list(policies))
    arrival_laws, tables = placed.everywhere((loss.arrival_tables(instance), tables))
    k = instance.servers_per_task
    numbers = np.arange(first_replica, first_replica + replicas)
    keys = placed.by_replica(streams.replica_keys(seed, streams.EXOGENOUS, numbers))
    random_ties = tables.even is not None or tables.tier is not None
    tie_keys = placed.by_replica(streams.replica_keys(seed, streams.TIES, numbers)) if random_ties else None
    empty = _empty(arrival_laws, tables, replicas)
    begin, carry = (0, empty) if resume is None else _resumed(resume, empty, block)
    carry = placed.by_replica(carry)
    window = np.array([warmup, warmup + arrivals], dtype=np.uint32)
    advance = _program(k, block, tuple(compiler_options(placed.platform).items()))
    blocks, middle = -(-(warmup + arrivals) // block), round((warmup + arrivals / 2) / block)
    ends = [*range(begin, blocks, chunk), blocks]
    if halfway is not None and begin < middle and warmup < middle * block < warmup + arrivals:
        ends = sorted({*ends, middle})
    for first, last in itertools.pairwise(ends):
        carry = advance(carry, arrival_laws, tables, keys, tie_keys, window, np.uint32(first), np.uint32(last))
        if progress is not None:
            jax.block_until_ready(carry)
            progress((last - first) * block * replicas * len(policies))
        if halfway is not None and last == middle < blocks:
            halfway(_to_host(carry, layouts, middle * block - warmup, k))
        if save is not None and last < blocks:
            save(last * block, functools.partial(_leaves, carry))
    return _to_host(carry, layouts, arrivals, k)


def batch_bytes(instance: Instance, policies: Sequence[Policy], block: int | None = None) -> int:
    """Bytes of device memory that one replica takes in `simulate`, from the shapes, rounded up.

    The state and counts twice (the run's own, and a copy on its way to the host), and a block's draws and slots.
    """
    block = default_block(jax.default_backend()) if block is None else block
    tables, _ = policy_tables(list(policies))
    laws = loss.arrival_tables(instance)
    carry = jax.eval_shape(lambda: _empty(laws, tables, 1))
    k = instance.servers_per_task
    slots = len(policies) * k * np.dtype(loss.smallest_unsigned(instance.num_servers)).itemsize
    drawn = 24 + 16 * (k + k % 2) + slots  # words, mark, type, hold and gap; ties as drawn and as stacked; slots
    return 2 * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(carry)) + block * drawn


def _leaves(carry):
    return [np.asarray(x) for x in jax.device_get(jax.tree.leaves(carry))]


def _resumed(pause, empty, block):
    """The block to go on with, and the carry; `empty` says what it must look like."""
    expected, structure = jax.tree.flatten(empty)
    shapes = [(x.shape, x.dtype) for x in expected]
    if pause.done % block or [(x.shape, x.dtype) for x in pause.arrays] != shapes:
        raise InputError("the run to resume was of another size or kind; start it anew")
    return pause.done // block, jax.tree.unflatten(structure, pause.arrays)


def _empty(arrival_laws, tables, replicas):
    state = loss.init(arrival_laws, tables, replicas)
    num_types = arrival_laws.num_types
    counts = tuple(
        None if s is None else jnp.zeros((*s.shape[:-2], num_types, s.shape[-2], replicas), jnp.int32) for s in state
    )
    return state, counts, jnp.zeros((arrival_laws.num_types, replicas), jnp.int32)


@functools.cache
def _program(k, block, options):
    """The compiled chunk: one program per shape of tables and state; loads and policies are data."""
    program = functools.partial(advance, k=k, block=block)
    return jax.jit(program, donate_argnums=0, compiler_options=dict(options) or None)


def advance(carry, arrival_laws, policies, keys, tie_keys, window, first, last, *, k: int, block: int):
    """Runs blocks `first` to `last` of arrivals; `carry` is (state, served counts per group, arrivals by type)."""

    def in_one_loop(state, arrival):
        return lax.scan(functools.partial(loss.step, policies=policies, k=k), state, arrival)

    def in_pieces(state, arrival):
        pieces = jax.tree.map(lambda x: x.reshape(-1, PIECE, *x.shape[1:]), arrival)
        state, slots = lax.scan(in_one_loop, state, pieces)
        return state, jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:]), slots)

    def one_block(index, carry):
        state, counts, arrived = carry
        events = index * np.uint32(block) + jnp.arange(block, dtype=jnp.uint32)
        arrival = loss.draw_arrivals(arrival_laws, keys, tie_keys, events, k)
        state, slots = lax.platform_dependent(state, arrival, cpu=in_one_loop, default=in_pieces)
        counted = (events >= window[0]) & (events < window[1])
        nothing = jnp.asarray(arrival_laws.num_types, arrival.task_type.dtype)
        task_type = jnp.where(counted[:, None], arrival.task_type, nothing)
        arrived, counts = tally.tally(arrived, counts, task_type, slots)
        return state, counts, arrived

    return lax.fori_loop(first, last, one_block, carry)


def _to_host(carry, layouts, arrivals, k):
    state, counts, arrived = jax.device_get(carry)
    num_servers = layouts[0].server_of_slot.shape[1]
    arrived_shape = (arrived.shape[0], num_servers, arrived.shape[1])
    by_slot = [counts[layout.group].reshape(-1, *arrived_shape)[layout.place] for layout in layouts]
    served = np.empty((len(layouts), *by_slot[0].shape), dtype=np.int32)
    for p, layout in enumerate(layouts):
        np.put_along_axis(served[p], layout.server_of_slot[:, :, None], by_slot[p], axis=1)
    takers = served.sum(axis=2, dtype=np.int64)
    if (takers != takers[0]).any() or (takers[0] % k).any():
        raise AssertionError("policies disagree on which tasks were served (Lemma 3.1): please report this as a bug")
    return Counts(served, arrived, arrived - (takers[0] // k).astype(np.int32), arrivals, state)


def _check(instance, policies, arrivals, warmup, replicas, block, chunk):
    for field, value, least in (
        ("arrivals", arrivals, 1), ("warmup", warmup, 0), ("replicas", replicas, 1), ("block", block, 1), ("chunk", chunk, 1),
    ):  # fmt: skip
        whole_number(field, value, least, MOST_REPLICAS if field == "replicas" else None)
    check_length(arrivals + warmup)
    if instance.num_servers > MAX_SERVERS:
        raise InputError(
            f"{instance.num_servers} servers are more than {MAX_SERVERS}; merge equal ones or split the instance"
        )
    if block % tally.WORD:
        raise InputError(f"block is {block}; give a multiple of {tally.WORD}")
    if not policies:
        raise InputError("no policies to simulate; give at least one")
    for policy in policies:
        check_shape(policy, instance, levels=True)


def check_length(arrivals: int) -> None:
    """Raises InputError where a replica's counts would not fit 32 bits."""
    if arrivals > MAX_ARRIVALS:
        raise InputError(
            f"{arrivals} arrivals per replica are more than {MAX_ARRIVALS}; use more replicas instead of longer ones"
        )
