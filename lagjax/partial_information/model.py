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
from lagjax.partial_information.arms import capped
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.system import MOST_SERVERS, System

SAME = 1e-9  # indices this close, per unit of capacity, are ties
_PLACE = MOST_SERVERS - 1  # low bits of a key: the server's place among equals; above them one for the oldest age, then the rank
_OLDEST = MOST_SERVERS
_RANK = 2 * MOST_SERVERS
MOST_STATES = 2**32 // _RANK


@dataclasses.dataclass(frozen=True)
class SlotTables:
    """What happens in a slot: (..., K) uint32, how many of 2^32 words stand for at least 1, ..., K jobs; None: none ever come.

    Attributes:
      served: (N, K) min(D, K) of each server.
      come: (N, K) exogenous arrivals, or None.
      offered: (1, K) jobs at the dispatcher, or None: always K.
      blocking: whether only empty servers take jobs.
    """

    served: np.ndarray
    come: np.ndarray | None
    offered: np.ndarray | None
    blocking: bool


@dataclasses.dataclass(frozen=True)
class PolicyTables:
    """One policy on one system; C codes.

    Attributes:
      entry: (C,) uint32: _RANK times the rank, and _OLDEST if no older age follows; None where beliefs do not matter.
      fresh, ages: (N,) int32: code of (0, 1) of each server, and codes from one q to the next.
      place: (N,) uint32 order among equals.
      rule: of `policies.RULES`.
    """

    entry: np.ndarray | None
    fresh: np.ndarray | None
    ages: np.ndarray | None
    place: np.ndarray
    rule: str


class Server(NamedTuple):
    """State of one policy, (N, B): true backlogs as uint8, and codes as int32, or None."""

    backlog: jax.Array
    code: jax.Array | None


jax.tree_util.register_dataclass(SlotTables, ["served", "come", "offered"], ["blocking"])
jax.tree_util.register_dataclass(PolicyTables, ["entry", "fresh", "ages", "place"], ["rule"])


def slot_tables(system: System) -> SlotTables:
    """Builds the laws of a slot; every probability is within 2^-32 of the one asked for."""

    def at_least(rates):
        tails = [np.cumsum(integer_law(capped(rate, system.capacity))[::-1])[-2::-1] for rate in rates]
        return np.minimum(np.stack(tails), 2**32 - 1).astype(np.uint32)

    return SlotTables(
        at_least(system.rates),
        at_least(system.exogenous) if system.exogenous.any() else None,
        None if system.arrivals is None else at_least([system.arrivals]),
        system.model == "blocking",
    )


def policy_tables(system: System, policy: Dispatching) -> PolicyTables:
    """Builds a policy's tables.

    Raises:
      InputError: tables of another shape, or too many states.
    """
    kinds, which = system.kinds
    place = np.empty(system.num_servers, np.uint32)
    place[np.lexsort((np.arange(system.num_servers), -system.rates))] = np.arange(system.num_servers)
    if policy.index is None:
        return PolicyTables(None, None, None, place, policy.rule)
    size = system.capacity + 1
    shapes = [table.shape for table in policy.index]
    if len(shapes) != len(kinds) or any(len(s) != 2 or s[0] != size or s[1] < 1 for s in shapes):
        raise InputError(f"policy '{policy.name}' has tables {shapes}; the system needs {len(kinds)} of shape ({size}, ages)")
    total = sum(table.size for table in policy.index)
    if total >= MOST_STATES:
        raise InputError(f"{total:,} states of beliefs are too many; they must be fewer than {MOST_STATES:,}: use fewer ages")
    values = np.concatenate([table.ravel() for table in policy.index])
    rank = np.unique(-np.round(values / (SAME * system.capacity)), return_inverse=True)[1].reshape(-1)
    oldest = np.concatenate([np.broadcast_to(np.arange(s[1]) == s[1] - 1, s).ravel() for s in shapes])
    first = np.r_[0, np.cumsum([table.size for table in policy.index])[:-1]]
    entry = (rank * _RANK + oldest * _OLDEST).astype(np.uint32)
    ages = np.array([s[1] for s in shapes])[which]
    return PolicyTables(entry, first[which].astype(np.int32), ages.astype(np.int32), place, policy.rule)


def filled(tables: PolicyTables, jobs: int, replicas: int) -> Server:
    """Every server known to hold `jobs` at the end of the slot before the first."""
    servers = len(tables.place)
    backlog = jnp.full((servers, replicas), jobs, jnp.uint8)
    if tables.fresh is None:
        return Server(backlog, None)
    return Server(backlog, jnp.asarray(np.tile((tables.fresh + jobs * tables.ages)[:, None], replicas)))


def step(states: Sequence[Server], now, slot: SlotTables, policies: Sequence[PolicyTables], exogenous_keys, choice_keys):
    """Moves every policy by slot number `now`.

    Args:
      states: of each policy.
      exogenous_keys, choice_keys: (2, B) stream keys; the latter may be None where no policy is random.

    Returns:
      The new states, and a list of (B,) uint8 jobs taken under each policy.
    """
    number, most = slot.served.shape
    served, come, offered = _draw(slot, exogenous_keys, now)
    if offered is None:
        offered = jnp.uint8(most)
    word = None if choice_keys is None else streams.words(choice_keys, now, 0)[0]
    moved, taken = [], []
    for state, tables in zip(states, policies, strict=True):
        backlog = state.backlog if come is None else jnp.minimum(state.backlog + come, jnp.uint8(most))
        backlog = backlog - jnp.minimum(backlog, served)
        code = older = None
        if tables.rule == "index":
            entry = tables.entry[state.code]
            key = entry | tables.place[:, None]
            chosen = key == jnp.min(key, axis=0)
            older = state.code + jnp.where((entry & jnp.uint32(_OLDEST)) == 0, jnp.int32(1), jnp.int32(0))
        elif tables.rule == "backlog":
            key = backlog.astype(jnp.uint16) * jnp.uint16(MOST_SERVERS) | tables.place.astype(jnp.uint16)[:, None]
            chosen = key == jnp.min(key, axis=0)
        else:
            pick = (now if tables.rule == "turn" else word) % jnp.uint32(number)
            chosen = lax.broadcasted_iota(jnp.uint8, backlog.shape, 0) == pick.astype(jnp.uint8)
        found = jnp.max(jnp.where(chosen, backlog, jnp.uint8(0)), axis=0)
        room = jnp.where(found == 0, jnp.uint8(most), jnp.uint8(0)) if slot.blocking else jnp.uint8(most) - found
        reward = jnp.minimum(room, offered)
        if older is not None:
            seen = (found + reward).astype(jnp.int32)
            code = jnp.where(chosen, tables.fresh[:, None] + tables.ages[:, None] * seen, older)
        moved.append(Server(backlog + jnp.where(chosen, reward, jnp.uint8(0)), code))
        taken.append(reward)
    return moved, taken


def _draw(slot, keys, now):
    """(N, B) uint8 jobs served and come, and (B,) jobs offered in slot `now`; None for what the tables lack."""
    parts = [table for table in (slot.served, slot.come, slot.offered) if table is not None]
    rows = sum(len(table) for table in parts)
    pairs = jnp.arange((rows + 1) // 2, dtype=jnp.uint32)[:, None]
    # In memory on purpose: fused into what follows, the rounds of the generator would be done again for every policy.
    words = lax.optimization_barrier(jnp.concatenate(streams.words(keys, now, pairs)))
    drawn, first = [], 0
    for table in (slot.served, slot.come, slot.offered):
        if table is None:
            drawn.append(None)
            continue
        mine = words[first : first + len(table)]
        jobs = jnp.zeros(mine.shape, jnp.uint8)
        for k in range(table.shape[1]):
            jobs += (mine < table[:, k, None]).astype(jnp.uint8)
        drawn.append(lax.optimization_barrier(jobs))
        first += len(table)
    served, come, offered = drawn
    return served, come, None if offered is None else offered[0]
