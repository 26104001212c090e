"""Which servers an event would touch, and each replica's coin: blocks of events drawn at once for one bundle."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.models import streams

Table = Any  # a JAX array, on the host until it is placed
LANES = 64  # replicas of a bundle
FEW = 8  # up to so many servers are drawn one after the other; more by sorting random words
TURNS = 2  # in which a block's coins are drawn
_COINS = 2  # first slot of the coins; slot 0: type and departure, slot 1: the low bits that a bundle's coins share


@dataclasses.dataclass(frozen=True)
class Tables:
    """A graph, a load and a policy as data.

    Attributes:
      neighbours: (K, c) int32 servers of each distinct neighbourhood, padded.
      size: (K,) int32 servers in each.
      row: (M,) int32 neighbourhood of each task type.
      arrival: () uint32 probability of an arrival, in units of 2^-32; below a half.
      choices: () int32 servers that a task looks at, d; at most `most`.
      sees: () queues of this length and more look alike to the policy, in the dtype of the queues.
      stride: () uint32 event numbers set aside for one interval.
      num_servers: N.
      most: largest number of servers that any task looks at.
    """

    neighbours: Table
    size: Table
    row: Table
    arrival: Table
    choices: Table
    sees: Table
    stride: Table
    num_servers: int
    most: int


jax.tree_util.register_dataclass(
    Tables, ["neighbours", "size", "row", "arrival", "choices", "sees", "stride"], ["num_servers", "most"]
)


class Keys(NamedTuple):
    """Per bundle: (2, G) uint32 keys of the two streams, and (G,) int32 events in each interval of a call."""

    exogenous: jax.Array | np.ndarray
    candidates: jax.Array | np.ndarray
    events: jax.Array | np.ndarray


class Events(NamedTuple):
    """A block of E events of one bundle.

    Attributes:
      coin: (E, LANES) uint8, one of each replica's own.
      below: (E,) uint8: the event is an arrival where the coin is smaller.
      server: (E, 1 + d) int32: the server whose service ends where it is not; then those that an arriving task looks at, in
        random order, so that the first shortest of them is one at random.
      looked: (E,) int32 how many of them there are.
    """

    coin: jax.Array
    below: jax.Array
    server: jax.Array
    looked: jax.Array


def draw_events(tables: Tables, keys: Keys, number) -> Events:
    """Draws the events numbered `number` (E,) uint32 for one bundle (keys without their last axis).

    A coin is a uniform 32-bit word whose high byte is the replica's own and whose other bits the bundle shares: the word is below
    lambda / (1 + lambda) with that probability, to 2^-32, in every replica.
    """
    kind, done = streams.words(keys.exogenous, number, 0)
    low = streams.words(keys.exogenous, number, 1)[0] >> 8
    row = tables.row[below(kind, tables.row.shape[0])]
    size = tables.size[row]
    place = _in_random_order(tables, keys.candidates, number, size)
    return Events(
        coin=_coins(keys.exogenous, number),
        below=((tables.arrival >> 24) + (low < (tables.arrival & 0xFFFFFF)).astype(jnp.uint32)).astype(jnp.uint8),
        server=jnp.concatenate(
            [below(done, tables.num_servers)[:, None], tables.neighbours[row[:, None], place]], axis=1
        ),
        looked=jnp.minimum(size, tables.choices),
    )


def below(word, n):
    """Returns floor(word n / 2^32) as int32, for n up to 2^16: uniform on 0, ..., n - 1, each probability within 2^-32."""
    n = jnp.asarray(n).astype(jnp.uint32)
    return (((word >> 16) * n + (((word & 0xFFFF) * n) >> 16)) >> 16).astype(jnp.int32)


def _coins(keys, number):
    """Returns (E, LANES) uint8: independent ones for half of the lanes, and their complements to 255 for the other half.

    A replica's complement is as exact as itself. It departs where the other arrives, so the mean of a bundle varies less.
    Drawn in a loop because what a loop stacks is in memory; else the rounds would be done again for each byte.
    """
    slots = jnp.arange(_COINS, _COINS + LANES // 8, dtype=jnp.uint32)

    def words(_, some):
        return None, streams.threefry2x32(keys[0], keys[1], some[:, None], slots)[0]

    word = lax.scan(words, None, number.reshape(TURNS, -1))[1]
    coin = lax.bitcast_convert_type(word, jnp.uint8).reshape(-1, LANES // 2)
    return jnp.concatenate([coin, ~coin], axis=1)


def _in_random_order(tables, keys, number, size):
    """Returns (E, most) int32 places in neighbourhoods of the given sizes, drawn without replacement, as far as `size` goes."""
    most = tables.most
    if most > FEW:
        place = jnp.broadcast_to(jnp.arange(most, dtype=jnp.int32), (number.shape[0], most))
        slots = jnp.arange(most, dtype=jnp.uint32)
        word = streams.threefry2x32(keys[0], keys[1], number[:, None], slots)[0]
        absent = place >= size[:, None]
        return lax.sort((absent.astype(jnp.uint32), word, place), num_keys=2)[2]
    word = [word for slot in range(-(-most // 2)) for word in streams.words(keys, number, slot)]
    taken: list = []  # in increasing order
    out = []
    for k in range(most):
        place = below(word[k], jnp.maximum(size - k, 1))
        for other in taken:
            place = place + (place >= other).astype(jnp.int32)
        out.append(place)
        taken = _insert(taken, place)
    return jnp.stack(out, axis=1)


def _insert(taken, place):
    """Returns the sorted list with one more place."""
    for i, other in enumerate(taken):
        taken[i], place = jnp.minimum(other, place), jnp.maximum(other, place)
    return [*taken, place]
