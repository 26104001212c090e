"""The (m,n)-scaled system on counts: m n copies of every server, m dispatchers a step (Lag, Definition 4.1).

Copies of a type are exchangeable, so how many are free and how many come back at each coming step is a sufficient state. Of the
m groups into which each type is split at every step only those that see a task matter, and they are drawn one after another:
what the next dispatcher finds free among its n copies is hypergeometric given what the ones before it found. Dispatchers without
a task are skipped by their geometric number. So a step costs its tasks, whatever m, n and d.
"""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.allocate import largest_remainders, waterfill
from lagjax.instance import Instance
from lagjax.models import alias, streams
from lagjax.models.hypergeometric import TRIES, hypergeometric
from lagjax.models.loss import Table, arrival_tables
from lagjax.models.policy_tables import is_even
from lagjax.models.race import race
from lagjax.models.select import rows_of_type


@dataclasses.dataclass(frozen=True)
class ScaledTables:
    """One policy on one scaled instance.

    Attributes:
      mark: (W,) alias table of the marks (type, duration), laid out as in `lagjax.models.loss.ArrivalTables`.
      gap: (U,) alias table of dispatchers from one task to the next, lumped beyond m.
      tier: (V, R) int32; weight: (V, R) float64 sharing weights.
      copies, dispatchers: () int32 n and m: data, so that one program serves every size.
      span, shortest, longest: layout of the marks, and d.
      servers_per_task: k.
      rule: "capped" or "race", how a tier is shared.
      even: whether the weights within each tier are equal.
    """

    mark: Table
    gap: Table
    tier: Table
    weight: Table
    copies: Table
    dispatchers: Table
    span: int
    shortest: int
    longest: int
    servers_per_task: int
    rule: str
    even: bool


class Keys(NamedTuple):
    """(2, B) uint32 stream keys: tasks and durations; the split among dispatchers; random choices of the policy."""

    exogenous: jax.Array | np.ndarray
    partition: jax.Array | np.ndarray
    ties: jax.Array | np.ndarray


class Moment(NamedTuple):
    """One step: its uint32 number, and the keys of what is drawn on its way."""

    now: jax.Array
    keys: Keys


class State(NamedTuple):
    """Counts at the start of a step.

    Attributes:
      free: (R, B) int32 copies free, those that return at this step not yet included.
      returning: (d+1, R, B) int32 copies that return at the steps congruent to the index modulo d+1.
    """

    free: jax.Array
    returning: jax.Array


class Counts(NamedTuple):
    """What happened: (V, R, B) int32 copies given, (V, B) int32 tasks arrived and tasks lost."""

    served: jax.Array
    arrived: jax.Array
    blocked: jax.Array


jax.tree_util.register_dataclass(
    ScaledTables,
    ["mark", "gap", "tier", "weight", "copies", "dispatchers"],
    ["span", "shortest", "longest", "servers_per_task", "rule", "even"],
)


def scaled_tables(instance: Instance, policy, copies: int, dispatchers: int, most_dispatchers: int) -> ScaledTables:
    """Builds the tables on the host; `most_dispatchers` sizes the gap table, so that one program serves a whole study."""
    arrivals = arrival_tables(instance)
    rate = min(instance.total_rate, 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        survival = np.exp(np.arange(dispatchers + 1) * np.log1p(-rate))  # P(gap > i), i = 0..m
    survival[0] = 1.0
    gap = np.r_[0.0, survival[:-1] - survival[1:], survival[-1]]
    return ScaledTables(
        mark=arrivals.mark,
        gap=alias.alias_table(np.pad(gap, (0, most_dispatchers - dispatchers))),
        tier=policy.tier.astype(np.int32),
        weight=policy.weight,
        copies=np.asarray(copies, np.int32),
        dispatchers=np.asarray(dispatchers, np.int32),
        span=arrivals.span,
        shortest=arrivals.shortest,
        longest=arrivals.longest,
        servers_per_task=instance.servers_per_task,
        rule=policy.rule,
        even=is_even(policy),
    )


def empty(tables: ScaledTables, replicas: int) -> State:
    """Returns the system with every copy free."""
    num_servers = tables.tier.shape[1]
    total = tables.copies * tables.dispatchers
    free = jnp.full((num_servers, replicas), total, jnp.int32)
    return State(free, jnp.zeros((tables.longest + 1, num_servers, replicas), jnp.int32))


def whole_copies(x, total: int) -> np.ndarray:
    """Returns the fluid state x (R, d+1) as (R, d+1) int32 copies that sum to `total` in every row, by largest remainders."""
    share = np.maximum(np.asarray(x, np.float64), 0)
    exact = share / share.sum(axis=1, keepdims=True) * total
    counts = np.floor(exact + 1e-9).astype(np.int32)
    for r, row in enumerate(counts):
        row[np.argsort(row - exact[r], kind="stable")[: total - row.sum()]] += 1
    return counts


def filled(tables: ScaledTables, x, replicas: int) -> State:
    """Returns the system in the fluid state x (R, d+1), rounded to whole copies: x[r, i] of server r have i steps left."""
    counts = whole_copies(x, int(tables.copies) * int(tables.dispatchers))
    returning = np.r_[np.zeros((1, counts.shape[0]), np.int32), counts[:, 1:].T]
    return State(
        jnp.asarray(np.repeat(counts[:, :1], replicas, axis=1)),
        jnp.asarray(np.repeat(returning[:, :, None], replicas, axis=2)),
    )


def no_counts(tables: ScaledTables, replicas: int) -> Counts:
    """Returns zeros."""
    num_types, num_servers = tables.tier.shape
    per_type = jnp.zeros((num_types, replicas), jnp.int32)
    return Counts(jnp.zeros((num_types, num_servers, replicas), jnp.int32), per_type, per_type)


def draw(tables: ScaledTables, keys: Keys, numbers) -> Moment:
    """Draws nothing yet: how much is drawn in a step depends on how many tasks it brings."""
    return Moment(numbers, jax.tree.map(lambda key: key[None], keys))


def count(counts: Counts, numbers, moments: Moment, seen: Counts, tables: ScaledTables) -> Counts:
    """Adds what happened in one step."""
    return jax.tree.map(lambda total, part: total + part[0], counts, seen)


def step(state: State, moment: Moment, tables: ScaledTables) -> tuple[State, Counts]:
    """Advances every replica by one step: copies return, then the step's tasks are served in turn.

    Shapes as in `State` and `Counts`: R server types, V task types, B replicas. Returns the state at the start of the next
    step and what happened in this one (Lag, Definition 4.1; allocation as in Appendix A).
    """
    now, keys = moment
    ring = state.returning.shape[0]
    slot_now = (now % jnp.uint32(ring)).astype(jnp.int32)
    free = state.free + state.returning[slot_now]
    returning = state.returning.at[slot_now].set(0)
    pool = jnp.broadcast_to(tables.copies * tables.dispatchers, free.shape[-1:]).astype(jnp.int32)

    def serve_next(carry):
        free, unseen, pool, returning, counts, position, turn = carry
        active = position <= tables.dispatchers
        word = lax.optimization_barrier(jnp.stack(streams.words(keys.exogenous, now, turn)))
        mark = alias.draw(tables.mark, word[0])
        task_type, hold = mark // tables.span, mark % tables.span + (tables.shortest + 1)
        sample = jnp.where(active, tables.copies, 0)
        found = _found(keys.partition, now, turn, unseen, pool, sample)
        budget = jnp.where(
            jnp.sum(found, axis=0) >= sample * tables.servers_per_task, sample * tables.servers_per_task, 0
        )
        given = _allocate(budget, found, task_type, tables, keys.ties, now, turn)
        lane = jnp.arange(free.shape[-1])
        back = (slot_now + hold) % ring
        returning = returning.at[back[None], jnp.arange(free.shape[0])[:, None], lane].add(given)
        counts = Counts(
            counts.served.at[task_type[None], jnp.arange(free.shape[0])[:, None], lane].add(given),
            counts.arrived.at[task_type, lane].add(active.astype(jnp.int32)),
            counts.blocked.at[task_type, lane].add((active & (budget == 0)).astype(jnp.int32)),
        )
        gap = alias.draw(tables.gap, word[1])
        return free - given, unseen - found, pool - sample, returning, counts, position + gap, turn + 1

    first = alias.draw(tables.gap, streams.words(keys.exogenous, now, FIRST)[0])
    carry = (free, free, pool, returning, no_counts(tables, free.shape[-1]), first, jnp.uint32(0))
    carry = lax.while_loop(lambda c: jnp.any(c[5] <= tables.dispatchers), serve_next, carry)
    return State(carry[0], carry[3]), carry[4]


FIRST = 0xFFFFFFFF  # slot of the word for the gap before a step's first task; no step has that many tasks


def _found(keys, now, turn, unseen, pool, sample):
    """(R, B) free copies among the next dispatcher's n of each type, given what the dispatchers before it saw."""
    server = jnp.arange(unseen.shape[0], dtype=jnp.uint32)[:, None]
    slot = (turn * jnp.uint32(unseen.shape[0]) + server) * jnp.uint32(TRIES)
    return hypergeometric(keys, now, slot, unseen, jnp.maximum(pool, 1), sample)


def _allocate(budget, capacity, task_type, tables, tie_keys, now, turn):
    """(R, B) whole copies: tiers in order, the last one shared by the policy's rule."""
    tier = rows_of_type(tables.tier, task_type)
    if tables.rule == "race":
        weight = rows_of_type(tables.weight.astype(jnp.float32), task_type)
        return race(budget, capacity, tier, weight, tie_keys, now, turn, tables.even)
    with jax.enable_x64(True):  # float32 cannot tell remainders apart beyond 2^20 copies
        weight = rows_of_type(tables.weight, task_type)
        amount = waterfill(budget.astype(jnp.float64), capacity.astype(jnp.float64), tier, weight)
        return largest_remainders(amount, budget)


def occupancy(state: State, now, total) -> jax.Array:
    """Returns (B, R, d+1) fractions of copies with i steps of service left at the start of step `now`."""
    ring = state.returning.shape[0]
    left = jnp.roll(state.returning, -(now % ring), axis=0)  # left[i] returns at step now + i
    x = jnp.concatenate([(state.free + left[0])[None], left[1:]]) / total
    return jnp.moveaxis(x, (0, 1, 2), (2, 1, 0))
