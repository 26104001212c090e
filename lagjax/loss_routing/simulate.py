"""Replicas of the uniformised chain side by side, all policies on the same events, losses counted as integers."""

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
from lagjax.loss_routing import model
from lagjax.loss_routing.policies import RoutingPolicy
from lagjax.loss_routing.system import System
from lagjax.models import streams

BLOCK = 64  # events drawn together; what is simulated is rounded up to whole blocks
CHUNK = 512  # most blocks per call of the compiled program; results do not depend on it
MOST_EVENTS = 2**32 - BLOCK  # events are 32-bit numbers


class RoutingTables(NamedTuple):
    """What happens, and each policy's tables."""

    event: model.EventTable
    routes: tuple[model.RouteTables, ...]


class Keys(NamedTuple):
    """(2, B) stream keys of the events, and of ties and splits (None where no policy draws any)."""

    exogenous: jax.Array | np.ndarray
    ties: jax.Array | np.ndarray | None


class LossCounts(NamedTuple):
    """What was counted.

    Attributes:
      lost: (2, P, B) int64 events, of the first and the second half of those counted, at which a job that had arrived would have
        been lost; times `arrival_rate` over `events` it estimates jobs lost per unit time.
      events: (2,) events per replica in each half.
      jobs: (P, K, B) jobs in the queues after the last event.
    """

    lost: np.ndarray
    events: np.ndarray
    jobs: np.ndarray


def simulate_routing(
    system: System,
    policies: Sequence[RoutingPolicy],
    *,
    arrivals: int,
    warmup: int = 0,
    replicas: int = 1024,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
) -> LossCounts:
    """Simulates all policies on the same arrivals and the same services.

    Results depend on the system, the policies, `arrivals`, `warmup` and `seed` alone: bit for bit, replica i of a policy is the
    same whatever runs beside it and however the work is cut.

    Args:
      system: what to simulate.
      policies: at least one, built for this system.
      arrivals, warmup: jobs per replica on average, counted and dropped before; rounded up to whole blocks of events. A replica
        starts from `system.typical_jobs`.
      replicas: B.
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most blocks per call of the compiled program.
      progress: called after every chunk with the arrivals (on average, times policies and replicas) done in it.

    Raises:
      InputError: an argument outside its range, or a policy of another shape.
    """
    for field, value, least in (("arrivals", arrivals, 1), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least)
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    check_policies(system, policies)
    per_arrival = system.event_rate / system.arrival_rate
    lengths = [_blocks(warmup * per_arrival), _blocks(arrivals * per_arrival / 2), _blocks(arrivals * per_arrival / 2)]
    if sum(lengths) * BLOCK > MOST_EVENTS:
        raise InputError(
            f"{arrivals + warmup:,} arrivals take {sum(lengths) * BLOCK:,} events per replica, of which {MOST_EVENTS:,} can be "
            "numbered; use more replicas instead of longer ones"
        )
    placed = place_replicas(replicas, devices)
    host = tuple(model.route_tables(system, policy) for policy in policies)
    tables = placed.everywhere(RoutingTables(model.event_table(system), host))
    numbers = np.arange(replicas)
    draws = any(t.end is not None or t.share is not None for t in host)
    ties = streams.replica_keys(seed, streams.TIES, numbers) if draws else None
    keys = placed.by_replica(Keys(streams.replica_keys(seed, streams.EXOGENOUS, numbers), ties))
    state = placed.by_replica(tuple(model.filled(t, system.typical_jobs, replicas) for t in host))
    zero = placed.by_replica(tuple(jnp.zeros(replicas, jnp.int32) for _ in host))
    run, lost, now = driver(block, placed), [], 0
    for length in lengths:
        total = np.zeros((len(host), replicas), np.int64)
        for first in range(now, now + length, chunk):
            last = min(first + chunk, now + length)
            state, counts = run(state, zero, np.uint32(first), np.uint32(last), tables, keys)
            total += np.stack(jax.device_get(counts))
            if progress is not None:
                progress(round((last - first) * BLOCK / per_arrival * replicas * len(host)))
        now += length
        lost.append(total)
    jobs = np.stack([model.jobs(s, t) for s, t in zip(state, host, strict=True)])
    return LossCounts(np.stack(lost[1:]), np.array(lengths[1:]) * BLOCK, jobs)


def block(state, counts, now, tables: RoutingTables, keys: Keys):
    """Runs block number `now`: draws its events at once, then moves every policy by one after another of them."""
    events = now * jnp.uint32(BLOCK) + jnp.arange(BLOCK, dtype=jnp.uint32)
    drawn = model.draw_events(tables.event, keys.exogenous, keys.ties, events)

    def one(carry, event):
        state, counts = carry
        moved = [model.step(s, event, t) for s, t in zip(state, tables.routes, strict=True)]
        counts = tuple(c + lost.astype(c.dtype) for c, (_, lost) in zip(counts, moved, strict=True))
        return (tuple(s for s, _ in moved), counts), None

    return lax.scan(one, (state, counts), drawn)[0]


def check_policies(system: System, policies: Sequence[RoutingPolicy]) -> None:
    """Raises InputError unless there are policies and all were built for queues like these."""
    if not policies:
        raise InputError("no policies to simulate; give at least one")
    table = (system.num_queues, int(system.room.max()) + 1)
    for policy in policies:
        given, needed = (policy.share, table[:1]) if policy.rank is None else (policy.rank, table)
        if given is None or given.shape != needed:
            shape = None if given is None else given.shape
            raise InputError(f"policy '{policy.name}' has shape {shape}; the system needs {needed}")


def _blocks(events):
    return -(-int(np.ceil(events)) // BLOCK)
