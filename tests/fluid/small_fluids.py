"""Random small fluid systems and states of every kind."""

import numpy as np

from lagjax.fluid import fluid_system
from lagjax.instance import make_instance
from lagjax.policies import make_policy


def random_law(rng, longest):
    law = rng.random(longest) * (rng.random(longest) < 0.7)
    law[-1] += 0.1
    return law / law.sum()


def random_pair(seed, rule, types=3, servers=5, longest=4, laws=2, servers_per_task=1, tiers=3):
    """An instance and a policy: `laws` laws among the types, tiers with ties, weights over two orders of magnitude."""
    rng = np.random.default_rng(seed)
    of_law = [random_law(rng, longest) for _ in range(laws)]
    service = [of_law[v % laws] for v in range(types)]
    rate = rng.uniform(0.2, 1, types)
    mean = max(law @ np.arange(1, longest + 1) for law in of_law)
    most = min(1.0, 0.9 * (servers - servers_per_task) / (servers_per_task * mean))
    instance = make_instance(
        rng.random((types, servers)), service, servers_per_task=servers_per_task, arrival_rate=rate * most / rate.sum()
    )
    tier = rng.integers(0, tiers, (types, servers))
    return instance, make_policy("random", tier, 10 ** rng.uniform(-2, 0, tier.shape), rule)


def random_fluid(seed, rule, **options):
    return fluid_system(*random_pair(seed, rule, **options))


def random_states(rng, count, servers, stages):
    """(count, servers, stages) rows summing to 1: Dirichlet, vertices, mostly free, nearly all busy, free fractions on a grid."""
    states = np.concatenate([rng.dirichlet(np.full(stages, a), (count, servers)) for a in (0.2, 1, 5)])[::3][:count]
    kind = np.arange(count) % 6
    vertices = np.eye(stages)[rng.integers(0, stages, (count, servers))]
    states[kind == 1] = vertices[kind == 1]
    states[kind == 2, :, 0] *= 0.05
    states[kind >= 4, :, 0] = rng.uniform(0.3, 1, states[kind >= 4, :, 0].shape)
    states[kind == 3, :, 0] = rng.integers(0, 5, states[kind == 3, :, 0].shape) / 4
    rest = states[..., 1:].sum(axis=-1, keepdims=True)
    even = np.full_like(states[..., 1:], 1 / (stages - 1))
    busy = np.divide(states[..., 1:], rest, out=even, where=rest > 0)
    states[..., 1:] = busy * (1 - states[..., :1])
    return states
