"""Simulated rewards, blocking and assignment rates against exact stationary laws of small systems."""

import busy_chain
import numpy as np
import pytest
from scipy.stats import t as student_t

from lagjax.durations import geometric
from lagjax.engine.run import simulate
from lagjax.gallery import priority, specialist
from lagjax.instance import make_instance
from lagjax.policies import build_policy, make_policy, strict_order

FALSE_ALARM = 1e-6  # of all comparisons in this file together
CASES = 8
NAMES = ("lag", "greedy", "random", "alg-sc-lp")


def tiny(k, service, load):
    scores = np.random.default_rng(7).integers(0, 4, (3, 4)) / 2
    return make_instance(scores, service, servers_per_task=k, load=load, mix=[1, 2, 3])


SYSTEMS = {
    "priority 0.3": (priority(0.3), 20),
    "priority 0.8": (priority(0.8), 20),
    "specialist 0.2": (specialist(0.2), 10),
    "specialist 0.8": (specialist(0.8), 10),
    "pairs": (tiny(2, geometric(2.5), 0.5), 2.5),
    "unequal means": (tiny(1, [geometric(1.5), geometric(4), geometric(2)], 0.5), [1.5, 4, 2]),
    "bounded": (tiny(1, [[0.2, 0.5, 0.3], [0, 0, 1], [0.9, 0.1]], 0.45), None),
    "bounded pairs": (tiny(2, [[0.2, 0.5, 0.3], [0, 0, 1], [0.9, 0.1]], 0.5), None),
}
assert len(SYSTEMS) == CASES


def weighted(instance):
    """A race of unequal weights, whatever the program's optimum makes of ALG-SC-LP."""
    rng = np.random.default_rng(3)
    shape = instance.scores.shape
    return make_policy("weighted", rng.integers(0, 2, shape), rng.uniform(0.05, 1, shape))


@pytest.mark.parametrize("name", SYSTEMS)
def test_simulation_equals_the_stationary_law(name):
    instance, mean = SYSTEMS[name]
    policies = [build_policy(p, instance) for p in NAMES] + [weighted(instance)]
    replicas, arrivals = 1000, 1024
    # 30 mean service times from empty: what is left of the start is below e^-30 R
    warmup = int(30 * instance.mean_duration.max() * instance.total_rate) + 1
    counts = simulate(instance, policies, arrivals=arrivals, warmup=warmup, replicas=replicas, seed=12)
    per_step = instance.total_rate / arrivals
    comparisons = CASES * len(policies) * (2 + instance.scores.size)
    sigmas = student_t.isf(FALSE_ALARM / comparisons / 2, replicas - 1)
    for policy, served in zip(policies, counts.served, strict=True):
        order = strict_order(policy)
        tiers = policy.tier if order is None else order
        if mean is None:
            exact = busy_chain.remaining_chain(instance, tiers, policy.weight)
        else:
            exact = busy_chain.geometric_chain(instance, tiers, policy.weight, mean=mean)
        rates = served * per_step
        for sample, value in (
            (np.einsum("vr,vrb->b", instance.scores, rates), exact.reward),
            (counts.blocked.sum(axis=0) / arrivals, exact.blocking),
            (rates, exact.rate),
        ):
            # Rates below 1,000 counts in all are not normal enough: a count of Poisson tails is allowed for.
            rare = np.where(np.asarray(value) / per_step * replicas < 1000, 60 * per_step / replicas, 0)
            error = sample.std(axis=-1, ddof=1) / np.sqrt(replicas)
            assert np.all(np.abs(sample.mean(axis=-1) - value) <= sigmas * error + rare + 1e-8), policy.name
            assert np.all((np.asarray(value) > 1e-12) | (sample.max(axis=-1) == 0))
