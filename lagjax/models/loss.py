"""The original system: at most one arrival a step, k servers a task, lost when fewer than k are free (Lag, section 1.1).

Time moves from arrival to arrival: the idle steps between two arrivals are skipped exactly, by their geometric number.
A server's state is the time it stays busy, so the cost of an arrival does not grow with d.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.instance import Instance
from lagjax.models import alias, streams, tally
from lagjax.models.select import first_in_order, numbers_of, race_in_tiers, rows_of_type

Table = jax.Array | np.ndarray  # on the host until it is placed


@dataclasses.dataclass(frozen=True)
class ArrivalTables:
    """Laws of what arrives. W and U are powers of two.

    Attributes:
      mark: (W,) alias table of the marks (type, duration): mark v * span + D - shortest, span a power of two.
      gap: (U,) alias table of the steps from one arrival to the next, lumped at d + 1, when every server is free.
      span, shortest, longest: layout of the marks; the shortest and longest durations of any type, in steps.
      num_types: V.
      servers_per_task: k.
    """

    mark: Table
    gap: Table
    span: int
    shortest: int
    longest: int
    num_types: int
    servers_per_task: int

    @property
    def hold_dtype(self) -> np.dtype:
        """Narrowest unsigned dtype of D + 1: 64 lanes to a vector beat 16."""
        return smallest_unsigned(self.longest + 1)

    @property
    def type_dtype(self) -> np.dtype:
        """Narrowest unsigned dtype of a task type and of V, which stands for none."""
        return smallest_unsigned(self.num_types)


@dataclasses.dataclass(frozen=True)
class PolicyTables:
    """Policies as data, in up to four groups that share a rule; an absent group is None.

    Attributes:
      order: (P1, V, R) unsigned ranks of policies that fix an order of servers for every type.
      even: (P2, V, R) unsigned tiers of policies that choose uniformly at random within a tier.
      tier, weight: (P3, V, R) unsigned tiers and float32 weights of policies that race within a tier.
      level: (P4, m V, R) unsigned ranks of policies whose order depends on the number n of running tasks; row n V + v.
    """

    order: Table | None
    even: Table | None
    tier: Table | None
    weight: Table | None
    level: Table | None = None


class LossTables(NamedTuple):
    """Everything that is given.

    Attributes:
      arrivals, policies: what comes, and what is done with it.
      window: (2,) uint32 numbers of the first arrival that is counted and of the first that is not any more.
    """

    arrivals: ArrivalTables
    policies: PolicyTables
    window: Table


class Keys(NamedTuple):
    """(2, B) uint32 stream keys: of arrivals, and of ties (None where no policy draws any)."""

    exogenous: Table
    ties: Table | None


class Counts(NamedTuple):
    """What is counted, int32.

    Attributes:
      served: per group of policies ([P,] V, S, B) tasks of type v that took slot s, or None.
      arrived: (V, B) tasks of type v.
    """

    served: tuple
    arrived: Table


class Arrival(NamedTuple):
    """One arrival per replica, the same under every policy.

    Attributes:
      task_type: (..., B) v.
      hold: (..., B) D + 1, steps from the arrival until the servers it takes can be taken again.
      gap: (..., B) steps since the arrival before, d + 1 standing for all that is more.
      tie: (..., k, B) random words for ties, or None.
    """

    task_type: jax.Array
    hold: jax.Array
    gap: jax.Array
    tie: jax.Array | None


jax.tree_util.register_dataclass(
    ArrivalTables, ["mark", "gap"], ["span", "shortest", "longest", "num_types", "servers_per_task"]
)
jax.tree_util.register_dataclass(PolicyTables, ["order", "even", "tier", "weight", "level"], [])


def smallest_unsigned(largest: int) -> np.dtype:
    """Returns the narrowest of uint8, uint16, uint32 that holds `largest`."""
    return np.min_scalar_type(int(largest))


def arrival_tables(instance: Instance) -> ArrivalTables:
    """Builds the tables on the host; all probabilities are within 2^-32 of the instance's."""
    used = np.flatnonzero(instance.service_pmf.any(axis=0))
    shortest, longest = int(used[0]) + 1, int(used[-1]) + 1
    span = 1 << (longest - shortest).bit_length()
    share = instance.arrival_rate / instance.total_rate
    law = np.zeros((instance.num_types, span))
    law[:, : longest - shortest + 1] = share[:, None] * instance.service_pmf[:, shortest - 1 : longest]
    rate = min(instance.total_rate, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.exp(np.arange(longest + 1) * np.log1p(-rate))  # P(gap > i), i = 0..d
    survival[0] = 1.0
    gap = np.r_[0.0, survival[:-1] - survival[1:], survival[-1]]  # P(gap = 0), ..., P(gap = d), P(gap > d)
    mark, k = alias.alias_table(law.ravel()), instance.servers_per_task
    return ArrivalTables(mark, alias.alias_table(gap), span, shortest, longest, law.shape[0], k)


def draw(tables: LossTables, keys: Keys, numbers) -> Arrival:
    """Draws the arrivals of these (E,) numbers for every replica: fields (E, B), ties (E, k, B) or None without keys."""
    law, number = tables.arrivals, numbers[:, None]
    k = law.servers_per_task
    # In memory on purpose: fused into the look-ups, the 20 rounds would be done once per field. On the CPU it is the
    # concatenation and the look-up that see to it (XLA drops barriers there), elsewhere the barriers.
    word = lax.optimization_barrier(jnp.stack(streams.words(keys.exogenous, number, 0)))
    mark = lax.optimization_barrier(alias.draw(law.mark, word[0]))
    tie = None
    if keys.ties is not None:
        pairs = [streams.words(keys.ties, number, slot) for slot in range(-(-k // 2))]
        tie = jnp.stack([word for pair in pairs for word in pair][:k], axis=1)
    return Arrival(
        task_type=(mark // law.span).astype(law.type_dtype),
        hold=(mark % law.span + (law.shortest + 1)).astype(law.hold_dtype),
        gap=alias.draw(law.gap, word[1]).astype(law.hold_dtype),
        tie=tie,
    )


def init(tables: ArrivalTables, policies: PolicyTables, replicas: int) -> tuple:
    """Returns the empty system: one (P, R, B) array per group of policies, (R, B) for a group of
    one, None for an absent group.

    An entry counts the steps, from the last arrival on, until the server can be taken again (0: free; D + 1 when just
    taken), in the narrowest unsigned dtype that holds d + 1.
    """

    def empty(table):
        if table is None:
            return None
        lanes = _without_lone_axis(table).shape[:-2]
        return jnp.zeros((*lanes, table.shape[-1], replicas), tables.hold_dtype)

    return tuple(empty(table) for table in (policies.order, policies.even, policies.tier, policies.level))


def no_counts(tables: ArrivalTables, state: tuple, replicas: int) -> Counts:
    """Returns zeros, on the host, where they take no memory before they are copied."""
    num_types = tables.num_types
    served = tuple(
        None if s is None else np.zeros((*s.shape[:-2], num_types, s.shape[-2], replicas), np.int32) for s in state
    )
    return Counts(served, np.zeros((num_types, replicas), np.int32))


def count(counts: Counts, numbers, arrivals: Arrival, slots, tables: LossTables) -> Counts:
    """Adds those arrivals of a block, whose length is a multiple of `tally.WORD`, that are inside the window."""
    counted = (numbers >= tables.window[0]) & (numbers < tables.window[1])
    nothing = jnp.asarray(tables.arrivals.num_types, arrivals.task_type.dtype)
    task_type = jnp.where(counted[:, None], arrivals.task_type, nothing)
    arrived, served = tally.tally(counts.arrived, counts.served, task_type, slots)
    return Counts(served, arrived)


def step(state: tuple, arrival: Arrival, tables: LossTables) -> tuple[tuple, tuple]:
    """Advances every policy and replica by one arrival.

    Returns:
      The new state, and per group the slots taken, (k, [P,] B): ranks for `order`, server numbers for the others, all
      `nobody` where the task was lost.
    """

    policies, k = tables.policies, tables.arrivals.servers_per_task

    def ranked(free):
        return first_in_order(of_type(policies.order), free, k)

    def even(free):
        one = jnp.ones((), smallest_unsigned(free.shape[-2]))
        return race_in_tiers(of_type(policies.even), one, free, arrival.tie, k)

    def weighted(free):
        return race_in_tiers(of_type(policies.tier), of_type(policies.weight), free, arrival.tie, k)

    def by_level(free):
        table = _without_lone_axis(policies.level)
        # Lemma 3.1: as many tasks are running under every policy. Where all servers are busy the row does not matter.
        count = jnp.sum(free[0] if free.ndim == 3 else free, axis=-2, dtype=jnp.int32)
        running = jnp.minimum((free.shape[-2] - count) // k, free.shape[-2] // k - 1)
        num_types = table.shape[-2] // (free.shape[-2] // k)
        rank = rows_of_type(table, running * num_types + arrival.task_type.astype(jnp.int32))
        taken, _ = first_in_order(rank, free, k)
        return taken, numbers_of(taken, k, rank.dtype)

    def of_type(table):
        return rows_of_type(_without_lone_axis(table), arrival.task_type)

    moved = [_serve(wait, arrival, rule) for wait, rule in zip(state, (ranked, even, weighted, by_level), strict=True)]
    return tuple(m[0] for m in moved), tuple(m[1] for m in moved)


def _without_lone_axis(table):
    """Drops the policy axis of a group of one: XLA fuses arrays with an axis of length 1 into loops 4 to 10 times slower."""
    return table[0] if table.shape[0] == 1 else table


def _serve(wait, arrival, rule):
    """Lets time pass and serves one group; `rule` maps the free servers to (taken, slots)."""
    if wait is None:
        return None, None
    wait = jnp.maximum(wait, arrival.gap) - arrival.gap
    taken, slots = rule(wait == 0)
    return jnp.where(taken, arrival.hold, wait), slots


def occupancy(wait, max_duration: int) -> jax.Array:
    """Returns (P, B, R, d+1) int8: 1 at the steps of service X_r left to each server, one step after the last arrival."""
    left = jnp.maximum(wait, 1) - 1
    return jax.nn.one_hot(jnp.swapaxes(left, -1, -2), max_duration + 1, dtype=jnp.int8)
