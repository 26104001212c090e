"""Intervals of simulations cover the exact values at their stated rate."""

import numpy as np
import pytest
from scipy.stats import binom

from lagjax.engine.run import simulate
from lagjax.exact import evaluate, exact_blocking
from lagjax.gallery import priority, specialist
from lagjax.lp import occ_upper_bound
from lagjax.policies import POLICIES, build_policy
from lagjax.stats import estimate, percent_of_bound
from lagjax.studies.measure import arrivals_and_warmup, measure

FALSE_ALARM = 1e-6  # of this whole file
LOADS = tuple(i / 10 for i in range(1, 9))
SEEDS = 30
ARRIVALS, REPLICAS = 400, 128
NAMES = tuple(POLICIES)


@pytest.fixture(scope="module")
def missed():
    """(quantity, policy, runs): whether the interval of a run missed; no two runs share a seed."""
    out = []
    for gallery in (priority, specialist):
        for load in LOADS:
            instance = gallery(load)
            policies = [build_policy(name, instance) for name in NAMES]
            exact = np.array([evaluate(instance, policy).reward for policy in policies])
            percent = 100 * exact / occ_upper_bound(instance, exact_blocking(instance))
            _, warmup = arrivals_and_warmup(instance, None)
            for _ in range(SEEDS):
                counts = simulate(
                    instance, policies, arrivals=ARRIVALS, warmup=warmup, replicas=REPLICAS, seed=len(out)
                )
                cell = measure(instance, policies, counts)
                shares = percent_of_bound(cell.reward, cell.blocked, cell.occ_ub, cell.occ_slope)
                found = (estimate(cell.reward), exact), (estimate(shares), percent)
                out.append([np.abs(e.mean - truth) > e.ci95 for e, truth in found])
    return np.moveaxis(np.array(out), 0, -1)


@pytest.mark.parametrize("policy", range(len(NAMES)), ids=NAMES)
@pytest.mark.parametrize("quantity", [0, 1], ids=["reward", "percent"])
def test_a_95_percent_interval_misses_one_time_in_twenty(missed, quantity, policy):
    """Misses over 2 systems x 8 loads x 30 seeds are Binomial(480, 0.05), in both directions.

    The interval is Student's over replicas of 400 arrivals, whose rewards are near enough to normal.
    """
    misses = missed[quantity, policy]
    assert misses.size == 2 * len(LOADS) * SEEDS
    tail = FALSE_ALARM / (2 * 2 * len(NAMES))
    least, most = binom.ppf(tail, misses.size, 0.05), binom.isf(tail, misses.size, 0.05)
    assert least <= misses.sum() <= most
