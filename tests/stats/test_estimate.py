"""Intervals: formulas on small numbers, and how often they cover exactly known values."""

import busy_chain
import numpy as np
import pytest
from scipy.stats import binom, t

from lagjax.engine.run import simulate
from lagjax.gallery import specialist
from lagjax.lp import occ_bound
from lagjax.policies import build_policy, strict_order
from lagjax.stats import estimate, percent_of_bound, ratio_of_means

GROUPS, REPLICAS, ARRIVALS = 1000, 8, 300
FALSE_ALARM = 1e-6


def test_mean_and_student_interval():
    found = estimate([[1.0, 2.0, 3.0, 4.0], [5.0, 5.0, 5.0, 5.0]])
    np.testing.assert_allclose(found.mean, [2.5, 5.0])
    spread = np.sqrt(5 / 3 / 4)  # variance with n - 1
    np.testing.assert_allclose(found.ci95, [3.182446305284263 * spread, 0.0])  # t(3) at 97.5%
    wide = estimate([1.0, 2.0, 3.0, 4.0], confidence=0.99)
    assert wide.ci95 == pytest.approx(t.ppf(0.995, 3) * spread)


def test_integers_and_one_replica():
    assert estimate(np.array([1, 2], np.int32)).mean == 1.5
    alone = estimate([[2.0], [3.0]])
    assert alone.mean.tolist() == [2.0, 3.0]
    assert np.isnan(alone.ci95).all()


def test_percent_of_bound_is_the_linearised_ratio():
    rng = np.random.default_rng(0)
    reward, blocked = rng.uniform(1, 2, (3, 50)), rng.uniform(0, 0.3, 50)
    slope, at_zero = 0.7, 2.5

    def ratio(weights):
        return 100 * (reward @ weights) / (at_zero + slope * (blocked @ weights))

    equal = np.full(50, 1 / 50)
    values = percent_of_bound(reward, blocked, at_zero + slope * blocked.mean(), slope)
    assert values.shape == (3, 50)
    np.testing.assert_allclose(values.mean(axis=1), ratio(equal))
    # Its deviations are the derivatives of the ratio with respect to each replica's weight.
    for i in (0, 17, 49):
        step = 1e-6 * (np.eye(50)[i] - equal)
        slope_i = (ratio(equal + step) - ratio(equal - step)) / 2e-6
        np.testing.assert_allclose(values[:, i] - ratio(equal), slope_i, rtol=1e-6)


def test_ratio_of_means():
    """The ratio of the means, not the mean of the ratios; its intervals cover, for a denominator that varies as much."""
    values = ratio_of_means([[1.0, 2.0], [3.0, 0.0]], [1.0, 3.0])
    np.testing.assert_allclose(values.mean(axis=1), [0.75, 0.75])
    np.testing.assert_allclose(values, 0.75 + np.array([[0.125, -0.125], [1.125, -1.125]]))
    np.testing.assert_array_equal(ratio_of_means([2.0, 3.0], [2.0, 3.0]), 1.0)
    assert not np.isfinite(ratio_of_means([1.0, 2.0], [0.0, 0.0])).any()
    rng = np.random.default_rng(1)
    tasks = rng.poisson(200, (GROUPS, 64))
    lost = rng.binomial(tasks, 0.3)
    check_coverage(estimate(ratio_of_means(lost, tasks)), 0.3)
    check_coverage(estimate(ratio_of_means(tasks, rng.poisson(400, tasks.shape))), 0.5)
    with pytest.raises(AssertionError, match="intervals cover"):  # as if the divisor had no error
        check_coverage(estimate(tasks / rng.poisson(400, tasks.shape).mean(axis=1, keepdims=True)), 0.5)


@pytest.fixture(scope="module")
def runs():
    """Exact laws per policy, and simulated reward (P, GROUPS, REPLICAS) and blocking (GROUPS, REPLICAS)."""
    instance = specialist(0.8)
    policies = [build_policy(name, instance) for name in ("lag", "greedy")]
    warmup = int(30 * 10 * instance.total_rate)
    counts = simulate(instance, policies, arrivals=ARRIVALS, warmup=warmup, replicas=GROUPS * REPLICAS, seed=99)
    reward = np.einsum("vr,pvrb->pb", instance.scores, counts.served) * instance.total_rate / ARRIVALS
    exact = []
    for policy in policies:
        order = strict_order(policy)
        tiers = policy.tier if order is None else order
        exact.append(busy_chain.geometric_chain(instance, tiers, policy.weight, mean=10))
    blocked = counts.blocked.sum(axis=0) / ARRIVALS
    return instance, exact, reward.reshape(2, GROUPS, REPLICAS), blocked.reshape(GROUPS, REPLICAS)


def check_coverage(estimates, value):
    """Of 1,000 independent intervals, as many cover as 95% (within 0.5%, for skewed replicas) would."""
    covered = int(np.sum(np.abs(estimates.mean - value) <= estimates.ci95))
    least = binom.ppf(FALSE_ALARM / 2, GROUPS, 0.945)
    most = binom.isf(FALSE_ALARM / 2, GROUPS, 0.955)
    assert least <= covered <= most, f"{covered} of {GROUPS} intervals cover {value}"


def test_reward_and_blocking_intervals_cover(runs):
    _, exact, reward, blocked = runs
    for p in range(2):
        check_coverage(estimate(reward[p]), exact[p].reward)
    check_coverage(estimate(blocked), exact[0].blocking)
    # and of the paired difference of two policies on the same arrivals
    check_coverage(estimate(reward[0] - reward[1]), exact[0].reward - exact[1].reward)


def test_percent_of_bound_intervals_cover(runs):
    """Each group uses the bound at its own measured blocking; the truth is at the exact one."""
    instance, exact, reward, blocked = runs
    bounds = [occ_bound(instance, float(group.mean())) for group in blocked]
    percent = np.stack([percent_of_bound(reward[:, g], blocked[g], *bounds[g]) for g in range(GROUPS)], axis=1)
    truth = [100 * e.reward / occ_bound(instance, e.blocking)[0] for e in exact]
    for p in range(2):
        check_coverage(estimate(percent[p]), truth[p])
    check_coverage(estimate(percent[0] - percent[1]), truth[0] - truth[1])
    # What the delta method takes into account matters here: intervals that leave it out miss the rate.
    plain = 100 * reward[0] / np.array(bounds)[:, :1]
    with pytest.raises(AssertionError, match="intervals cover"):
        check_coverage(estimate(plain), truth[0])
