"""Neighbours of a policy are policies, all of them, and differ where they say."""

import itertools

import numpy as np
import pytest

from lagjax.gallery import low_rank, priority, specialist
from lagjax.lp import solve_occ
from lagjax.policies import build_policy, make_policy, strict_order
from lagjax.tune.candidates import distinct, lag_policies, named_policies, order_by, price_policies, second_order
from lagjax.tune.moves import combined, shifts, swaps, tier_moves


def test_single_moves_of_an_order_of_three():
    found = {tuple(map(int, table[0])) for table in tier_moves(np.array([[0, 1, 2]]))}
    together = {(0, 0, 1), (0, 1, 1)}
    passed = {(1, 0, 2), (0, 2, 1)}
    assert together | passed <= found and (0, 1, 2) not in found


def test_single_moves_out_of_a_tier():
    found = {tuple(map(int, table[0])) for table in tier_moves(np.array([[0, 0, 1]]))}
    assert {(0, 1, 2), (1, 0, 2), (0, 1, 1), (1, 0, 1)} <= found


def test_single_moves_change_one_type_and_leave_no_gaps():
    tier = np.array([[0, 1, 2, 2], [1, 0, 0, 0]])
    for other in tier_moves(tier):
        assert (other != tier).any(axis=1).sum() == 1
        assert all(np.array_equal(np.unique(row), np.arange(row.max() + 1)) for row in other)
        make_policy("moved", other)


def test_swaps_and_shifts_tell_equal_servers_apart_or_not():
    scores = priority().scores
    order = np.stack([np.arange(8.0), np.arange(8.0)])
    exchanged = [order + change for change in swaps(order, scores)]
    assert len(exchanged) == 2  # places 1 and 2, for each type
    assert all(sorted(row) == list(range(8)) for table in exchanged for row in table)
    moved = shifts(order, scores, 1.5)
    assert len(moved) == 4
    for change in moved:
        assert np.array_equal(change[0], change[1]) and len(set(change[0, :2])) == len(set(change[0, 2:])) == 1


def test_sums_take_what_looked_good():
    changes = [np.eye(3)[[i]] for i in range(3)]
    sums = combined(changes, np.array([2.0, 0.5, -1.0]), np.ones(3))
    assert np.array_equal(sums[:2], [[[1, 1, 0]], [[2, 2, 0]]])
    np.testing.assert_allclose(sums[-1], 2 * np.array([[1, 0.25, 0]]))
    assert combined(changes, -np.ones(3), np.ones(3)) == []


@pytest.mark.parametrize("instance", [specialist(0.2), priority(0.2), low_rank(0.9)], ids=lambda i: i.name)
def test_candidates_are_distinct_policies_and_lag_comes_first(instance):
    lags = lag_policies(instance)
    every = distinct([*lags, *named_policies(instance), *price_policies(instance)])
    assert every[: len(lags)] == lags and 10 < len(every) < 50
    assert np.array_equal(lags[0].tier, build_policy("lag", instance).tier)
    for one, other in itertools.combinations(every, 2):
        assert one.rule != other.rule or not (
            np.array_equal(one.tier, other.tier) and np.array_equal(one.weight, other.weight)
        )


def test_the_second_order_only_breaks_ties_of_the_first():
    for instance in (priority(0.2), specialist(0.3), low_rank(0.7)):
        at = solve_occ(instance)
        order = strict_order(order_by(second_order(instance, at), "second"))
        for v, row in enumerate(order):
            along = at.index[v, np.argsort(row)]
            assert np.all(np.diff(along) <= 1e-9 * instance.scores.max())
