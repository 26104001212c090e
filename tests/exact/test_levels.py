"""Bound and prices by the number of running tasks: above every policy, below OCC-UB, and exact where nothing is lost by them."""

import numpy as np
import pytest
from scipy.special import comb

from lagjax.durations import deterministic, geometric
from lagjax.errors import InputError
from lagjax.exact import evaluate, exact_blocking, improve, level_bound, level_policy, levels, optimum
from lagjax.exact.groups import equal_servers
from lagjax.exact.service import service_of
from lagjax.gallery import journal, priority, specialist
from lagjax.instance import make_instance
from lagjax.lp import occ_upper_bound
from lagjax.policies import POLICIES, build_policy
from lagjax.policies.table import order_by_level, strict_order


def systems():
    rng = np.random.default_rng(11)
    for k, servers in ((1, 4), (2, 5), (1, 5)):
        scores = np.round(rng.random((3, servers)), 2)
        scores[:, 1] = scores[:, 0]
        yield make_instance(scores, geometric(6), servers_per_task=k, load=rng.uniform(0.15, 0.5), mix=[3, 2, 1])
    yield specialist(0.4)
    yield priority(0.2)


@pytest.fixture(scope="module", params=list(systems()), ids=["k1", "k2", "k1 too", "specialist", "priority"])
def solved(request):
    return request.param, level_bound(request.param)


def test_between_the_optimum_and_occ_ub(solved):
    instance, found = solved
    bound = occ_upper_bound(instance, exact_blocking(instance))
    assert optimum(instance).reward <= found.reward * (1 + 1e-9) <= bound * (1 + 2e-9)
    assert 0 <= found.gap < 1e-6
    m = instance.num_servers // instance.servers_per_task
    assert found.server_price.shape == (instance.num_servers, m)
    assert found.task_price.shape == (instance.num_types, m)
    np.testing.assert_allclose(found.share.sum(axis=1), instance.servers_per_task, atol=1e-6)


def test_tighter_where_servers_differ():
    """Priority and Specialist: the bound takes away a third to a half of what OCC-UB leaves above the optimum."""
    for instance in (priority(0.5), specialist(0.5)):
        upper, best = occ_upper_bound(instance, exact_blocking(instance)), optimum(instance).reward
        assert level_bound(instance).reward < upper - 0.3 * (upper - best)


def test_exact_for_equal_servers():
    """Servers of equal scores: every work-conserving policy earns the same, and the bound is that."""
    instance = make_instance([[2.0] * 5, [1.0] * 5], geometric(7), load=0.6, mix=[1, 2])
    np.testing.assert_allclose(level_bound(instance).reward, optimum(instance).reward, rtol=1e-8)


def test_level_law_is_that_of_the_chain(solved):
    """The last entry is the blocking probability; with room enough, its binomial moments are those of unlimited servers."""
    instance, found = solved
    np.testing.assert_allclose(found.level_law[-1], exact_blocking(instance), rtol=1e-9)
    rate, finish = 0.3, 0.25
    law = levels._levels(40, rate, finish).law
    moments = np.array([1.0, *np.cumprod([rate * (1 - finish) ** j / (1 - (1 - finish) ** (j + 1)) for j in range(8)])])
    ours = [law @ comb(np.arange(41), j) for j in range(9)]
    np.testing.assert_allclose(ours, moments, rtol=1e-9)


def test_any_multipliers_give_a_bound(solved):
    """Weak duality: wrong prices only raise it."""
    instance, found = solved
    groups = equal_servers(instance.scores)
    size = np.array([len(members) for members in groups])
    worth = instance.scores[:, [members[0] for members in groups]]
    share = np.asarray(instance.arrival_rate) / instance.total_rate
    m = found.server_price.shape[1]
    chain = levels._levels(m, instance.total_rate, service_of(instance).finish[0])
    rng = np.random.default_rng(3)
    for scale in (0.0, 0.1, 1.0):
        free, task = scale * rng.normal(size=(len(groups), m + 1)), scale * rng.normal(size=(len(share), m))
        value, _ = levels._certify(worth * share[:, None], share, size, chain, instance.servers_per_task, free, task)
        assert value * instance.total_rate >= found.reward * (1 - 1e-9)


def test_policy_by_level_is_evaluated_state_by_state(solved):
    instance, _ = solved
    policy = level_policy(instance)
    assert policy.tier.ndim == 3 and policy.notes == ()
    lumped, apart = evaluate(instance, policy), evaluate(instance, policy, lumped=False)
    np.testing.assert_allclose([lumped.reward, lumped.blocking], [apart.reward, apart.blocking], rtol=1e-9)
    assert lumped.reward <= optimum(instance).reward * (1 + 1e-9)
    better = improve(instance, policy)
    assert better.reward >= lumped.reward * (1 - 1e-12)


def test_equal_tables_are_the_policy_itself(solved):
    """A policy by level that does not depend on it."""
    instance, found = solved
    for name in POLICIES:
        plain = build_policy(name, instance)
        order = strict_order(plain)
        if order is None:
            continue
        same = order_by_level(np.repeat(-order[None], found.server_price.shape[1], axis=0))
        np.testing.assert_allclose(evaluate(instance, same).reward, evaluate(instance, plain).reward, rtol=1e-9)


def test_prices_that_depend_on_the_state_pay_off():
    """Priority: at load 0.2 beyond the best fixed order, which is 87.8% of OCC-UB; at 0.3 shares decide between equals."""
    for load, least in ((0.2, 88.3), (0.3, 87.2)):
        instance = priority(load)
        bound = occ_upper_bound(instance, exact_blocking(instance))
        assert 100 * evaluate(instance, level_policy(instance)).reward / bound > least


def test_types_and_servers_in_any_order():
    instance = next(systems())
    rows, columns = np.random.default_rng(0).permutation(3), np.random.default_rng(1).permutation(4)
    other = make_instance(
        instance.scores[np.ix_(rows, columns)], geometric(6), load=instance.load, mix=np.array([3, 2, 1])[rows]
    )
    np.testing.assert_allclose(level_bound(other).reward, level_bound(instance).reward, rtol=1e-8)


def test_other_durations_are_refused_or_named():
    instance = make_instance([[1, 2], [2, 1]], deterministic(4), load=0.4)
    with pytest.raises(InputError, match="not geometric with one mean"):
        level_bound(instance)
    assert "geometric durations with the mean of all tasks, 4 steps" in level_policy(instance).notes[0]
    two = make_instance([[1, 2], [2, 1]], [geometric(4), geometric(6)], load=0.4)
    with pytest.raises(InputError, match="not geometric with one mean"):
        level_bound(two)


def test_too_large_is_refused():
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="variables, more than 40,000"):
        level_bound(make_instance(rng.random((40, 100)), geometric(99), load=0.5))


def test_journal_with_three_servers_a_task():
    instance = journal(0.3)
    found = levels.solve_levels(instance, 1 / instance.mean_duration[0])
    assert found.server_price.shape == (30, 10) and found.gap < 1e-4
    assert found.reward < occ_upper_bound(instance, float(found.level_law[-1]))
