"""Which servers are taken: every free set of small systems against brute force, races by grids of words."""

import itertools

import busy_chain
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from lagjax.models import select
from lagjax.models.select import nobody, rows_of_type

first_in_order = jax.jit(select.first_in_order, static_argnums=2)
race_in_tiers = jax.jit(select.race_in_tiers, static_argnums=4)


def free_sets(servers):
    """(servers, 2^servers) bool: every set of free servers, one a column."""
    return (np.arange(2**servers) >> np.arange(servers)[:, None] & 1).astype(bool)


def grid(points, k):
    """(k, points^k) words in the middle of equal intervals, every combination once."""
    middle = ((np.arange(points) + 0.5) * 2**32 / points).astype(np.uint32)
    return np.stack([axis.ravel() for axis in np.meshgrid(*[middle] * k, indexing="ij")])


@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_first_in_order_takes_the_best_free_servers(k):
    """All orders of 4 servers, all free sets."""
    ranks = np.array(list(itertools.permutations(range(4))), dtype=np.uint8).T  # (4, 24)
    free = free_sets(4)
    rank = np.repeat(ranks, free.shape[1], axis=1)
    free = np.tile(free, ranks.shape[1])
    taken, slots = first_in_order(jnp.asarray(rank), jnp.asarray(free), k)
    assert slots.dtype == jnp.uint8
    assert slots.shape == (k, rank.shape[1])
    for b in range(rank.shape[1]):
        best = sorted(rank[free[:, b], b].tolist())
        if len(best) < k:
            assert not np.any(taken[:, b])
            assert slots[:, b].tolist() == [255] * k
        else:
            assert slots[:, b].tolist() == best[:k]
            np.testing.assert_array_equal(taken[:, b], free[:, b] & (rank[:, b] <= best[k - 1]))


def test_first_in_order_of_several_policies_at_once():
    rng = np.random.default_rng(0)
    rank = np.argsort(rng.random((3, 9, 50)), axis=1).astype(np.uint16)
    free = rng.random((3, 9, 50)) < 0.4
    taken, slots = first_in_order(jnp.asarray(rank), jnp.asarray(free), 3)
    assert slots.shape == (3, 3, 50)
    for p in range(3):
        alone = first_in_order(jnp.asarray(rank[p]), jnp.asarray(free[p]), 3)
        np.testing.assert_array_equal(taken[p], alone[0])
        np.testing.assert_array_equal(slots[:, p], alone[1])


TIERS = [[0, 0, 0, 0], [0, 1, 0, 1], [2, 1, 1, 1], [0, 0, 1, 2], [1, 0, 0, 0]]
SHARES = {"even": [1, 1, 1, 1], "weighted": [1, 2, 3, 6]}  # sums of up to three of 1, 2, 3 divide 60


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("kind", SHARES)
@pytest.mark.parametrize("tier", TIERS, ids=str)
def test_race_has_the_law_of_draws_without_replacement(tier, kind, k):
    """Exact counts over a grid of words whose number every share divides, for every free set."""
    if kind == "weighted" and k > 1:
        tier, weight = tier[:3], SHARES[kind][:3]
    else:
        weight = SHARES[kind]
    servers = len(tier)
    points = {"even": 12, "weighted": 27720 if k == 1 else 60}[kind]
    words = grid(points, k)
    if kind == "weighted" and k == 3:
        words = words[:, ::7]  # the third server of three has no choice, so its axis may be thinned
    free = free_sets(servers)
    lanes = words.shape[1]
    free_lanes = np.repeat(free, lanes, axis=1)
    share = np.uint8(1) if kind == "even" else np.float32(weight)[:, None]
    tiers = np.repeat(np.uint8(tier)[:, None], free_lanes.shape[1], axis=1)
    all_words = np.tile(words, free.shape[1])
    taken, slots = race_in_tiers(*map(jnp.asarray, (tiers, share, free_lanes, all_words)), k)
    taken = np.asarray(taken).reshape(servers, -1, lanes)
    slots = np.asarray(slots).reshape(k, -1, lanes)
    assert slots.dtype == np.uint8
    for i in range(free.shape[1]):
        members = np.flatnonzero(free[:, i])
        if len(members) < k:
            assert not taken[:, i].any()
            assert np.all(slots[:, i] == 255)
            continue
        for j in range(k):
            assert np.all(np.take_along_axis(taken[:, i], slots[j, None, i].astype(int), axis=0))
        assert np.all(taken[:, i].sum(axis=0) == k)
        codes = np.left_shift(1, np.sort(slots[:, i].astype(int), axis=0)).sum(axis=0)
        seen = np.bincount(codes, minlength=2**servers) / lanes
        expected = np.zeros(2**servers)
        for chosen, probability in busy_chain.choices(members.tolist(), tier, weight, k).items():
            expected[sum(1 << r for r in chosen)] = probability
        np.testing.assert_allclose(seen, expected, atol=1e-12)


def test_race_of_several_policies_at_once():
    rng = np.random.default_rng(1)
    tier = rng.integers(0, 3, (2, 7, 40)).astype(np.uint8)
    weight = rng.uniform(0.1, 1, (2, 7, 40)).astype(np.float32)
    free = rng.random((2, 7, 40)) < 0.5
    word = rng.integers(0, 2**32, (3, 40), dtype=np.uint32)
    for share, share_of in ((weight, weight), (np.uint8(1), [np.uint8(1)] * 2)):
        taken, slots = race_in_tiers(*map(jnp.asarray, (tier, share, free, word)), 3)
        assert slots.shape == (3, 2, 40)
        for p in range(2):
            alone = race_in_tiers(*map(jnp.asarray, (tier[p], share_of[p], free[p], word)), 3)
            np.testing.assert_array_equal(taken[p], alone[0])
            np.testing.assert_array_equal(slots[:, p], alone[1])


def test_extreme_words_and_weights_stay_among_the_eligible():
    """Weights over 30 decades; the lowest word takes the first server with a share, the highest the last."""
    rng = np.random.default_rng(2)
    lanes = 4000
    weight = np.float32(10.0 ** rng.uniform(-30, 0, (11, lanes)))
    tier = rng.integers(0, 2, (11, lanes)).astype(np.uint8)
    free = rng.random((11, lanes)) < 0.6
    for word in (0, 2**32 - 1):
        for share in (jnp.asarray(weight), jnp.ones((), jnp.uint8)):
            words = jnp.full((1, lanes), word, jnp.uint32)
            taken, slots = race_in_tiers(jnp.asarray(tier), share, jnp.asarray(free), words, 1)
            taken = np.asarray(taken)
            assert not np.any(taken & ~free)
            best = np.where(free, tier, 255).min(axis=0)
            assert np.all((tier == best)[taken])
            np.testing.assert_array_equal(taken.sum(axis=0), free.any(axis=0))
            if share.ndim == 0 or word == 0:
                eligible = free & (tier == best)
                end = eligible.argmax(axis=0) if word == 0 else 10 - eligible[::-1].argmax(axis=0)
                np.testing.assert_array_equal(slots[0], np.where(free.any(axis=0), end, 255))


@pytest.mark.parametrize("servers", [254, 255, 256])
def test_many_servers(servers):
    """Both sides of the changes from bytes to 16 bits, of slots and of shares, against a plain walk through who is free."""
    rng = np.random.default_rng(servers)
    lanes, k = 60, 2
    slot_dtype, share_dtype = np.min_scalar_type(servers + 1), np.min_scalar_type(servers)
    tier = rng.integers(0, 3, (servers, lanes)).astype(slot_dtype)
    free = rng.random((servers, lanes)) < np.linspace(0, 1, lanes)
    free[:, -3:] = True
    tier[:, -3:] = [0, 1, 2]  # one tier of all servers
    word = rng.integers(0, 2**32, (k, lanes), dtype=np.uint32)
    taken, slots = race_in_tiers(*map(jnp.asarray, (tier, share_dtype.type(1), free, word)), k)
    rank = np.argsort(rng.random((servers, lanes)), axis=0).astype(slot_dtype)
    in_order = first_in_order(jnp.asarray(rank), jnp.asarray(free), k)[1]
    assert slots.dtype == in_order.dtype == slot_dtype
    for b in range(lanes):
        left, expected = set(np.flatnonzero(free[:, b]).tolist()), []
        if len(left) < k:
            assert not np.any(taken[:, b])
            assert np.all(slots[:, b] == nobody(slot_dtype))
            assert np.all(in_order[:, b] == nobody(slot_dtype))
            continue
        for j in range(k):
            best = min(tier[r, b] for r in left)
            eligible = sorted(r for r in left if tier[r, b] == best)
            expected.append(eligible[int(word[j, b]) * len(eligible) >> 32])
            left.remove(expected[-1])
        assert slots[:, b].tolist() == expected
        assert np.flatnonzero(taken[:, b]).tolist() == sorted(expected)
        assert in_order[:, b].tolist() == sorted(rank[free[:, b], b].tolist())[:k]


@pytest.mark.parametrize("shape", [(1, 5), (2, 5), (7, 5), (3, 6, 5), (13, 5), (60, 5), (2, 61, 5)], ids=str)
@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.float32])
def test_rows_of_type_by_compares_and_by_gather(shape, dtype, monkeypatch):
    rng = np.random.default_rng(3)
    table = (rng.random(shape) * 200).astype(dtype)
    task_type = rng.integers(0, shape[-2], 70).astype(np.uint8)
    expected = np.moveaxis(table[..., task_type, :], -1, -2)
    for widest in (0, 1000):
        monkeypatch.setattr(select, "WIDEST_SELECT", widest)
        rows = rows_of_type(jnp.asarray(table), jnp.asarray(task_type))
        assert rows.dtype == dtype
        np.testing.assert_array_equal(rows, expected)
