"""Random words addressed by name: seed, stream, replica, event and slot give a word, wherever and whenever it is drawn.

Threefry-2x32 with 20 rounds (Salmon et al., 2011), the generator behind `jax.random`, used as a counter-based one: no key
is ever split or threaded, so a replica's draws do not depend on batch, block, chunk or device, nor on which policies run
beside it. Written out unrolled because `jax.random.bits` rolls its rounds on the CPU and takes 5 times as long there.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.errors import InputError

EXOGENOUS = 0  # arrivals, types and durations: shared by all policies
TIES = 1  # random choices among servers that a policy ranks equal
PARTITION = 2  # which copies each dispatcher sees in the scaled system
CANDIDATES = 20  # which compatible servers a task looks at
CLOCK = 21  # how many events fall into a span of time
PLACEMENT = 22  # which servers have the queues of a start

_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA


def threefry2x32(key0, key1, counter0, counter1):
    """Returns two uint32 words for each key and counter (uint32 arrays of NumPy or JAX that broadcast together)."""
    keys = (key0, key1, key0 ^ key1 ^ np.uint32(_PARITY))
    x0, x1 = counter0 + keys[0], counter1 + keys[1]
    for group in range(5):
        for rotation in _ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = x0 ^ ((x1 << rotation) | (x1 >> (32 - rotation)))
        x0 = x0 + keys[(group + 1) % 3]
        x1 = x1 + keys[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def replica_keys(seed: int, stream: int, replicas) -> jax.Array:
    """Returns (2, B) uint32 keys of one stream for the replicas of the given (B,) numbers.

    Raises:
      InputError: the seed is not a whole number in [0, 2^64).
    """
    if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or not 0 <= seed < 2**64:
        raise InputError(f"seed is {seed!r}; give a whole number from 0 to 2^64 - 1")
    seed = int(seed)
    # In NumPy: op by op in JAX, every new number of replicas would compile a dozen programs.
    replicas = np.asarray(replicas).astype(np.uint32)
    low, high = np.array([[seed & 0xFFFFFFFF], [seed >> 32]], np.uint32)
    return jnp.asarray(np.stack(threefry2x32(low, high, replicas, np.full_like(replicas, stream))))


def words(keys, event, slot):
    """Returns two uint32 words for each replica key (2, B), event number (..., 1) and slot (one stream of its own each)."""
    slot = np.uint32(slot) if isinstance(slot, int) else jnp.uint32(slot)
    return threefry2x32(keys[0], keys[1], event, slot)
