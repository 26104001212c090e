"""Random budgets, capacities, tiers and weights of every kind."""

import numpy as np


def random_problems(servers, lanes, seed):
    """Budgets from none to more than there is, tiers and weights with ties, empty and equal capacities."""
    rng = np.random.default_rng(seed)
    capacity = rng.random((servers, lanes)) * (rng.random((servers, lanes)) < 0.8)
    capacity[:, ::3] = rng.integers(0, 4, capacity[:, ::3].shape) / 4
    tier = rng.integers(0, rng.integers(1, servers + 1, lanes), (servers, lanes))
    weight = 10 ** rng.uniform(-3, 0, (servers, lanes))
    weight[:, ::2] = rng.integers(1, 4, weight[:, ::2].shape)
    budget = capacity.sum(axis=0) * rng.uniform(0, 1.2, lanes)
    budget[::7] = 0
    budget[1::7] = capacity.sum(axis=0)[1::7]
    budget[2::7] = np.cumsum(capacity, axis=0)[servers // 2, 2::7]
    return budget, capacity, tier, weight
