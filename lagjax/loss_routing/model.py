"""One event of the uniformised chain: an arrival, or the end of a service at one server of one queue if that server is busy.

Events come as a Poisson process of rate Lambda = lambda + sum m_k mu_k, whatever the state; each is an arrival with probability
lambda / Lambda and belongs to server j of queue k with probability mu_k / Lambda, and then does nothing unless more than j jobs
are there. So the chain at events has the law of the process in continuous time, and a fraction of events is a fraction of time.
All policies see the same events: common random numbers.

A queue that holds x jobs is one small number to a policy, its code: codes sort as ranks do and differ between queues, so that the
lowest code names the queue a job goes to, and one look-up moves it.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.errors import InputError
from lagjax.loss_routing.policies import FULL, RoutingPolicy
from lagjax.loss_routing.system import System
from lagjax.models import alias, streams
from lagjax.models.loss import Table, smallest_unsigned
from lagjax.models.select import draw_share

MOST_CODES = 2**16 - 1  # a table entry holds a code and a number of jobs in 16 bits each
MOST_EVENTS = 2**22  # kinds of events


@dataclasses.dataclass(frozen=True)
class EventTable:
    """The (W,) alias table of events: k * span + j for server j of queue k, K * span for an arrival."""

    law: Table
    span: int
    queues: int


@dataclasses.dataclass(frozen=True)
class RouteTables:
    """One policy on one system; C codes, one per queue and number of jobs in it. Random words are needed with `end` or `share`.

    Attributes:
      code: (K, N + 1) unsigned codes, sorted as ranks are; those of full queues are the last K.
      moved: (2 C,) uint32: at c, the jobs there in the high half and in the low half the code with one job less; at C + c, an
        even higher number and the code with one job more (c itself where the queue is full).
      end: (C,) unsigned: the least code of higher rank; None where no two queues ever have equal ranks, or jobs are split.
      share: (W,) alias table of the queues where jobs are split by fixed shares, else None.
    """

    code: Table
    moved: Table
    end: Table | None
    share: Table | None


class Event(NamedTuple):
    """One event per replica.

    Attributes:
      queue: (..., B) unsigned, k; K for an arrival.
      server: (..., B) unsigned, j.
      word: (..., B) uint32 random words for ties and splits, or None.
    """

    queue: jax.Array
    server: jax.Array
    word: jax.Array | None


jax.tree_util.register_dataclass(EventTable, ["law"], ["span", "queues"])
jax.tree_util.register_dataclass(RouteTables, ["code", "moved", "end", "share"], [])


def event_table(system: System) -> EventTable:
    """Builds the table of events; every probability is within 2^-32 of the one asked for.

    Raises:
      InputError: too many queues times servers.
    """
    span = 1 << int(system.servers.max() - 1).bit_length()
    if system.num_queues * span >= MOST_EVENTS:
        raise InputError(
            f"{system.num_queues} queues of up to {system.servers.max()} servers are too many to simulate: queues times servers, "
            f"rounded up to a power of two, must be below {MOST_EVENTS:,}"
        )
    law = np.where(np.arange(span) < system.servers[:, None], system.service_rate[:, None], 0.0)
    law = np.r_[law.ravel(), system.arrival_rate] / system.event_rate
    return EventTable(alias.alias_table(law), span, system.num_queues)


def route_tables(system: System, policy: RoutingPolicy) -> RouteTables:
    """Builds a policy's tables on the host.

    Raises:
      InputError: too many queues times room.
    """
    total = int((system.room + 1).sum())
    if total > MOST_CODES:
        raise InputError(f"{total:,} queues and places are too many to simulate; they may sum to {MOST_CODES:,}")
    queue = np.repeat(np.arange(system.num_queues), system.room + 1)
    jobs = np.concatenate([np.arange(n + 1) for n in system.room])
    full = jobs == system.room[queue]
    rank = np.where(full, FULL, 0) if policy.rank is None else policy.rank[queue, jobs]
    order = np.lexsort((jobs, queue, rank))
    code = np.zeros((system.num_queues, int(system.room.max()) + 1), smallest_unsigned(total))
    code[queue[order], jobs[order]] = np.arange(total)
    queue, jobs, rank, full = queue[order], jobs[order], rank[order], full[order]
    down = code[queue, np.maximum(jobs - 1, 0)].astype(np.uint32)
    up = code[queue, jobs + ~full].astype(np.uint32)
    moved = np.r_[jobs.astype(np.uint32) << np.uint32(16) | down, np.uint32(MOST_CODES) << np.uint32(16) | up]
    if policy.rank is None:
        return RouteTables(code, moved, None, alias.alias_table(policy.share))
    # Two queues share a rank where it occurs in one queue and then, next in order, in another one.
    tied = (np.diff(rank) == 0) & (np.diff(queue) != 0) & ~full[1:]
    if not tied.any():
        return RouteTables(code, moved, None, None)
    end = np.searchsorted(rank, rank, side="right")  # all full: any of them, and the job is lost
    return RouteTables(code, moved, end.astype(code.dtype), None)


def filled(tables: RouteTables, jobs, replicas: int) -> jax.Array:
    """(K, B) codes of (K,) jobs in the queues of every replica: a state."""
    code = tables.code[np.arange(len(tables.code)), jobs]
    return jnp.asarray(np.tile(code[:, None], replicas))


def jobs(code, tables: RouteTables) -> np.ndarray:
    """(K, B) jobs in each queue of a state, on the host."""
    return (np.asarray(tables.moved) >> np.uint32(16))[np.asarray(code)].astype(np.int64)


def draw_events(table: EventTable, exogenous_keys, tie_keys, events) -> Event:
    """Draws the events numbered `events` (E,), E even and the first one even: fields (E, B)."""

    def words(keys):
        # In memory on purpose (on the CPU it is the concatenation that sees to it): fused into the look-up, the rounds of
        # the generator would not be vectorised.
        both = jnp.stack(streams.words(keys, events[::2, None] // 2, 0), axis=1)
        return lax.optimization_barrier(both).reshape(len(events), -1)

    mark = alias.draw(table.law, words(exogenous_keys))
    return Event(
        queue=(mark >> (table.span.bit_length() - 1)).astype(smallest_unsigned(table.queues)),
        server=(mark & (table.span - 1)).astype(smallest_unsigned(table.span)),
        word=None if tie_keys is None else words(tie_keys),
    )


def step(code: jax.Array, event: Event, tables: RouteTables) -> tuple[jax.Array, jax.Array]:
    """Moves every replica of one policy by one event.

    Args:
      code: (K, B) the state: the code of every queue.

    Returns:
      The new state, and (B,) bool: whether a job that had arrived just before this event would have been lost. Its mean over
      events is the fraction of jobs lost, with less variance than counting those that do arrive (arrivals see time averages).
    """
    queues, codes = code.shape[0], tables.moved.shape[0] // 2
    number = lax.broadcasted_iota(event.queue.dtype, code.shape, 0)

    def code_of(queue):
        return jnp.max(jnp.where(number == queue, code, jnp.zeros((), code.dtype)), axis=0)

    arrival = event.queue == queues
    if tables.share is not None:
        joined = code_of(alias.draw(tables.share, event.word).astype(number.dtype))
    else:
        joined = jnp.min(code, axis=0)
        if tables.end is not None:
            one = jnp.ones((), smallest_unsigned(queues))
            joined = code_of(draw_share(code < tables.end[joined], one, event.word).astype(number.dtype))
    lost = joined >= codes - queues
    old = jnp.where(arrival, joined, code_of(event.queue))
    entry = tables.moved[old.astype(jnp.int32) + jnp.where(arrival, codes, 0)]
    # A code belongs to one queue, so the queue that moves is the one that has it.
    new = jnp.where((entry >> 16).astype(jnp.int32) > event.server.astype(jnp.int32), entry.astype(code.dtype), old)
    return jnp.where(code == old, new, code), lost
