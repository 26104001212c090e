"""One step of policy improvement: never worse, and nearly all the way to the optimum where there is room."""

import numpy as np
import pytest

from lagjax.durations import geometric
from lagjax.errors import InputError
from lagjax.exact import evaluate, improve, optimum
from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.policies import POLICIES, build_policy, make_policy

SMALL = {
    "geometric": ([[1.8, 1, 0.9], [8, 0.3, 0.2]], geometric(4), 1),
    "two means": ([[1.8, 1], [8, 0.2]], [geometric(6), geometric(2)], 1),
    "bounded": ([[1.8, 1], [8, 0.2]], [[0, 0, 1], [0.5, 0.5]], 1),
    "pairs": ([[3, 1, 1, 0.2], [6, 0.5, 0.4, 0.1]], geometric(4), 2),
}


@pytest.mark.parametrize("name", SMALL)
def test_between_its_policy_and_the_optimum(name):
    scores, service, k = SMALL[name]
    instance = make_instance(scores, service, servers_per_task=k, load=0.45, mix=[2, 1])
    best, better = optimum(instance).reward, 0
    for policy in (build_policy(name, instance) for name in POLICIES):
        found = improve(instance, policy)
        value = evaluate(instance, policy)
        np.testing.assert_allclose([found.base_reward, found.blocking], [value.reward, value.blocking], rtol=1e-9)
        assert found.base_reward * (1 - 1e-12) <= found.reward <= best * (1 + 1e-9)
        better += found.reward > found.base_reward * (1 + 1e-6)
    assert better, "choose a system in which some policy can be improved"


def test_the_optimum_is_not_improved():
    """A fixed order that is optimal stays as it is, and its bias then solves Bellman's equation."""
    instance = priority(0.5)
    found = improve(instance, build_policy("lag", instance))
    np.testing.assert_allclose([found.reward, found.base_reward], optimum(instance).reward, rtol=1e-9)


@pytest.mark.parametrize("selection", ["vertex", "canonical"])
def test_priority_at_load_two_tenths(selection):
    instance = priority(0.2)
    found, best = improve(instance, build_policy("lag", instance, selection)), optimum(instance).reward
    closed = (found.reward - found.base_reward) / (best - found.base_reward)
    assert closed > {"vertex": 0.99, "canonical": 0.79}[selection]


def test_every_task_is_served_if_it_can_be():
    instance = priority(0.3)
    found = improve(instance, build_policy("greedy", instance))
    can = found.chain.free.sum(axis=1) >= 1
    assert np.array_equal(found.action >= 0, np.broadcast_to(can, found.action.shape))
    for v, row in enumerate(found.action[:, can]):
        assert np.all(found.chain.free[can] >= found.chain.teams[row]), v


def test_a_policy_of_another_shape():
    with pytest.raises(InputError, match="policy 'small' has shape"):
        improve(priority(), make_policy("small", [[0, 1], [1, 0]]))
