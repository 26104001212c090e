"""Replicas side by side, all policies on the same departures; jobs counted as integers, discounted on the host in float64."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.drive import driver
from lagjax.errors import InputError
from lagjax.models import streams
from lagjax.partial_information import model
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.system import System

BLOCK = 16  # slots drawn together; a run ends with a whole block, of which no more is counted than asked for
CHUNK = 32  # most blocks per call of the compiled program, whose rewards wait in memory; results do not depend on it
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
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
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
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most blocks per call of the compiled program.
      progress: called after every chunk with the slots (times policies and replicas) done in it.

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
    placed = place_replicas(replicas, devices)
    host = tuple(model.policy_tables(system, policy) for policy in policies)
    tables = placed.everywhere(Tables(model.slot_tables(system), host))
    numbers = np.arange(replicas)
    draws = any(table.draws for table in host)
    choices = streams.replica_keys(seed, streams.TIES, numbers) if draws else None
    keys = placed.by_replica(Keys(streams.replica_keys(seed, streams.EXOGENOUS, numbers), choices))
    jobs = system.capacity if start == "full" else 0
    state = placed.by_replica(tuple(model.filled(t, jobs, replicas) for t in host))
    zero = placed.by_replica(jnp.zeros((chunk * BLOCK, len(host), replicas), jnp.uint8))
    run = driver(block, placed)
    total, discounted = np.zeros((len(host), replicas), np.int64), np.zeros((len(host), replicas))
    totals, sums = [], []
    for first in range(0, -(-horizons[-1] // BLOCK), chunk):
        last = min(first + chunk, -(-horizons[-1] // BLOCK))
        state, taken = run(state, zero, np.uint32(first), np.uint32(last), tables, keys)
        taken, now = np.asarray(taken, np.float64), first * BLOCK
        for end in (*(h for h in horizons if now < h <= last * BLOCK), min(last * BLOCK, horizons[-1])):
            slots = np.arange(now, end, dtype=np.float64)
            weights = np.stack([np.ones_like(slots), system.discount**slots])
            here = now - first * BLOCK
            plain, weighted = np.tensordot(weights, taken[here : here + len(slots)], axes=1)
            total = total + plain.astype(np.int64)  # whole numbers far below 2^53
            discounted = discounted + weighted
            if end in horizons and len(slots):
                totals.append(total)
                sums.append(discounted)
            now = end
        if progress is not None:
            progress((last - first) * BLOCK * replicas * len(host))
    backlog = np.stack([np.asarray(s.backlog) for s in state])
    return Rewards(np.array(horizons), np.stack(totals), np.stack(sums), backlog)


def block(state, taken, now, tables: Tables, keys: Keys):
    """Runs block number `now` and writes what was taken to its rows of `taken` (slots, P, B)."""
    slots = now * jnp.uint32(BLOCK) + jnp.arange(BLOCK, dtype=jnp.uint32)
    drawn = model.draw_slots(tables.slot, keys.exogenous, keys.choices, slots)

    def one(state, event):
        state, reward = model.step(state, event, tables.slot, tables.policies)
        return tuple(state), jnp.stack(reward)

    state, reward = lax.scan(one, state, drawn)
    row = slots[0] % jnp.uint32(taken.shape[0])
    return state, lax.dynamic_update_slice_in_dim(taken, reward, row, axis=0)
