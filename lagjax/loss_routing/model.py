"""One event of the uniformised chain: an arrival, or the end of a service at one server of one queue if that server is busy.

Events come as a Poisson process of rate Lambda = lambda + sum m_k mu_k, whatever the state; each is an arrival with probability
lambda / Lambda and belongs to server j of queue k with probability mu_k / Lambda, and then does nothing unless more than j jobs
are there. So the chain at events has the law of the process in continuous time, and a fraction of events is a fraction of time.
All policies see the same events: common random numbers.
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
from lagjax.models.select import nobody, race_in_tiers

MOST_PLACES = 2**22


@dataclasses.dataclass(frozen=True)
class RouteTables:
    """One policy on one system. Queue k with x jobs is at place k * span + x.

    Attributes:
      rank: (K * span,) unsigned ranks by place, `nobody` where the queue is full; None under "split".
      share: (W,) alias table of the queues under "split", else None.
      last: (K,) unsigned places of the full queues.
      span: a power of two above the largest room.
      rule: "strict" where no two queues ever have equal ranks, else "ties"; "split" for fixed shares.
    """

    rank: Table | None
    share: Table | None
    last: Table
    span: int
    rule: str


class State(NamedTuple):
    """(K, B) unsigned: the place of each queue, k * span + jobs, and its rank there (None under "split")."""

    place: jax.Array
    rank: jax.Array | None


class Event(NamedTuple):
    """One event per replica.

    Attributes:
      mark: (..., B) unsigned k * span + j for server j of queue k, K * span for an arrival.
      word: (..., B) uint32 random words for ties and splits, or None.
    """

    mark: jax.Array
    word: jax.Array | None


jax.tree_util.register_dataclass(RouteTables, ["rank", "share", "last"], ["span", "rule"])


def event_table(system: System) -> np.ndarray:
    """Alias table of the marks; every probability is within 2^-32 of the one asked for.

    Raises:
      InputError: the system has too many places.
    """
    serves = np.arange(_span(system)) < system.servers[:, None]
    law = np.where(serves, system.service_rate[:, None], 0.0)
    return alias.alias_table(np.r_[law.ravel(), system.arrival_rate] / system.event_rate)


def route_tables(system: System, policy: RoutingPolicy) -> RouteTables:
    """Builds a policy's tables on the host.

    Raises:
      InputError: the system has too many places.
    """
    span, queues = _span(system), system.num_queues
    last = (np.arange(queues) * span + system.room).astype(smallest_unsigned(queues * span))
    if policy.rank is None:
        return RouteTables(None, alias.alias_table(policy.share), last, span, "split")
    rank = np.full((queues, span), FULL, np.int64)
    rank[:, : policy.rank.shape[1]] = policy.rank
    dtype = smallest_unsigned(rank[rank < FULL].max() + 1)
    own = [set(row[row < FULL].tolist()) for row in rank]
    rule = "strict" if sum(map(len, own)) == len(set().union(*own)) else "ties"
    return RouteTables(np.where(rank == FULL, nobody(dtype), rank).astype(dtype).ravel(), None, last, span, rule)


def filled(tables: RouteTables, jobs, replicas: int) -> State:
    """The state with (K,) jobs in the queues of every replica."""
    place = (np.arange(len(tables.last)) * tables.span + jobs).astype(tables.last.dtype)
    rank = None if tables.rank is None else jnp.asarray(np.tile(tables.rank[place][:, None], replicas))
    return State(jnp.asarray(np.tile(place[:, None], replicas)), rank)


def draw_events(table, dtype, exogenous_keys, tie_keys, events) -> Event:
    """Draws the events numbered `events` (E,), E even and the first one even: fields (E, B); marks in `dtype`."""

    def words(keys):
        # In memory on purpose (on the CPU it is the concatenation that sees to it): fused into the look-up, the rounds of
        # the generator would not be vectorised.
        both = jnp.stack(streams.words(keys, events[::2, None] // 2, 0), axis=1)
        return lax.optimization_barrier(both).reshape(len(events), -1)

    mark = alias.draw(table, words(exogenous_keys)).astype(dtype)
    return Event(mark, None if tie_keys is None else words(tie_keys))


def step(state: State, event: Event, tables: RouteTables) -> tuple[State, jax.Array]:
    """Moves every replica of one policy by one event.

    Returns:
      The new state, and (B,) bool: whether a job that had arrived just before this event would have been lost. Its mean over
      events is the fraction of jobs lost, with less variance than counting those that do arrive (arrivals see time averages).
    """
    place, mark = state.place, event.mark
    queue = lax.broadcasted_iota(place.dtype, place.shape, 0)
    taken, lost = _route(state, event, tables, queue)
    ends = (queue == mark >> (tables.span.bit_length() - 1)) & (place > mark)
    arrival = mark == len(tables.last) * tables.span
    moves = jnp.where(arrival, taken, ends)
    moved = jnp.where(arrival, place + 1, place - 1)
    place = jnp.where(moves, moved, place)
    if state.rank is None:
        return State(place, None), lost
    there = jnp.sum(jnp.where(moves, moved, 0), axis=0, dtype=place.dtype)
    return State(place, jnp.where(moves, tables.rank[there], state.rank)), lost


def _route(state, event, tables, queue):
    """Where an arrival would go: one-hot (K, B), nothing where it is lost, and (B,) whether it is."""
    if tables.rule == "split":
        goes = queue == alias.draw(tables.share, event.word).astype(queue.dtype)
        taken = goes & (state.place < tables.last[:, None])
        return taken, ~jnp.any(taken, axis=0)
    none = nobody(state.rank.dtype)
    if tables.rule == "ties":
        one = jnp.ones((), state.rank.dtype)
        taken, slot = race_in_tiers(state.rank, one, state.rank < none, event.word[None], 1)
        return taken, slot[0] == none
    best = jnp.min(state.rank, axis=0)
    return (state.rank == best) & (best < none), best == none


def jobs(state: State, tables: RouteTables) -> jax.Array:
    """(K, B) jobs in each queue."""
    return state.place & (tables.span - 1)


def _span(system):
    span = 1 << int(system.room.max()).bit_length()
    if system.num_queues * span > MOST_PLACES:
        raise InputError(
            f"{system.num_queues} queues with room up to {system.room.max()} are too many to simulate; queues times room, "
            f"rounded up to a power of two, may be {MOST_PLACES:,}"
        )
    return span
