"""Replicas side by side, all policies on the same departures; jobs counted as integers, discounted on the host in float64."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.loop import Loop, Watched
from lagjax.engine.model import Model, Run
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.models import streams
from lagjax.partial_information import model
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.system import System

BLOCK = 16  # slots drawn together; a run ends with a whole block, of which no more is counted than asked for
CHUNK = 32  # most blocks whose rewards wait on the device; results do not depend on it
MOST_SLOTS = 2**32 - BLOCK
STARTS = ("full", "empty")


class Tables(NamedTuple):
    """What happens, and each policy's tables."""

    slot: model.SlotTables
    policies: tuple[model.PolicyTables, ...]


class Keys(NamedTuple):
    """(2, B) stream keys of what happens, and of random choices (None where no policy makes any)."""

    exogenous: jax.Array | np.ndarray
    choices: jax.Array | np.ndarray | None


class Rewards(NamedTuple):
    """What was counted, up to each of H horizons.

    Attributes:
      horizons: (H,) slots, ascending.
      total: (H, P, B) int64 jobs taken in slots 0, ..., horizon - 1.
      discounted: (H, P, B) float64 the same with slot t weighted by beta^t; relative rounding error below 1e-12.
      backlog: (P, N, B) jobs at the servers after the block of BLOCK slots with the last one.
    """

    horizons: np.ndarray
    total: np.ndarray
    discounted: np.ndarray
    backlog: np.ndarray


def simulate_dispatching(
    system: System,
    policies: Sequence[Dispatching],
    *,
    horizons: Sequence[int] = (1000,),
    start: str = "full",
    replicas: int = 1024,
    first_replica: int = 0,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
) -> Rewards:
    """Simulates all policies on the same departures, arrivals and offers.

    Results depend on the system, the policies, the longest horizon, `start` and `seed` alone: bit for bit, replica i of a
    policy is the same whatever runs beside it and however the work is cut.

    Args:
      system: what to simulate.
      policies: at least one, built for this system.
      horizons: slots after which sums are given, ascending; the last one ends the run.
      start: "full" (every server was just filled, in the slot before the first) or "empty".
      replicas: B.
      first_replica: number of the first of them: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most blocks per call of the compiled program, at most CHUNK.
      progress: called after every chunk with the slots (times policies and replicas) done in it.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.

    Raises:
      InputError: an argument outside its range, or a policy of another shape.
    """
    whole_number("chunk", chunk, 1)
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    for horizon in horizons:
        whole_number("horizon", horizon, 1, MOST_SLOTS)
    if not len(horizons) or np.any(np.diff(horizons) <= 0):
        raise InputError(f"horizons {list(horizons)} do not ascend; give each once, shortest first")
    if start not in STARTS:
        raise InputError(f"no start '{start}'; choose from {', '.join(STARTS)}")
    if not policies:
        raise InputError("no policies to simulate; give at least one")
    whole_number("first_replica", first_replica, 0, MOST_REPLICAS - replicas)
    horizons = [int(horizon) for horizon in horizons]
    run = set_up(system, policies, horizons, start, np.arange(first_replica, first_replica + replicas), seed)
    end = -(-horizons[-1] // BLOCK)
    loop = Loop(run, place_replicas(replicas, devices), Watched(chunk, progress, resume, save), end=end)
    sums = loop.to(end)
    return Rewards(
        np.array(horizons), sums.total, sums.discounted, np.stack([np.asarray(s.backlog) for s in loop.state])
    )


class Sums(NamedTuple):
    """(P, B) sums so far, and (H, P, B) those at the horizons that are behind (zero where not); see `Rewards`."""

    total_now: np.ndarray
    discounted_now: np.ndarray
    total: np.ndarray
    discounted: np.ndarray


def set_up(system: System, policies: Sequence[Dispatching], horizons, start, numbers, seed: int = 0) -> Run:
    """Returns the system of `simulate_dispatching` as it starts, for the replicas of these numbers."""
    replicas = len(numbers)
    tables = Tables(model.slot_tables(system), tuple(model.policy_tables(system, policy) for policy in policies))
    draws = any(table.draws for table in tables.policies)
    choices = streams.replica_keys(seed, streams.TIES, numbers) if draws else None
    jobs = system.capacity if start == "full" else 0
    shape = (len(policies), replicas)
    every = (len(horizons), *shape)
    return Run(
        MODEL, tuple(model.filled(table, jobs, replicas) for table in tables.policies),
        jnp.zeros((CHUNK * BLOCK, *shape), jnp.uint8), tables,
        Keys(streams.replica_keys(seed, streams.EXOGENOUS, numbers), choices),
        block=BLOCK, fits=CHUNK, work=BLOCK * replicas * len(policies), add=functools.partial(_add, system.discount, horizons),
        total=Sums(np.zeros(shape, np.int64), np.zeros(shape), np.zeros(every, np.int64), np.zeros(every)),
    )  # fmt: skip


def replica_bytes(system: System, policies: Sequence[Dispatching], horizons: Sequence[int]) -> int:
    """Bytes that one replica takes in `simulate_dispatching`: state and rewards twice, and the sums on the host."""
    run = set_up(system, policies, horizons, "full", np.arange(1))
    carry = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves((run.state, run.counts)))
    return 2 * carry + 2 * sum(x.nbytes for x in run.total)


def _add(discount, horizons, sums, taken, first, last):
    """Adds rewards slot by slot, so that no bit depends on chunks and batches; sums at horizons are noted on the way."""
    total, discounted, totals, every = (x.copy() for x in sums)
    now, last = first * BLOCK, min(last * BLOCK, horizons[-1])
    weighted = np.empty_like(discounted)
    for end in sorted({last, *(h for h in horizons if now < h < last)}):
        rewards = taken[np.arange(now, end) % len(taken)]
        total += rewards.sum(axis=0, dtype=np.int64)
        for slot, reward in enumerate(rewards, now):
            np.multiply(reward, discount**slot, out=weighted)
            discounted += weighted
        if end in horizons:
            totals[horizons.index(end)], every[horizons.index(end)] = total, discounted
        now = end
    return Sums(total, discounted, totals, every)


def _draw(tables, keys, slots):
    return model.draw_slots(tables.slot, keys.exogenous, keys.choices, slots)


def _step(states, event, tables):
    states, taken = model.step(states, event, tables.slot, tables.policies)
    return tuple(states), jnp.stack(taken)


def _count(taken, slots, events, rewards, tables):
    """Writes what a block brought to its rows of `taken` (CHUNK BLOCK, P, B)."""
    return lax.dynamic_update_slice_in_dim(taken, rewards, slots[0] % jnp.uint32(taken.shape[0]), axis=0)


MODEL = Model(_draw, _step, _count)
