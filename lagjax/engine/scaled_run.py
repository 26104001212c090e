"""The driver of the scaled system: steps in a loop, replicas sharded over devices, counts flushed to 64 bits per chunk."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.drive import driver
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.models import scaled, streams
from lagjax.models.hypergeometric import MAX_TOTAL, TRIES
from lagjax.models.race import SPLITS
from lagjax.policies.table import Policy, check_shape

MOST_RACES = 2**32 // (SPLITS * TRIES)
MOST_STEPS = 2**31  # steps are 32-bit numbers
START_TOLERANCE = 1e-6  # of a start's entries and row sums; solutions of a program are that exact, float32 states too
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
    first_replica: int = 0,
    seed: int = 0,
    start=None,
    most_dispatchers: int | None = None,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
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
      first_replica: number of the first of them: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      start: (R, d+1) fluid state to start from, rounded to whole copies: start[r, i] of the copies of server r have i steps of
        service left, start[r, 0] are free, rows sum to 1 (such as `lagjax.fluid.lp_fixed_point`); by default all are free.
      most_dispatchers: largest m of a study; studies that name it compile once for all sizes.
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most steps per call of the compiled program.
      progress: called with the steps (times replicas and dispatchers) done in each chunk.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.

    Raises:
      InputError: an argument outside its range.
    """
    check_size(instance, policy, copies, dispatchers, replicas)
    for field, value, least in (("steps", steps, 2), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least, MOST_STEPS)
    whole_number("first_replica", first_replica, 0, MOST_REPLICAS - replicas)
    numbers = np.arange(first_replica, first_replica + replicas)
    state, advance = _set_up(instance, policy, copies, dispatchers, numbers, seed, start, most_dispatchers, devices)
    longest = max(1, min(chunk, (2**31 - 1) // (copies * dispatchers)))  # a chunk's counts fit 32 bits
    shapes = _count_shapes(instance, replicas)
    sums = [[np.zeros(shape, np.int64) for shape in shapes] for _ in range(3)]
    ends = np.cumsum((warmup, steps // 2, steps - steps // 2))
    now = 0
    if resume is not None:
        now, state, sums = _resumed(resume, state, sums)
    while now < ends[-1]:
        window = int(np.searchsorted(ends, now, side="right"))
        last = min(now + longest, int(ends[window]))
        state, counts = advance(state, now, last)
        for total, part in zip(sums[window], jax.device_get(counts), strict=True):
            total += part
        if progress is not None:
            progress((last - now) * replicas * dispatchers)
        now = last
        if save is not None and now < ends[-1]:
            save(now, functools.partial(_leaves, state, sums))
    first, second = (
        Window(part[0], part[1], part[2], length) for part, length in zip(sums[1:], np.diff(ends).tolist(), strict=True)
    )
    return first, second


def _leaves(state, sums):
    return [np.asarray(x) for x in jax.device_get(jax.tree.leaves(state))] + [x.copy() for part in sums for x in part]


def _resumed(pause, state, sums):
    """The step to go on from, the state and the sums; those given say what they must look like."""
    placed = jax.tree.leaves(state)
    expected = [(x.shape, x.dtype) for x in [*placed, *(x for part in sums for x in part)]]
    if [(x.shape, x.dtype) for x in pause.arrays] != expected:
        raise InputError("the run to resume was of another size or kind; start it anew")
    leaves = [jax.device_put(x, like.sharding) for x, like in zip(pause.arrays, placed, strict=False)]
    counts = iter([np.array(x) for x in pause.arrays[len(placed) :]])
    state = jax.tree.unflatten(jax.tree.structure(state), leaves)
    return pause.done, state, [[next(counts) for _ in part] for part in sums]


def trace_scaled(
    instance: Instance,
    policy: Policy,
    *,
    copies: int,
    dispatchers: int,
    steps: int,
    replicas: int = 128,
    seed: int = 0,
    start=None,
    every: int = 1,
    most_dispatchers: int | None = None,
    devices: Sequence[jax.Device] | None = None,
) -> Iterator[np.ndarray]:
    """Follows the path that `simulate_scaled` counts, state by state.

    Args:
      every: steps from one state to the next. The other arguments are as in `simulate_scaled`.

    Returns:
      An iterator over (B, R, d+1) float32 occupancies, fractions of the copies of each server with i steps of service left: at
      step 0, which is the start in whole copies, at step `every`, and so on to `steps`.

    Raises:
      InputError: an argument outside its range.
    """
    check_size(instance, policy, copies, dispatchers, replicas)
    whole_number("steps", steps, 0, MOST_STEPS)
    whole_number("every", every, 1, MOST_STEPS)
    if start is None:
        start = np.eye(1, instance.max_duration + 1).repeat(instance.num_servers, axis=0)
    numbers = np.arange(replicas)
    state, advance = _set_up(instance, policy, copies, dispatchers, numbers, seed, start, most_dispatchers, devices)

    def states(state):
        for now in range(0, steps + 1, every):
            yield np.asarray(_occupancy(state, np.uint32(now), np.int32(copies * dispatchers)))
            if now + every <= steps:
                state, _ = advance(state, now, now + every)

    return states(state)


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
    check_shape(policy, instance)


def replica_bytes(instance: Instance, policy: Policy, copies: int, dispatchers: int) -> int:
    """Bytes of device memory that one replica takes in `simulate_scaled`: its state and counts, and as much again thrice."""
    tables = scaled.scaled_tables(instance, policy, copies, dispatchers, dispatchers)
    state = jax.eval_shape(lambda: scaled.empty(tables, 1))
    counts = sum(4 * int(np.prod(shape)) for shape in _count_shapes(instance, 1))
    return 4 * (counts + sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state)))


def check_start(instance: Instance, start) -> None:
    """Raises InputError unless `start` is a fluid state of the instance: (R, d+1), nothing negative, rows that sum to 1."""
    start, shape = np.asarray(start), (instance.num_servers, instance.max_duration + 1)
    if start.shape != shape:
        raise InputError(
            f"start has shape {start.shape}; instance '{instance.name}' needs {shape}: servers, and steps of service left from 0"
        )
    if not np.all(start >= -START_TOLERANCE):  # NaN is refused too
        raise InputError(f"start has an entry of {start.min():g}; entries are fractions of copies")
    row = int(np.argmax(np.abs(start.sum(axis=1) - 1)))
    if not abs(start[row].sum() - 1) <= START_TOLERANCE:
        raise InputError(f"start's row {row} sums to {start[row].sum():g}; every row sums to 1")


def _set_up(instance, policy, copies, dispatchers, numbers, seed, start, most_dispatchers, devices):
    """The state at step 0, and advance(state, first, last): the state at step `last` and what was counted on the way."""
    replicas = len(numbers)
    placed = place_replicas(replicas, devices)
    tables = scaled.scaled_tables(instance, policy, copies, dispatchers, most_dispatchers or dispatchers)
    if start is None:
        state = scaled.empty(tables, replicas)
    else:
        check_start(instance, start)
        state = scaled.filled(tables, start, replicas)
    with jax.enable_x64(True):  # the weights stay float64
        tables = placed.everywhere(tables)
    keys = scaled.Keys(
        *(streams.replica_keys(seed, s, numbers) for s in (streams.EXOGENOUS, streams.PARTITION, streams.TIES))
    )
    keys, state = placed.by_replica(keys), placed.by_replica(state)
    zero = placed.by_replica(scaled.Counts(*(jnp.zeros(s, jnp.int32) for s in _count_shapes(instance, replicas))))
    run = driver(scaled.step, placed)

    def advance(state, first, last):
        return run(state, zero, np.uint32(first), np.uint32(last), tables, keys)

    return state, advance


_occupancy = jax.jit(scaled.occupancy)


def _count_shapes(instance, replicas):
    per_type = (instance.num_types, replicas)
    return (*instance.scores.shape, replicas), per_type, per_type
