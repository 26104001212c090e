"""Beliefs, indices and thresholds: against closed forms, value iteration, and policy iteration at each subsidy."""

import numpy as np
import pytest
from plain_partial import advantage, law
from scipy.stats import poisson

from lagjax import InputError
from lagjax.partial_information import (
    adaptive_greedy,
    arms_of,
    closed_form,
    indexability,
    make_system,
    subsidised,
    thresholds,
    whittle_indices,
)
from lagjax.partial_information.arms import beliefs, choosing, needed_ages, slot_matrix
from lagjax.partial_information.subsidy import _leaves


@pytest.mark.parametrize("mean", [0.05, 0.5, 3.0])
def test_beliefs_are_poisson_tails(mean):
    found = beliefs(mean, 0.0, 6, 40)
    for q in range(7):
        for age in (1, 2, 17, 40):
            np.testing.assert_allclose(found[q, age - 1], law(q, mean * age, 6), atol=1e-15)
    step, here = slot_matrix(mean, 0.0, 6), np.eye(7)
    for age in range(40):
        here = here @ step
        np.testing.assert_allclose(found[:, age], here, atol=1e-13)


def test_beliefs_with_exogenous_arrivals():
    found = beliefs(0.7, 0.2, 3, 60)
    assert np.allclose(found.sum(axis=-1), 1, atol=1e-13) and found.min() >= 0
    direct = np.zeros((4, 4))
    for q in range(4):
        for come in range(40):
            direct[q] += poisson.pmf(come, 0.2) * law(min(q + come, 3), 0.7, 3)
    np.testing.assert_allclose(found[:, 0], direct, atol=1e-14)
    np.testing.assert_allclose(found[:, 1], direct @ direct, atol=1e-14)


def test_choosing():
    reward, landing = choosing(make_system([1.0], 3, model="finite"))
    assert reward.tolist() == [3, 2, 1, 0] and landing[:, 3].tolist() == [1] * 4
    reward, landing = choosing(make_system([1.0], 3, model="blocking"))
    assert reward.tolist() == [3, 0, 0, 0] and landing[0, 3] == 1 and np.all(landing[1:] == np.eye(4)[1:])
    reward, landing = choosing(make_system([1.0], 2, model="finite", arrivals=0.5))
    p = poisson.pmf([0, 1], 0.5)
    np.testing.assert_allclose(landing, [[p[0], p[1], 1 - p.sum()], [0, p[0], 1 - p[0]], [0, 0, 1]], atol=1e-15)
    np.testing.assert_allclose(reward, [p[1] + 2 * (1 - p.sum()), 1 - p[0], 0], atol=1e-15)


@pytest.mark.parametrize("discount", [0.3, 0.9, 0.99, 1.0])
@pytest.mark.parametrize(("rate", "capacity"), [(0.5, 1), (0.3, 3), (1.5, 6)])
def test_closed_form_is_where_value_iteration_is_indifferent(rate, capacity, discount):
    """Within 1e-8, for ages of every size."""
    (arm,) = arms_of(make_system([rate], capacity, discount=discount))
    index = closed_form(arm.expected[-1], discount)
    assert np.all(np.diff(index) > -1e-12)
    for age in (1, 3, 9, len(index) // 2):
        gain = advantage(arm.belief, arm.reward, arm.landing, discount, index[age - 1])
        assert abs(gain[-1, age - 1]) < 1e-8


@pytest.mark.parametrize("discount", [0.5, 0.99, 1.0])
def test_greedy_is_the_closed_form(discount):
    arms = arms_of(make_system([0.2, 0.5, 2.0], 4, discount=discount))
    for arm, table in zip(arms, adaptive_greedy(arms), strict=True):
        assert table.indexable and table.residual < 1e-11
        np.testing.assert_allclose(table.index[-1, :-1], closed_form(arm.expected[-1], discount), atol=1e-8)
        np.testing.assert_allclose(table.index[0], 4, atol=1e-8)


AGES = 100  # one compiled program for all
KINDS = [
    ("blocking", {}),
    ("blocking", {"exogenous": [0.1, 0.0]}),
    ("finite", {"arrivals": 2.0}),
    ("blocking", {"arrivals": 1.0, "exogenous": [0.05, 0.3]}),
]


@pytest.mark.parametrize("discount", [0.5, 0.99, 1.0])
@pytest.mark.parametrize(("model", "more"), KINDS)
def test_greedy_agrees_with_each_subsidy_solved_alone(model, more, discount):
    arms = arms_of(make_system([0.5, 1.2], 3, model=model, discount=discount, **more), AGES)
    grid = np.linspace(-0.1, 3.1, 81)
    for table, found in zip(adaptive_greedy(arms), subsidised(arms, grid), strict=True):
        assert table.indexable and table.residual < 1e-8
        sure = np.abs(table.index - grid[:, None, None]) > 1e-6
        assert np.array_equal((table.index < grid[:, None, None])[sure], found.passive[sure])
        slope = np.diff(found.gain) / np.diff(grid)  # the gain is convex in the subsidy and grows no faster than it
        assert np.all(np.diff(slope) > -1e-8) and slope.min() > -1e-9 and slope.max() < 1 + 1e-9


def test_greedy_is_where_value_iteration_is_indifferent():
    for discount in (0.9, 1.0):
        (arm,) = arms_of(make_system([0.6], 3, model="blocking", discount=discount, exogenous=0.1), AGES)
        (table,) = adaptive_greedy([arm])
        for q, age in ((1, 1), (2, 4), (3, 2), (3, 9)):
            gain = advantage(arm.belief, arm.reward, arm.landing, discount, table.index[q, age - 1])
            assert abs(gain[q, age - 1]) < 1e-8


@pytest.mark.parametrize("capacity", [4, 6, 10])
def test_thresholds_of_figure_2(capacity):
    """Monotone in the subsidy and in q, from 1 up to never."""
    (table,) = adaptive_greedy(arms_of(make_system([0.5], capacity, model="blocking")))
    assert table.indexable
    ages = thresholds(table.index, np.linspace(0, capacity, 201))[:, 1:]
    assert np.all(ages[1:] >= ages[:-1]) and np.all(ages[:, 1:] >= ages[:, :-1])
    assert np.all(ages[0] == 1) and np.all(np.isinf(ages[-1]))


@pytest.mark.parametrize(("discount", "short"), [(0.99, 30), (1.0, 40), (0.5, 30)])
def test_truncation_changes_no_more_than_it_says(discount, short):
    system = make_system([0.5], 4, model="blocking", discount=discount)
    (long,), (cut,) = adaptive_greedy(arms_of(system)), adaptive_greedy(arms_of(system, short))
    change = np.abs(long.index[:, :short] - cut.index)
    assert 0 < change.max() <= cut.truncation
    top = cut.index[-1, -1]
    assert np.all(change[cut.index < top - cut.truncation] < 1e-9)
    assert np.all(np.abs(long.index[1:, short:] - top) <= cut.truncation)


def test_reports():
    arms = arms_of(make_system([0.5, 1.0], 3, model="blocking", exogenous=[0, 0.3]), AGES)
    for report in indexability(arms, np.linspace(0, 3, 81)):
        assert report.verdict == "indexable" and report.counter_example is None and report.residual < 1e-8


def test_a_counter_example_is_found():
    passive = np.zeros((4, 2, 3), bool)
    passive[1:, 0, 2] = passive[1, 1, 1] = True
    assert _leaves(passive, np.array([0.0, 0.1, 0.2, 0.3])) == (1, 2, 0.1, 0.2)


def test_ages():
    for rate, capacity in ((0.5, 4), (0.05, 6)):
        count = needed_ages(rate, 0.0, capacity)
        assert poisson.cdf(capacity - 1, rate * count) <= 1e-12 < poisson.cdf(capacity - 1, rate * (count - 1))


@pytest.mark.parametrize(
    ("rates", "capacity", "more", "words"),
    [
        ([0.5, 0], 3, {}, "server 2 has rate 0"),
        ([0.5, -1], 3, {}, "server 2 has rate -1"),
        ([], 3, {}, "0 servers"),
        ([0.5], 0, {}, "capacity is 0"),
        ([0.5], 2.5, {}, "capacity is 2.5"),
        ([0.5], 3, {"discount": 0}, "discount is 0"),
        ([0.5], 3, {"discount": 1.01}, "discount is 1.01"),
        ([0.5], 3, {"model": "open"}, "no model 'open'"),
        ([0.5], 3, {"arrivals": 0.0}, "arrivals is 0"),
        ([0.5], 3, {"exogenous": [0.1, 0.1]}, "2 exogenous rates for 1 servers"),
        ([0.5], 3, {"exogenous": -0.1}, "exogenous arrivals -0.1"),
    ],
)
def test_faults(rates, capacity, more, words):
    with pytest.raises(InputError, match=words):
        make_system(rates, capacity, **more)


def test_faults_of_ages():
    system = make_system([0.5], 4, model="blocking")
    with pytest.raises(InputError, match="use more ages"):
        whittle_indices(arms_of(system, 20))
    assert whittle_indices(arms_of(system, 20), precision=10.0)[0].index.shape == (5, 20)
    with pytest.raises(InputError, match="ages is 1"):
        arms_of(system, 1)
    with pytest.raises(InputError, match="uncertain for more than"):
        arms_of(make_system([1e-5], 3))
