"""Replicas of the uniformised chain side by side, all policies on the same events, losses counted as integers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.loop import Loop, Watched
from lagjax.engine.model import Model, Run
from lagjax.engine.pause import Pause, Save
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
    first_replica: int = 0,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
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
      first_replica: number of the first of them: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      chunk: most blocks per call of the compiled program.
      progress: called after every chunk with the arrivals (on average, times policies and replicas) done in it.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.

    Raises:
      InputError: an argument outside its range, or a policy of another shape.
    """
    for field, value, least in (("arrivals", arrivals, 1), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least)
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    whole_number("first_replica", first_replica, 0, MOST_REPLICAS - replicas)
    check_policies(system, policies)
    per_arrival = system.event_rate / system.arrival_rate
    lengths = [_blocks(warmup * per_arrival), _blocks(arrivals * per_arrival / 2), _blocks(arrivals * per_arrival / 2)]
    if sum(lengths) * BLOCK > MOST_EVENTS:
        raise InputError(
            f"{arrivals + warmup:,} arrivals take {sum(lengths) * BLOCK:,} events per replica, of which {MOST_EVENTS:,} can be "
            "numbered; use more replicas instead of longer ones"
        )
    run = set_up(system, policies, np.arange(first_replica, first_replica + replicas), seed)
    ends = np.cumsum(lengths).tolist()
    loop = Loop(run, place_replicas(replicas, devices), Watched(chunk, progress, resume, save), end=ends[-1])
    _, *lost = (np.stack(loop.to(end)).astype(np.int64) for end in ends)
    jobs = np.stack([model.jobs(s, t) for s, t in zip(loop.state, run.tables.routes, strict=True)])
    return LossCounts(np.stack(lost), np.array(lengths[1:]) * BLOCK, jobs)


def set_up(system: System, policies: Sequence[RoutingPolicy], numbers, seed: int = 0) -> Run:
    """Returns the system of `simulate_routing` as it starts, for the replicas of these numbers."""
    replicas = len(numbers)
    tables = RoutingTables(model.event_table(system), tuple(model.route_tables(system, policy) for policy in policies))
    draws = any(t.end is not None or t.share is not None for t in tables.routes)
    ties = streams.replica_keys(seed, streams.TIES, numbers) if draws else None
    return Run(
        MODEL, tuple(model.filled(t, system.typical_jobs, replicas) for t in tables.routes),
        tuple(jnp.zeros(replicas, jnp.int32) for _ in policies), tables,
        Keys(streams.replica_keys(seed, streams.EXOGENOUS, numbers), ties),
        block=BLOCK, fits=(2**31 - 1) // BLOCK, work=BLOCK * system.arrival_rate / system.event_rate * replicas * len(policies),
    )  # fmt: skip


def replica_bytes(system: System, policies: Sequence[RoutingPolicy]) -> int:
    """Bytes of device memory that one replica takes in `simulate_routing`: state and counts twice, and a block's draws."""
    run = set_up(system, policies, np.arange(1))
    carry = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves((run.state, run.counts)))
    return 2 * carry + BLOCK * (24 + 4 * len(policies))


def _draw(tables, keys, numbers):
    return model.draw_events(tables.event, keys.exogenous, keys.ties, numbers)


def _step(states, event, tables):
    """Moves every policy; seen are, by policy, the replicas whose next job would have been lost."""
    moved = [model.step(state, event, route) for state, route in zip(states, tables.routes, strict=True)]
    return tuple(state for state, _ in moved), tuple(lost for _, lost in moved)


def _count(counts, numbers, events, lost, tables):
    return tuple(total + jnp.sum(part, axis=0, dtype=jnp.int32) for total, part in zip(counts, lost, strict=True))


MODEL = Model(_draw, _step, _count)


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
