"""Rounding by largest remainders: the guarantees of Appendix A, exact ties, and the order of single servers."""

import itertools
from fractions import Fraction

import jax
import numpy as np
import plain_allocation
import pytest

from lagjax.allocate import largest_remainders, waterfill
from lagjax.policies import make_policy, strict_order


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@jax.jit
def allocate(budget, capacity, tier, weight):
    amount = waterfill(budget.astype(np.float64), capacity.astype(np.float64), tier, weight)
    return amount, largest_remainders(amount, budget)


def random_counts(servers, lanes, copies, seed):
    rng = np.random.default_rng(seed)
    capacity = rng.integers(0, copies + 1, (servers, lanes)).astype(np.int32)
    tier = rng.integers(0, rng.integers(1, servers + 1, lanes), (servers, lanes))
    weight = np.where(
        rng.random(lanes) < 0.5, rng.uniform(0.01, 1, (servers, lanes)), rng.integers(1, 7, (servers, lanes))
    )
    budget = np.minimum(rng.integers(0, servers * copies + 1, lanes), capacity.sum(axis=0)).astype(np.int32)
    return budget, capacity, tier, weight


@pytest.mark.parametrize("copies", [1, 2, 5, 64, 65536, 2**24])
def test_guarantees(copies):
    """Sum, bounds, less than one from the amount; whole amounts stay."""
    budget, capacity, tier, weight = random_counts(7, 4000, copies, seed=copies)
    amount, whole = map(np.asarray, allocate(budget, capacity, tier, weight))
    assert whole.dtype == np.int32
    np.testing.assert_array_equal(whole.sum(axis=0), budget)
    assert np.all(whole >= 0) and np.all(whole <= capacity)
    assert np.all(np.abs(whole - amount) < 1)
    is_whole = np.abs(amount - np.rint(amount)) < 1e-7
    np.testing.assert_array_equal(whole[is_whole], np.rint(amount[is_whole]))
    assert is_whole.any() and not is_whole.all()


@pytest.mark.parametrize("copies", [1, 3, 12, 1000])
def test_against_exact_fractions(copies):
    """Small whole weights: many remainders are equal, and go by server order whatever float64 makes of them."""
    budget, capacity, tier, weight = random_counts(6, 3000, copies, seed=100 + copies)
    weight = np.ceil(weight)
    whole = np.asarray(allocate(budget, capacity, tier, weight)[1])
    ties = 0
    for b in range(budget.size):
        exact = [[Fraction(int(x)) for x in column[:, b]] for column in (capacity, weight)]
        amount = plain_allocation.waterfill(Fraction(int(budget[b])), exact[0], tier[:, b].tolist(), exact[1])
        assert whole[:, b].tolist() == plain_allocation.largest_remainders(amount, int(budget[b]))
        remainders = [a % 1 for a in amount if a % 1]
        ties += len(set(remainders)) < len(remainders)
    assert ties > 100


def test_ties_go_by_server_order_whatever_their_whole_parts():
    """Amounts 4/3, 1/3, 7/3, 1: the one copy left goes to server 0; then to servers 0 and 1."""
    amount = np.array([[4 / 3, 1 / 3, 7 / 3, 1.0], [5 / 3, 2 / 3, 8 / 3, 2.0], [7 / 3, 4 / 3, 1 / 3, 0]]).T
    whole = largest_remainders(amount, np.array([5, 7, 4], np.int32))
    assert np.asarray(whole).T.tolist() == [[2, 0, 2, 1], [2, 1, 2, 2], [3, 1, 0, 0]]
    noisy = amount + np.array([-3e-16, 3e-16, -4e-16, 0])[:, None] * 10
    np.testing.assert_array_equal(largest_remainders(noisy, np.array([5, 7, 4], np.int32)), whole)


def test_amounts_whole_but_for_noise():
    amount = np.array([3 - 1e-10, 2 + 1e-10, 0.0, 5e8 + 1e-7])[:, None]
    whole = largest_remainders(amount, np.array([5 + 500000000], np.int32))
    assert np.asarray(whole)[:, 0].tolist() == [3, 2, 0, 500000000]


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("servers", [1, 3, 6])
def test_single_servers_are_taken_in_the_strict_order_of_the_policy(servers, k):
    """n = 1: every free set, tiers and weights at random and with ties; a set with too few free gives them all."""
    rng = np.random.default_rng(servers)
    types = 60
    tier = rng.integers(0, rng.integers(1, servers + 1, types)[:, None], (types, servers))
    weight = np.where(
        rng.random((types, 1)) < 0.5, rng.uniform(0.01, 1, (types, servers)), rng.integers(1, 3, (types, servers))
    )
    policy = make_policy("capped", tier, weight, "capped")
    rank = strict_order(policy)
    sets = np.array(list(itertools.product([0, 1], repeat=servers)), np.int32).T
    lanes = sets.shape[1]
    shape = types, servers, lanes
    budget = np.minimum(k, sets.sum(axis=0)).astype(np.int32)
    given = np.asarray(
        allocate(
            np.broadcast_to(budget, (types, lanes)),
            np.broadcast_to(sets, shape),
            np.broadcast_to(policy.tier[:, :, None], shape),
            np.broadcast_to(policy.weight[:, :, None], shape),
        )[1]
    )
    key = np.where(sets == 1, rank[:, :, None], servers)
    place = np.argsort(np.argsort(key, axis=1, kind="stable"), axis=1)
    np.testing.assert_array_equal(given, (place < k) & (sets == 1))
