"""The scaled system of one policy: two windows counted exactly, or its path state by state."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import jax
import numpy as np

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.loop import Loop, Watched
from lagjax.engine.model import Model, Run
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.models import scaled, streams
from lagjax.models.hypergeometric import MAX_TOTAL, TRIES
from lagjax.models.race import SPLITS
from lagjax.policies.table import Policy, check_shape

MODEL = Model(scaled.draw, scaled.step, scaled.count)
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
    run = set_up(instance, policy, copies, dispatchers, numbers, seed, start, most_dispatchers)
    ends = np.cumsum((warmup, steps // 2, steps - steps // 2)).tolist()
    loop = Loop(run, place_replicas(replicas, devices), Watched(chunk, progress, resume, save), end=ends[-1])
    _, *halves = (loop.to(end) for end in ends)
    first, second = (
        Window(half.served.astype(np.int64), half.arrived.astype(np.int64), half.blocked.astype(np.int64), length)
        for half, length in zip(halves, np.diff(ends).tolist(), strict=True)
    )
    return first, second


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
    run = set_up(instance, policy, copies, dispatchers, np.arange(replicas), seed, start, most_dispatchers)
    loop = Loop(run, place_replicas(replicas, devices), Watched(every))

    def states():
        for now in range(0, steps + 1, every):
            loop.to(now)
            yield np.asarray(_occupancy(loop.state, np.uint32(now), np.int32(copies * dispatchers)))

    return states()


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
    carry = jax.eval_shape(lambda: (scaled.empty(tables, 1), scaled.no_counts(tables, 1)))
    return 4 * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(carry))


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


def set_up(instance, policy, copies, dispatchers, numbers, seed=0, start=None, most_dispatchers=None) -> Run:
    """Returns the system of `simulate_scaled` at step 0, for the replicas of these numbers."""
    replicas = len(numbers)
    tables = scaled.scaled_tables(instance, policy, copies, dispatchers, most_dispatchers or dispatchers)
    if start is None:
        state = scaled.empty(tables, replicas)
    else:
        check_start(instance, start)
        state = scaled.filled(tables, start, replicas)
    keys = scaled.Keys(
        *(streams.replica_keys(seed, s, numbers) for s in (streams.EXOGENOUS, streams.PARTITION, streams.TIES))
    )
    return Run(
        MODEL, state, scaled.no_counts(tables, replicas), tables, keys,
        fits=max(1, (2**31 - 1) // (copies * dispatchers)), work=replicas * dispatchers, wide=True,
    )  # fmt: skip


_occupancy = jax.jit(scaled.occupancy)
