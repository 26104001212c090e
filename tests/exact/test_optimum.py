"""The optimum: brute force, every policy below it, and what is known of the gallery."""

import itertools

import numpy as np
import pytest
from brute_force import best_reward

from lagjax.durations import geometric
from lagjax.errors import InputError
from lagjax.exact import best_fixed_order, evaluate, exact_blocking, optimum
from lagjax.exact import stationary as module
from lagjax.gallery import priority, specialist
from lagjax.instance import make_instance
from lagjax.lp import occ_upper_bound
from lagjax.policies import POLICIES, build_policy, make_policy

TINY = {
    "geometric": ([[1.8, 1, 0.9], [8, 0.3, 0.2]], geometric(4), [4, 4], 1),
    "two means": ([[1.8, 1], [8, 0.2]], [geometric(6), geometric(2)], [6, 2], 1),
    "bounded": ([[1.8, 1], [8, 0.2]], [[0, 0, 1], [0.5, 0.5]], None, 1),
    "pairs": ([[3, 1, 1, 0.2], [6, 0.5, 0.4, 0.1]], geometric(4), [4, 4], 2),
}


@pytest.mark.parametrize("name", TINY)
def test_brute_force_over_all_deterministic_policies(name):
    scores, service, means, k = TINY[name]
    instance = make_instance(scores, service, servers_per_task=k, load=0.45, mix=[2, 1])
    best, tried = best_reward(instance, means)
    found = optimum(instance)
    assert tried >= {"geometric": 576, "two means": 4, "bounded": 4, "pairs": 36}[name]
    np.testing.assert_allclose([found.reward, found.lower, found.upper], best, rtol=1e-8)
    greedy = evaluate(instance, build_policy("greedy", instance)).reward
    assert greedy < best * (1 - 1e-4), "choose a system in which the optimum is not greedy"


def policies(instance):
    names = [(name, selection) for name in POLICIES for selection in ("canonical", "vertex", "interior")]
    return [build_policy(name, instance, selection) for name, selection in names]


@pytest.mark.parametrize("load", [0.1, 0.2, 0.4, 0.6, 0.8])
@pytest.mark.parametrize("gallery", [priority, specialist])
def test_no_policy_is_above_the_optimum_and_the_optimum_is_below_the_bound(gallery, load):
    instance = gallery(load)
    best = optimum(instance)
    assert best.lower <= best.reward <= best.upper <= best.lower * (1 + 1e-9)
    for policy in policies(instance):
        assert evaluate(instance, policy).reward <= best.reward * (1 + 1e-9)
    assert best.reward <= occ_upper_bound(instance, exact_blocking(instance))


def test_the_action_table_serves_whenever_it_can_and_earns_the_optimum():
    """Bellman's equation at the table's own actions, with the chain written out by hand for two unequal servers."""
    instance = make_instance([[3, 1.0], [4, 0.2]], geometric(4), load=0.45, mix=[2, 1])
    best = optimum(instance)
    free = best.chain.free
    assert np.array_equal(best.action >= 0, np.broadcast_to(free.any(axis=1), best.action.shape))
    at = {tuple(1 - row): i for i, row in enumerate(free)}  # busy -> state
    stay = 1 - 1 / 4

    def later(busy):
        return [((a, b), (stay if a else 1 - stay if busy[0] else 1) * (stay if b else 1 - stay if busy[1] else 1))
                for a in range(busy[0] + 1) for b in range(busy[1] + 1)]  # fmt: skip

    for busy, i in at.items():
        total = (1 - instance.total_rate) * sum(p * best.bias[at[x]] for x, p in later(busy))
        for v, rate in enumerate(instance.arrival_rate):
            team = best.action[v, i]
            new = np.zeros(2, int) if team < 0 else best.chain.teams[team]
            earned = 0 if team < 0 else instance.scores[v] @ new
            total += rate * (earned + sum(p * best.bias[at[tuple(np.add(x, new))]] for x, p in later(busy)))
        np.testing.assert_allclose(total - best.bias[i], best.reward, atol=1e-12)


def test_large_chains_give_the_same_optimum(monkeypatch):
    rng = np.random.default_rng(3)
    for service, k in ((geometric(7), 1), ([geometric(3), geometric(9)], 1), (geometric(7), 2)):
        instance = make_instance(rng.random((2, 5)), service, servers_per_task=k, load=0.5)
        direct = optimum(instance)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_DIRECT", 0)
            iterated = optimum(instance)
        np.testing.assert_allclose(iterated.reward, direct.reward, rtol=1e-9)
        assert np.array_equal(iterated.action, direct.action)


@pytest.mark.parametrize(("gallery", "least"), [(priority, 0.5), (specialist, 0.3)])
def test_lag_is_optimal_from_these_loads_on(gallery, least):
    for load in np.arange(10 * least, 8.5) / 10:
        instance = gallery(load)
        for selection in ("canonical", "vertex", "interior"):
            lag = evaluate(instance, build_policy("lag", instance, selection)).reward
            assert lag > (1 - 1e-9) * optimum(instance).reward


# (load, optimum, LAG canonical, LAG vertex), % of OCC-UB to two decimals
PRIORITY = [
    (0.2, 89.02, 80.65, 84.14), (0.3, 87.59, 87.59, 83.98), (0.4, 85.40, 85.40, 83.13), (0.8, 84.48, 84.48, 84.48),
]  # fmt: skip


@pytest.mark.parametrize(("load", "best", "canonical", "vertex"), PRIORITY)
def test_priority(load, best, canonical, vertex):
    instance = priority(load)
    bound = occ_upper_bound(instance, exact_blocking(instance))
    lag = [evaluate(instance, build_policy("lag", instance, s)).reward for s in ("canonical", "vertex")]
    found = 100 * np.array([optimum(instance).reward, *lag]) / bound
    np.testing.assert_allclose(found, [best, canonical, vertex], atol=0.005)


# Best fixed orders: identical servers all together; the two priority handlers apart; a standard handler apart as well.
ORDERS = [(0.1, 88.19, 89.46), (0.2, 87.32, 87.78), (0.3, 87.59, 87.59), (0.4, 85.40, 85.40)]


@pytest.mark.parametrize(("load", "together", "apart"), ORDERS)
def test_best_fixed_orders_of_priority(load, together, apart):
    instance = priority(load)
    bound = occ_upper_bound(instance, exact_blocking(instance))
    one, two = best_fixed_order(instance, 1), best_fixed_order(instance)
    np.testing.assert_allclose([100 * one.reward / bound, 100 * two.reward / bound], [together, apart], atol=0.005)
    for found in (one, two):
        np.testing.assert_allclose(evaluate(instance, found.policy).reward, found.reward, rtol=1e-12)
    assert (one.candidates, two.candidates) == (4, 720)
    assert two.reward <= optimum(instance).reward * (1 + 1e-12)


def test_the_order_with_only_the_priority_handlers_apart():
    """Priority at load 0.2: 87.76% of OCC-UB with the standard handlers alike, 87.78% with one of them apart."""
    instance = priority(0.2)
    bound = occ_upper_bound(instance, exact_blocking(instance))
    policy = make_policy("apart", [[0, 7, 1, 2, 3, 4, 5, 6], list(range(8))])
    assert 100 * evaluate(instance, policy).reward / bound == pytest.approx(87.76, abs=0.005)


@pytest.mark.parametrize(("k", "servers"), [(1, 4), (2, 3)])
def test_best_fixed_order_is_the_best_of_all_orders(k, servers):
    """Every pair of strict orders of a few servers, two of them equal, evaluated one by one as any policy is."""
    scores = np.array([[1.8, 1.8, 1, 0.9], [8, 8, 0.2, 0.3]])[:, :servers]
    instance = make_instance(scores, geometric(4), servers_per_task=k, load=0.3)
    orders = [np.argsort(order) for order in itertools.permutations(range(servers))]
    rewards = [evaluate(instance, make_policy("any", pair)).reward for pair in itertools.product(orders, orders)]
    found = best_fixed_order(instance)
    assert found.candidates == len(rewards) / 2  # renaming the equal servers
    np.testing.assert_allclose(found.reward, max(rewards), rtol=1e-12)


def test_orders_that_are_too_many_are_counted():
    with pytest.raises(InputError, match="there are about 10\\^21 orders to try, at most 1,000,000"):
        best_fixed_order(specialist())
    with pytest.raises(InputError, match="parts is 0"):
        best_fixed_order(priority(), 0)
