"""Rewards of many policies on one chain against one policy on one chain."""

import numpy as np
import pytest

from lagjax.durations import geometric
from lagjax.exact import evaluate
from lagjax.exact.groups import single_tiers
from lagjax.exact.many import is_small, tier_rewards
from lagjax.gallery import journal, low_rank, priority, specialist, unfriendly
from lagjax.instance import make_instance
from lagjax.policies import POLICIES, build_policy

SYSTEMS = {
    "priority": priority(0.3),
    "two laws": make_instance([[1.8, 1, 2], [8, 0.2, 3]], [geometric(6), geometric(2)], load=0.5),
    "bounded": make_instance([[1.8, 1, 2], [8, 0.2, 3]], [[0, 0, 1], [0.5, 0.5]], load=0.5),
    "pairs": make_instance([[3, 1, 1, 0.2], [6, 0.5, 0.4, 0.1]], geometric(4), servers_per_task=2, load=0.4),
}


@pytest.mark.parametrize("name", SYSTEMS)
def test_the_same_as_one_by_one(name):
    instance = SYSTEMS[name]
    reward = tier_rewards(instance)
    for policy in [build_policy(name, instance) for name in POLICIES]:
        np.testing.assert_allclose(reward(*single_tiers(policy)), evaluate(instance, policy).reward, rtol=1e-11)


def test_only_small_systems():
    assert is_small(specialist()) and is_small(priority())
    for instance in (low_rank(), unfriendly(), journal()):
        assert not is_small(instance) and tier_rewards(instance) is None
    assert tier_rewards(make_instance([[1, 2, 3.0]], [0, 0, 1], arrival_rate=[0.5])) is not None
    certain = make_instance([[1.0, 2], [2, 1]], [0.5, 0.5], arrival_rate=[0.5, 0.5])
    assert is_small(certain) and tier_rewards(certain) is None  # an arrival at every step
