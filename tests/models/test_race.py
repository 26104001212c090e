"""Races with whole copies: Wallenius' law against SciPy and against draws one after another, tier by tier."""

import functools
from collections import Counter

import jax
import numpy as np
import pytest
from scipy.stats import chi2, nchypergeom_wallenius

from lagjax.models import streams
from lagjax.models.race import race

FALSE_ALARM = 1e-6  # of all tests of this file together
TESTS = 40
LANES = 2**17
SERVERS = 5  # of every race: those beyond its own are in tier 0 without a copy, so that one program serves all

run = jax.jit(race, static_argnums=7)


def winners(budget, capacity, tier, weight, even=False, seed=1):
    """(R, L) copies given in every lane."""

    def lanes(values, beyond, dtype):
        padded = np.array([*values, *[beyond] * (SERVERS - len(values))], dtype)
        return np.broadcast_to(padded[:, None], (SERVERS, LANES))

    tables = lanes(capacity, 0, np.int32), lanes(tier, 0, np.int32), lanes(weight, 1, np.float32)
    keys = streams.replica_keys(seed, streams.TIES, np.arange(LANES))
    given = np.asarray(run(np.full(LANES, budget, np.int32), *tables, keys, np.uint32(3), np.uint32(2), even))
    assert given.dtype == np.int32 and not given[len(capacity) :].any()
    given = given[: len(capacity)]
    assert np.all(given >= 0) and np.all(given <= np.asarray(capacity)[:, None])
    assert np.all(given.sum(axis=0) == min(budget, sum(capacity)))
    return given


def check_counts(seen, expected):
    """Chi-square of counts by outcome, the rarest outcomes pooled; every outcome seen must be possible."""
    assert set(seen) <= {key for key, p in expected.items() if p > 0}
    pooled, observed, hoped = [], 0, 0.0
    for key in sorted(expected, key=expected.get):
        observed, hoped = observed + seen[key], hoped + expected[key] * LANES
        if hoped >= 25:
            pooled.append((observed, hoped))
            observed, hoped = 0, 0.0
    assert len(pooled) > 2
    assert chi2.sf(sum((o - e) ** 2 / e for o, e in pooled), len(pooled) - 1) > FALSE_ALARM / TESTS


def one_after_another(budget, capacity, weight):
    """Exact law of the winners by type, by recursion over the draws."""

    @functools.cache
    def law(left, budget):
        if budget == 0:
            return {left: 1.0}
        rates = [number * w for number, w in zip(left, weight, strict=True)]
        result = Counter()
        for r, rate in enumerate(rates):
            if rate:
                after = tuple(number - (s == r) for s, number in enumerate(left))
                for end, p in law(after, budget - 1).items():
                    result[end] += p * rate / sum(rates)
        return result

    return {tuple(np.subtract(capacity, end).tolist()): p for end, p in law(tuple(capacity), budget).items()}


SMALL = [
    (4, (3, 4, 2), (1, 2, 5)), (6, (3, 4, 2), (1, 2, 5)), (3, (4, 4, 4, 4), (1, 1, 8, 0.25)), (8, (6, 6, 1), (0.01, 1, 1)),
    (2, (1, 1, 1, 1), (5, 1, 2, 1)), (4, (10, 3), (1, 30)),
]  # fmt: skip


@pytest.mark.parametrize("case", SMALL, ids=str)
def test_small_races_are_draws_one_after_another(case):
    budget, capacity, weight = case
    given = winners(budget, capacity, [0] * len(capacity), weight)
    check_counts(Counter(map(tuple, given.T.tolist())), one_after_another(*case))


LARGE = [(60, 100, 50, 3.0), (700, 1000, 400, 0.2), (20, 300, 40, 8.0), (5000, 4000, 3000, 1.7), (30, 20, 2000, 60.0)]


@pytest.mark.parametrize("case", LARGE, ids=str)
def test_large_races_follow_wallenius(case):
    """Two types: `first` copies of weight `odds` against `second` of weight 1."""
    budget, first, second, odds = case
    given = winners(budget, (first, second), (0, 0), (odds, 1))[0]
    law = nchypergeom_wallenius(first + second, first, budget, odds)
    values = np.arange(max(0, budget - second), min(first, budget) + 1)
    near = np.abs(values - law.mean()) < 8 * law.std() + 5
    p = np.zeros(values.size)
    p[near] = [law.pmf(x) for x in values[near]]
    check_counts(Counter(given.tolist()), dict(zip(values.tolist(), (p / p.sum()).tolist(), strict=True)))


@pytest.mark.parametrize("even", [True, False])
def test_tiers_fill_in_order_and_the_last_one_races(even):
    """Tier 0 all served, tier 1 races for what is left (equal weights, both ways to draw), tier 2 gets nothing."""
    given = winners(9, (3, 4, 5, 4, 6), (1, 0, 1, 2, 1), (1, 1, 1, 1, 1), even)
    assert np.all(given[1] == 4) and np.all(given[3] == 0)
    check_counts(Counter(map(tuple, given[[0, 2, 4]].T.tolist())), one_after_another(5, (3, 5, 6), (1, 1, 1)))


@pytest.mark.parametrize("even", [True, False])
def test_nothing_to_race_for(even):
    """No budget, just enough for a tier, more than there is."""
    assert winners(0, (3, 0, 2), (0, 0, 1), (1, 2, 3), even).max() == 0
    assert np.all(winners(3, (3, 0, 2), (0, 0, 1), (1, 2, 3), even).T == [3, 0, 0])
    assert np.all(winners(9, (3, 0, 2), (0, 0, 1), (1, 2, 3), even).T == [3, 0, 2])
