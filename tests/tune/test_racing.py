"""Races on synthetic rewards with known means: how often the choice is false, and how often a better candidate is found."""

import numpy as np
import pytest
from scipy.stats import binom

from lagjax.tune.racing import race

RATE = 0.05
RACES = 1000
REPLICAS = 64


def sampler(seed, means):
    """Rewards that share most of their noise, as common random numbers make them."""
    rng = np.random.default_rng(seed)

    def sample(arms, stage):
        shape = (1 + len(arms), REPLICAS * 2**stage)
        own = rng.standard_normal(shape) + 3 * rng.standard_normal(shape[1])
        return 10 + own + np.r_[0.0, np.take(means, arms)][:, None]

    return sample


def races(means, count=RACES):
    return [race(sampler(seed, means), len(means), RATE).winner for seed in range(count)]


@pytest.mark.parametrize(("means", "least"), [(np.zeros(12), 0.2), ([0.0, -0.1, -0.01] * 8, 0.05)])
def test_false_choices_are_as_rare_as_stated(means, least):
    """No candidate is better. False alarm of the upper limit: 1e-6. The lower limit shows that the bound is not empty."""
    chosen = sum(winner is not None for winner in races(np.array(means)))
    assert chosen <= binom.ppf(1 - 1e-6, RACES, RATE)
    assert chosen >= least * RATE * RACES / 2


def test_the_best_of_many_is_found_and_a_worse_one_is_not():
    """One good candidate among bad ones, 10 standard errors above; another 3 above."""
    means = np.full(20, -0.5)
    means[[4, 11]] = 10 * np.sqrt(2 / REPLICAS) * np.array([0.3, 1.0])
    assert set(races(means, 300)) == {11}


def test_equal_rewards_change_nothing():
    done = race(lambda arms, stage: np.ones((1 + len(arms), 16)) * np.arange(16), 3, RATE)
    assert done.winner is None and np.all(done.gain == 0)
    assert race(lambda arms, stage: np.ones((1, 4)), 0, RATE).winner is None


def test_halves_stay_and_see_more():
    seen = []

    def sample(arms, stage):
        seen.append((stage, list(arms)))
        noise = np.random.default_rng(stage).standard_normal((1, 8))
        return np.r_[0.0, np.array(arms) / 1e3][:, None] + 100 * noise * np.arange(1 + len(arms))[:, None]

    race(sample, 8, RATE)
    assert [len(arms) for _, arms in seen] == [8, 4, 2]
    assert set(seen[2][1]) < set(seen[1][1]) < set(seen[0][1])
