"""N queues, M task types, one graph: the uniformised chain, event by event (Rutten and Mukherjee, 2023).

Each of N servers of rate 1 and the arrivals of rate lambda N together make events at rate (1 + lambda) N, whatever the state. An
event is an arrival with probability lambda / (1 + lambda), else the end of service of a uniformly random server, which does
nothing if that server is empty: the embedded chain of uniformisation, exact in law. Because the rate is constant, averages over
events are averages over time, and the state at time t is the state after a Poisson number of events.

LANES replicas make a bundle. The replicas of a bundle share which servers an event would touch, and with them the random words,
the look-ups and the addresses of the rows; each has a coin for what the event is, and half of the coins are the complements of
the other half's. Every replica alone is exact in law, and different bundles are independent: intervals come from bundles. On a
CPU an event is then a few vector instructions for all of a bundle.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from lagjax.compatibility.draws import FEW, LANES, Events, Keys, Tables, draw_events

LEVELS = 64  # occupancies q_1, ..., q_LEVELS are counted
BLOCK = 128  # events drawn together
PAGE = 128  # rows counted in one byte


class Counts(NamedTuple):
    """What was seen at the ends of the intervals.

    Attributes:
      servers: (LEVELS, B) int32 servers with at least 1, 2, ... tasks, summed over intervals.
      tasks: (B,) int32 tasks in the system, summed over intervals.
      longest: (B,) int32 the longest queue.
    """

    servers: jax.Array
    tasks: jax.Array
    longest: jax.Array


def no_counts(replicas: int) -> Counts:
    """Returns zeros."""
    one = jnp.zeros(replicas, jnp.int32)
    return Counts(jnp.zeros((LEVELS, replicas), jnp.int32), one, one)


def rows_of(num_servers: int) -> int:
    """Returns P, the number of rows that hold N queues: N rounded up to a multiple of PAGE; rows from N on stay empty."""
    return -(-num_servers // PAGE) * PAGE


class Interval(NamedTuple):
    """One interval: its uint32 number, and the keys of what is drawn on its way."""

    now: jax.Array
    keys: Keys


def draw(tables: Tables, keys: Keys, numbers) -> Interval:
    """Draws nothing yet: bundles draw their events block by block."""
    return Interval(numbers, jax.tree.map(lambda key: key[None], keys))


def step(queue, interval: Interval, tables: Tables) -> tuple[jax.Array, Counts]:
    """Runs one interval of every bundle and observes its end: bundles one by one on a CPU, elsewhere side by side.

    Args:
      queue: (P, B) uint8 or uint16 tasks at each server, the one in service included.
    """
    zero = no_counts(queue.shape[-1])
    return lax.platform_dependent(queue, zero, *interval, tables, cpu=one_by_one, default=side_by_side)


def count(counts: Counts, numbers, intervals: Interval, seen: Counts, tables: Tables) -> Counts:
    """Adds what was seen at the end of an interval."""
    servers, tasks, longest = (part[0] for part in seen)
    return Counts(counts.servers + servers, counts.tasks + tasks, jnp.maximum(counts.longest, longest))


def one_by_one(queue, counts, now, keys, tables):
    """`step` for processors that work through small loops."""

    def one(bundle, carry):
        def mine(x):
            return lax.dynamic_slice_in_dim(x, bundle * LANES, LANES, axis=x.ndim - 1)

        def put(x, part):
            return lax.dynamic_update_slice_in_dim(x, part, bundle * LANES, axis=x.ndim - 1)

        queue, counts = jax.tree.map(mine, carry)
        key = jax.tree.map(lambda key: key[..., bundle], keys)

        def block(index, queue):
            events = draw_events(tables, key, _numbers(tables, now, index))
            return run_events(queue, events, jnp.minimum(key.events - index * BLOCK, BLOCK), tables.sees)

        queue = lax.fori_loop(0, (key.events + BLOCK - 1) // BLOCK, block, queue)
        return jax.tree.map(put, carry, (queue, _observe(queue, counts)))

    return lax.fori_loop(0, keys.exogenous.shape[-1], one, (queue, counts))


def side_by_side(queue, counts, now, keys, tables):
    """`step` for processors that need wide arrays: an event of every bundle is one gather and one scatter."""
    bundle = jnp.arange(keys.exogenous.shape[-1])
    longest = keys.events.max()

    def block(index, queue):
        events = jax.vmap(lambda key: draw_events(tables, key, _numbers(tables, now, index)), in_axes=-1)(keys)

        def one(place, queue):
            coin, below, server, looked = (field[:, place] for field in events)
            rows = queue[server, bundle[:, None]]  # (G, 1 + d, LANES)
            far = jnp.array(jnp.iinfo(queue.dtype).max, queue.dtype)
            candidate = jnp.arange(1, server.shape[1])
            seen = jnp.where((candidate <= looked[:, None])[..., None], jnp.minimum(rows[:, 1:], tables.sees), far)
            joins = candidate[:, None] == 1 + jnp.argmin(seen, axis=1)[:, None]
            arrives = (coin < below[:, None])[:, None]
            leaves = ~arrives & (rows[:, :1] > 0)
            happens = (index * BLOCK + place < keys.events)[:, None, None]
            moves = jnp.concatenate([leaves, joins & arrives], axis=1) & happens
            by = jnp.where(jnp.arange(server.shape[1]) == 0, far, jnp.ones((), queue.dtype))  # far takes one off
            return queue.at[server, bundle[:, None]].add(jnp.where(moves, by[:, None], jnp.zeros((), queue.dtype)))

        return lax.fori_loop(0, jnp.minimum(longest - index * BLOCK, BLOCK), one, queue)

    apart = queue.reshape(queue.shape[0], -1, LANES)
    queue = lax.fori_loop(0, (longest + BLOCK - 1) // BLOCK, block, apart).reshape(queue.shape)
    return queue, _observe(queue, counts)


def _numbers(tables, now, index):
    return now * tables.stride + (index * BLOCK + jnp.arange(BLOCK)).astype(jnp.uint32)


def run_events(queue, events: Events, number, sees) -> jax.Array:
    """Applies the first `number` events of a block to the (P, LANES) queues of one bundle.

    Single rows in loops, all writes in one of them: XLA then copies nothing, and compiles loops that touch up to 1,024 bytes a
    turn into one function (d = 2: 25 ns an event on the CPU for all 64 replicas; as a gather and a scatter 600).

    Args:
      sees: () queues of this length and more look alike to the policy, in the dtype of the queues.
    """
    unit = queue.dtype
    code = jnp.uint8 if events.server.shape[1] <= 250 else jnp.int32
    nobody = jnp.array(jnp.iinfo(code).max, code)

    def row(queue, server):
        return lax.dynamic_slice(queue, (server, 0), (1, LANES))[0]

    def one(index, queue):
        server, looked = _at(events.server, index), _at(events.looked, index)

        def look(place, best):
            shortest, chosen = best
            length = jnp.minimum(row(queue, _at(server, place)), sees)
            better = (length < shortest) & (place <= looked)
            return jnp.where(better, length, shortest), jnp.where(better, jnp.asarray(place, code), chosen)

        best = jnp.minimum(row(queue, server[1]), sees), jnp.ones(LANES, code)
        if server.shape[0] <= FEW + 1:
            for place in range(2, server.shape[0]):
                best = look(place, best)
        else:
            best = lax.fori_loop(2, looked + 1, look, best)
        leaves = jnp.where(row(queue, server[0]) > 0, jnp.zeros((), code), nobody)
        changes = jnp.where(_at(events.coin, index) < _at(events.below, index), best[1], leaves)

        def joins_or_leaves(place):
            by = jnp.where(place == 0, jnp.iinfo(unit).max, 1).astype(unit)  # the largest number takes one off
            return jnp.where(changes == jnp.asarray(place, code), by, jnp.zeros((), unit))

        table = (
            jnp.stack([joins_or_leaves(place) for place in range(server.shape[0])]) if server.shape[0] <= 3 else None
        )

        def change(place, queue):
            by = joins_or_leaves(place) if table is None else _at(table, place)
            return lax.dynamic_update_slice(queue, (row(queue, server[place]) + by)[None], (server[place], 0))

        return lax.fori_loop(0, looked + 1, change, queue)

    return lax.fori_loop(0, number, one, queue)


def _at(array, index):
    return lax.dynamic_index_in_dim(array, index, 0, keepdims=False)


def _observe(queue, counts):
    pages = queue.reshape(-1, PAGE, queue.shape[-1])
    longest = queue.max(axis=0).astype(jnp.int32)

    def at_least(level, servers):
        new = jnp.sum(pages > jnp.asarray(level, queue.dtype), axis=1, dtype=jnp.uint8).astype(jnp.int32).sum(axis=0)
        return servers.at[level].add(new)

    servers = lax.fori_loop(0, jnp.minimum(longest.max(), LEVELS), at_least, counts.servers)
    return Counts(servers, counts.tasks + queue.sum(axis=0, dtype=jnp.int32), jnp.maximum(counts.longest, longest))
