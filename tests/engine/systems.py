"""Small systems and policies of every kind, for the tests of the engine."""

import numpy as np

from lagjax.instance import make_instance
from lagjax.policies import make_policy
from lagjax.policies.table import order_by_level


def system(types, servers, k, d, seed=0):
    """Random scores and a different duration law for every type, all reaching up to d steps."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(0, 4, (types, servers)) / 4
    laws = rng.dirichlet(np.full(d, 0.5), types)
    top = k / servers * (laws @ np.arange(1, d + 1)).min()  # at one arrival a step
    load = min(0.8 * top, 0.75 * (1 - k / servers))
    return make_instance(scores, laws, servers_per_task=k, load=load, mix=rng.uniform(0.5, 2, types))


def every_kind(instance, seed=0):
    """A strict order, an even race, a weighted race (weights whose float32 sums are exact), and orders by running tasks."""
    rng = np.random.default_rng(seed)
    shape = instance.scores.shape
    tier = rng.integers(0, 3, shape)
    tier[0] = 0  # one tier of all servers
    weight = rng.integers(1, 9, shape) / 8
    weight[:, 0] = 1
    return [
        make_policy("strict", np.argsort(rng.random(shape), axis=1)),
        make_policy("even", tier),
        make_policy("weighted", tier // 2, np.where(tier // 2 == 1, 1.0, weight)),
        order_by_level(rng.random((instance.num_servers // instance.servers_per_task, *shape)), "by level"),
    ]
