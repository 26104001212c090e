"""The named policies: LAG against Waterfill's groups, and the others against their definitions."""

import dataclasses

import numpy as np
import pytest

from lagjax.durations import deterministic
from lagjax.errors import InputError
from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, solve_kiid, solve_occ
from lagjax.policies import POLICIES, build_policy, strict_order
from lagjax.policies.baselines import safe_choice
from lagjax.policies.lag import lag
from lagjax.policies.whittle import whittle_index, whittle_rate


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", GALLERY)
def test_lag_fills_positive_then_shared_then_the_rest(name, selection):
    for load in (0.1, 0.4, 0.7):
        instance = gallery(name, load)
        s = solve_occ(instance, selection=selection)
        p = lag(instance, s)
        assert p.rule == "capped"
        rank = strict_order(p)
        for v in range(instance.num_types):
            stage = np.where(s.index[v] > 0, 0, np.where((s.index[v] == 0) & (s.tie_weight[v] > 1e-9), 1, 2))
            order = np.argsort(rank[v])
            assert np.all(np.diff(stage[order]) >= 0)
            for group in (0, 2):
                of_group = order[stage[order] == group]
                assert np.all(np.diff(s.index[v, of_group]) <= 1e-8)
                assert np.unique(p.tier[v, of_group]).size == of_group.size
            shared = order[stage[order] == 1]
            assert np.unique(p.tier[v, shared]).size == min(shared.size, 1)
            assert np.all(np.diff(s.tie_weight[v, shared]) <= 1e-8)
            np.testing.assert_allclose(p.weight[v, shared], s.tie_weight[v, shared], atol=1e-9)


def test_solver_noise_does_not_change_lag():
    rng = np.random.default_rng(1)
    for name in GALLERY:
        instance = gallery(name, 0.5)
        s = solve_occ(instance)
        noise = [1e-12 * rng.uniform(-1, 1, s.index.shape) for _ in range(2)]
        noisy = dataclasses.replace(
            s, index=s.index + noise[0] * instance.scores.max(), tie_weight=np.maximum(s.tie_weight + noise[1], 0)
        )
        a, b = lag(instance, s), lag(instance, noisy)
        np.testing.assert_array_equal(a.tier, b.tier)
        np.testing.assert_array_equal(strict_order(a), strict_order(b))


def test_lag_by_hand():
    # see test_one_type_two_servers_by_hand: L = (2/3, 0) and the second server shares alone
    instance = make_instance([[1.0, 0.0]], deterministic(2), arrival_rate=[0.25])
    p = build_policy("lag", instance)
    np.testing.assert_array_equal(p.tier, [[0, 1]])


def test_greedy_tiers_are_equal_scores():
    instance = make_instance([[0.1 + 0.2, 0.3, 0.5], [1, 0, 0]], deterministic(2), load=0.2)
    p = build_policy("greedy", instance)
    np.testing.assert_array_equal(p.tier, [[1, 1, 0], [0, 1, 1]])
    assert p.rule == "race" and np.all(p.weight == 1)


def test_random_is_one_even_race():
    p = build_policy("random", gallery("priority", 0.3))
    assert p.rule == "race" and np.all(p.tier == 0) and np.all(p.weight == 1)


@pytest.mark.parametrize("name", GALLERY)
def test_safe_choice_draws_from_the_lp_then_greedily(name):
    instance = gallery(name, 0.5)
    greedy = build_policy("greedy", instance)
    for selection in SELECTIONS:
        s = solve_kiid(instance, selection)
        p = safe_choice(instance, s)
        drawn = s.assignment_rate > 0
        for v in np.flatnonzero(drawn.any(axis=1)):
            assert np.all(p.tier[v, drawn[v]] == 0) and np.all(p.tier[v, ~drawn[v]] > 0)
            share = s.assignment_rate[v, drawn[v]] / instance.arrival_rate[v]
            np.testing.assert_allclose(p.weight[v, drawn[v]], share)
            rest = ~drawn[v]
            if selection == "interior":
                assert np.all(p.tier[v, rest] == 1)
                np.testing.assert_array_equal(p.weight[v, rest], s.vanishing_weight[v, rest])
            else:
                order = np.lexsort((p.tier[v, rest],))
                assert np.all(np.diff(greedy.tier[v, rest][order]) >= 0)
        if selection != "interior":  # a type that the LP does not serve is left to greedy
            unserved = ~drawn.any(axis=1)
            np.testing.assert_array_equal(p.tier[unserved], greedy.tier[unserved])


def test_whittle_formula_in_loops():
    instance = gallery("specialist", 0.4)
    W, p = whittle_index(instance), instance.arrival_rate / instance.total_rate
    s, mean = instance.scores, instance.mean_duration
    for v, r in np.ndindex(s.shape):
        loss = sum(p[u] * max(s[u, r] - s[v, r], 0) for u in range(len(p)))
        assert W[v, r] == pytest.approx(s[v, r] - mean[v] * loss)
    policy = build_policy("whittle", instance)
    assert policy.tier.max() < instance.num_servers - 1  # true ties stay ties
    assert np.all(np.diff(np.take_along_axis(W, np.argsort(policy.tier, axis=1), axis=1)) <= 1e-9 * np.abs(W).max())


def test_whittle_rate_is_the_closed_form_under_equal_durations():
    for name in ("specialist", "priority", "unfriendly", "low-rank"):
        instance = gallery(name, 0.6)
        s, mean = instance.scores, instance.mean_duration[0]
        better = np.maximum(s[:, None] - s[None], 0)
        closed = s - mean * np.einsum("u,uvr->vr", instance.arrival_rate, better)
        policy = whittle_rate(instance)
        assert policy.notes == ()
        for v in range(instance.num_types):
            expected = np.unique(-np.round(closed[v], 8), return_inverse=True)[1]
            np.testing.assert_array_equal(policy.tier[v], expected)


def test_a_non_indexable_arm_is_reported_by_name():
    instance = make_instance(
        [[1.0, 0.2, 1.0], [2.0, 0.1, 1.5]], [deterministic(1), deterministic(10)], arrival_rate=[0.9, 0.05],
        tasks=["short", "long"], servers=["anna", "ben", "carl"],
    )  # fmt: skip
    policy = build_policy("whittle-rate", instance)
    assert any(
        "server 'anna' is not indexable: task 'long'" in note and "0.732394 and 2" in note for note in policy.notes
    )
    assert any("server 'ben'" in note and "at no price" in note for note in policy.notes)
    assert any("server 'carl'" in note and "0.866197 and 1.5" in note for note in policy.notes)
    np.testing.assert_array_equal(policy.tier[1], [0, 2, 1])  # by the larger of two prices


def test_registry():
    instance = gallery("priority", 0.4)
    assert set(POLICIES) == {"lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate"}
    for name in POLICIES:
        p = build_policy(name, instance, "vertex")
        assert p.name == name and p.tier.shape == instance.scores.shape
    occ, kiid = solve_occ(instance, selection="vertex"), solve_kiid(instance)
    np.testing.assert_array_equal(build_policy("lag", instance, solution=occ).tier, lag(instance, occ).tier)
    np.testing.assert_array_equal(
        build_policy("alg-sc-lp", instance, solution=kiid).weight, safe_choice(instance, kiid).weight
    )
    with pytest.raises(InputError, match="no policy 'lagg'; choose from lag, greedy, random, alg-sc-lp"):
        build_policy("lagg", instance)
    with pytest.raises(InputError, match="policy 'lag' cannot use a KiidSolution"):
        build_policy("lag", instance, solution=kiid)
    with pytest.raises(InputError, match="selection is 'simplex'"):
        build_policy("lag", instance, "simplex")
    with pytest.raises(InputError, match="the instance has"):
        lag(gallery("specialist", 0.4), occ)
