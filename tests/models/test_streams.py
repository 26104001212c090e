"""Streams: the generator against published vectors and JAX's own; keys differ by seed, stream and replica."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax.extend import random as extended

from lagjax.errors import InputError
from lagjax.models import streams

# Random123 1.14, kat_vectors, threefry2x32 with 20 rounds: counter, key, output.
VECTORS = [
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "expected"), VECTORS)
def test_published_vectors(counter, key, expected):
    words = streams.threefry2x32(*map(jnp.uint32, key), *map(jnp.uint32, counter))
    assert tuple(map(int, words)) == expected
    assert all(w.dtype == jnp.uint32 for w in words)


def test_equals_the_generator_behind_jax_random():
    rng = np.random.default_rng(0)
    for _ in range(20):
        key = rng.integers(0, 2**32, 2, dtype=np.uint32)
        counters = rng.integers(0, 2**32, (2, 50), dtype=np.uint32)
        theirs = extended.threefry_2x32(jnp.asarray(key), jnp.asarray(counters.ravel()))
        ours = streams.threefry2x32(*map(jnp.asarray, key), *map(jnp.asarray, counters))
        np.testing.assert_array_equal(np.concatenate(ours), theirs)


def test_keys_differ_across_seeds_streams_and_replicas():
    seeds = [0, 1, 2, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**33, 2**63, 2**64 - 1]
    keys = [
        streams.replica_keys(seed, stream, np.arange(64))
        for seed in seeds
        for stream in (streams.EXOGENOUS, streams.TIES)
    ]
    pairs = np.concatenate(keys, axis=1).T
    assert np.unique(pairs, axis=0).shape == (len(seeds) * 2 * 64, 2)


def test_a_replica_keeps_its_key_whoever_else_runs():
    together = streams.replica_keys(11, streams.TIES, np.arange(100))
    assert together.shape == (2, 100)
    assert together.dtype == jnp.uint32
    alone = streams.replica_keys(11, streams.TIES, [73])
    np.testing.assert_array_equal(alone[:, 0], together[:, 73])
    expected = streams.threefry2x32(jnp.uint32(11), jnp.uint32(0), jnp.uint32(73), jnp.uint32(streams.TIES))
    np.testing.assert_array_equal(alone[:, 0], jnp.stack(expected))


def test_words_are_named_by_replica_event_and_slot():
    keys = streams.replica_keys(5, streams.TIES, np.arange(7))
    events = jnp.asarray([0, 1, 2, 2**31, 2**32 - 1], dtype=jnp.uint32)[:, None]
    drawn = np.stack([np.stack(streams.words(keys, events, slot)) for slot in range(3)])
    assert drawn.shape == (3, 2, 5, 7)
    assert np.unique(drawn).size == drawn.size
    direct = streams.threefry2x32(keys[0, 4], keys[1, 4], jnp.uint32(2**31), jnp.uint32(2))
    assert drawn[2, :, 3, 4].tolist() == [int(w) for w in direct]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, None, "7", np.float64(3)])
def test_seed_outside_its_range_is_named(seed):
    with pytest.raises(InputError, match=r"seed is .*; give a whole number from 0 to 2\^64 - 1"):
        streams.replica_keys(seed, streams.EXOGENOUS, np.arange(2))


def test_seed_of_any_integer_type():
    for seed in (2**64 - 1, np.uint64(2**64 - 1)):
        key = streams.replica_keys(seed, streams.EXOGENOUS, [0])
        full = jnp.uint32(2**32 - 1)
        expected = streams.threefry2x32(full, full, jnp.uint32(0), jnp.uint32(0))
        np.testing.assert_array_equal(key[:, 0], jnp.stack(expected))
