"""One slot: backlogs drain, every policy chooses a server, learns its backlog and fills it.

All policies see the same departures, arrivals and offers: common random numbers. A departure is drawn as min(D, K), which is all
that a buffer of K jobs can tell. What a policy believes about a server is one number, its code: the place of (kind, q, age) in a
table whose entries are the ranks, lowest first. One slot later an unchosen server's code is the next one, unless the entry says
that it is the oldest.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.errors import InputError
from lagjax.models import streams
from lagjax.models.alias import integer_law
from lagjax.models.loss import smallest_unsigned
from lagjax.models.select import draw_share
from lagjax.partial_information.arms import capped
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.system import System

SAME = 1e-9  # indices this close, per unit of capacity, are ties
# A key, lowest first: the rank, the server's place among equals, whether the age is the oldest one, the backlog.
_BACKLOG = 127
_OLDEST = 7  # bits below
_PLACE = 8


@dataclasses.dataclass(frozen=True)
class SlotTables:
    """What happens in a slot; R random numbers of jobs, each cut at K.

    Attributes:
      law: (2, ceil(R/2), K) uint32, how many of 2^32 words stand for at least 1, ..., K jobs: served at each of N servers,
      then come to
        each by themselves, then offered at the dispatcher, in one row after another.
      servers: N.
      come, offered: whether there are such numbers; else nothing comes, and K jobs are always offered.
      blocking: whether only empty servers take jobs.
    """

    law: np.ndarray
    servers: int
    come: bool
    offered: bool
    blocking: bool


@dataclasses.dataclass(frozen=True)
class PolicyTables:
    """One policy on one system; C codes.

    Attributes:
      entry: (C,) uint32 keys but for place and backlog; None where beliefs do not matter.
      fresh, ages: (N,) int32: code of (0, 1) of each server, and codes from one q to the next.
      place: (N, 1) uint32 order among equals, in its place in a key.
      rule: of `policies.RULES`.
      ties: of `policies.TIES`.
    """

    entry: np.ndarray | None
    fresh: np.ndarray | None
    ages: np.ndarray | None
    place: np.ndarray
    rule: str
    ties: str

    @property
    def draws(self) -> bool:
        """Whether it makes random choices."""
        return self.rule == "random" or (self.rule == "backlog" and self.ties == "random")


class Servers(NamedTuple):
    """State of one policy, (N, B): true backlogs as uint8, and codes as int32, or None."""

    backlog: jax.Array
    code: jax.Array | None


class Event(NamedTuple):
    """What happens in a slot, whatever the policy.

    Attributes:
      jobs: (..., ceil(R/2), B) uint16: rows 0, 1, ... in the low bytes, the second half of the rows in the high ones.
      turn, pick: (..., B) uint8 the server whose turn it is, and one at random, or None.
      tie: (..., B) uint32 random words for ties, or None.
    """

    jobs: jax.Array
    turn: jax.Array
    pick: jax.Array | None
    tie: jax.Array | None


jax.tree_util.register_dataclass(SlotTables, ["law"], ["servers", "come", "offered", "blocking"])
jax.tree_util.register_dataclass(PolicyTables, ["entry", "fresh", "ages", "place"], ["rule", "ties"])


def slot_tables(system: System) -> SlotTables:
    """Builds the laws of a slot; every probability is within 2^-32 of the one asked for."""
    come, offered = bool(system.exogenous.any()), system.arrivals is not None
    rates = [*system.rates, *(system.exogenous if come else ()), *([system.arrivals] if offered else ())]
    tails = [np.cumsum(integer_law(capped(rate, system.capacity))[::-1])[-2::-1] for rate in rates]
    law = np.zeros((len(rates) + len(rates) % 2, system.capacity), np.uint32)
    law[: len(rates)] = np.minimum(np.stack(tails), 2**32 - 1)
    return SlotTables(
        law.reshape(2, -1, system.capacity), system.num_servers, come, offered, system.model == "blocking"
    )


def policy_tables(system: System, policy: Dispatching) -> PolicyTables:
    """Builds a policy's tables.

    Raises:
      InputError: tables of another shape, or too many different indices.
    """
    kinds, which = system.kinds
    place = np.empty((system.num_servers, 1), np.uint32)
    speed = system.rates if policy.ties == "slower" else -system.rates
    place[np.lexsort((np.arange(system.num_servers), which, speed)), 0] = np.arange(system.num_servers)
    place <<= np.uint32(_PLACE)
    if policy.index is None:
        return PolicyTables(None, None, None, place, policy.rule, policy.ties)
    size = system.capacity + 1
    shapes = [table.shape for table in policy.index]
    if len(shapes) != len(kinds) or any(len(s) != 2 or s[0] != size or s[1] < 1 for s in shapes):
        raise InputError(
            f"policy '{policy.name}' has tables {shapes}; the system needs {len(kinds)} of shape ({size}, ages)"
        )
    values = np.concatenate([table.ravel() for table in policy.index])
    values, rank = np.unique(-np.round(values / (SAME * system.capacity)), return_inverse=True)
    shift = _PLACE + max(system.num_servers - 1, 1).bit_length()
    if len(values) > 2 ** (32 - shift):
        raise InputError(
            f"{len(values):,} different indices are too many for {system.num_servers} servers, which can have "
            f"{2 ** (32 - shift):,}: use "
            "fewer ages"
        )
    oldest = np.concatenate([np.broadcast_to(np.arange(s[1]) == s[1] - 1, s).ravel() for s in shapes])
    first = np.r_[0, np.cumsum([table.size for table in policy.index])[:-1]]
    entry = (rank.reshape(-1) << shift | oldest << _OLDEST).astype(np.uint32)
    ages = np.array([s[1] for s in shapes])[which]
    return PolicyTables(entry, first[which].astype(np.int32), ages.astype(np.int32), place, policy.rule, policy.ties)


def filled(tables: PolicyTables, jobs: int, replicas: int) -> Servers:
    """Every server known to hold `jobs` at the end of the slot before the first."""
    backlog = jnp.full((len(tables.place), replicas), jobs, jnp.uint8)
    if tables.fresh is None or tables.ages is None:
        return Servers(backlog, None)
    return Servers(backlog, jnp.asarray(np.tile((tables.fresh + jobs * tables.ages)[:, None], replicas)))


def draw_slots(slot: SlotTables, exogenous_keys, choice_keys, slots) -> Event:
    """Draws what happens in the slots numbered `slots` (E,): fields (E, ..., B).

    Args:
      exogenous_keys, choice_keys: (2, B) stream keys; the latter may be None where no policy is random.
    """
    pairs = jnp.arange(slot.law.shape[1], dtype=jnp.uint32)[:, None]
    # Both words of a pair end in one number: as two arrays, the rounds of the generator would be done for each of them.
    low, high = (
        sum((word < law[:, k, None]).astype(jnp.uint32) for k in range(law.shape[1]))
        for word, law in zip(streams.words(exogenous_keys, slots[:, None, None], pairs), slot.law, strict=True)
    )
    number = jnp.uint32(slot.servers)
    pick = tie = None
    if choice_keys is not None:
        word, tie = streams.words(choice_keys, slots[:, None], 0)
        pick = (word % number).astype(jnp.uint8)
    turn = jnp.broadcast_to((slots % number).astype(jnp.uint8)[:, None], (len(slots), exogenous_keys.shape[-1]))
    return Event((low | high << 8).astype(jnp.uint16), turn, pick, tie)


def numbers(slot: SlotTables, event: Event):
    """(N, B) uint8 jobs served and come, and jobs offered, of a drawn slot."""
    shift = jnp.array([[[0]], [[8]]], jnp.uint16)
    rows = ((event.jobs >> shift) & jnp.uint16(255)).astype(jnp.uint8).reshape(-1, event.jobs.shape[-1])
    n = slot.servers
    come = rows[n : 2 * n] if slot.come else jnp.uint8(0)
    return rows[:n], come, rows[n + n * slot.come] if slot.offered else jnp.uint8(slot.law.shape[-1])


def step(states: Sequence[Servers], event: Event, slot: SlotTables, policies: Sequence[PolicyTables]):
    """Moves every policy by one slot.

    Returns:
      The new states, and a list of (B,) uint8 jobs taken under each policy.
    """
    most = jnp.uint8(slot.law.shape[-1])
    served, come, offered = numbers(slot, event)
    moved, taken = [], []
    for state, tables in zip(states, policies, strict=True):
        backlog = jnp.minimum(state.backlog + come, most) if slot.come else state.backlog
        backlog = backlog - jnp.minimum(backlog, served)
        entry = None if tables.entry is None else tables.entry[state.code]
        chosen, found = _choose(tables, event, entry, backlog)
        room = jnp.where(found == 0, most, jnp.uint8(0)) if slot.blocking else most - found
        reward = jnp.minimum(room, offered)
        code = None
        if entry is not None and tables.fresh is not None and tables.ages is not None:
            seen = (found + reward).astype(jnp.int32)
            older = state.code + (~entry >> _OLDEST & jnp.uint32(1)).astype(jnp.int32)
            code = jnp.where(chosen, tables.fresh[:, None] + tables.ages[:, None] * seen, older)
        moved.append(Servers(backlog + jnp.where(chosen, reward, jnp.uint8(0)), code))
        taken.append(reward)
    return moved, taken


def _choose(tables, event, entry, backlog):
    """(N, B) which server is chosen, and (B,) its backlog."""
    if tables.rule in ("turn", "random"):
        pick = event.turn if tables.rule == "turn" else event.pick
        chosen = lax.broadcasted_iota(jnp.uint8, backlog.shape, 0) == pick
        return chosen, jnp.max(jnp.where(chosen, backlog, jnp.uint8(0)), axis=0)
    if tables.rule == "backlog" and tables.ties == "random":
        shortest = jnp.min(backlog, axis=0)
        one = jnp.ones((), smallest_unsigned(len(backlog)))
        pick = draw_share(backlog == shortest, one, event.tie)
        return lax.broadcasted_iota(pick.dtype, backlog.shape, 0) == pick, shortest
    if tables.rule == "backlog":
        key = backlog.astype(jnp.uint16) << 8 | (tables.place >> _PLACE).astype(jnp.uint16)
        best = jnp.min(key, axis=0)
        return key == best, (best >> 8).astype(jnp.uint8)
    key = entry | tables.place | backlog.astype(jnp.uint32)
    best = jnp.min(key, axis=0)
    return key == best, (best & jnp.uint32(_BACKLOG)).astype(jnp.uint8)
