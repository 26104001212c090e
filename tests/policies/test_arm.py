"""The single arm: its value by brute force, and the prices of indifference by closed form and by scan."""

import itertools

import numpy as np
import pytest

from lagjax.policies.arm import arm_value, indifference_prices


def brute_force(price, scores, rate, duration):
    best = 0.0
    for chosen in itertools.product((False, True), repeat=len(scores)):
        a = np.array(chosen)
        best = max(best, (rate * (scores - price))[a].sum() / (1 + (rate * duration)[a].sum()))
    return best


def random_arm(rng, types):
    scores = rng.random(types) if rng.random() < 0.6 else rng.integers(0, 4, types) / 3
    return scores, 10.0 ** rng.uniform(-3, -0.5, types), 10.0 ** rng.uniform(0, 3, types)


def test_value_is_the_best_set_and_the_root():
    rng = np.random.default_rng(1)
    for _ in range(200):
        arm = random_arm(rng, int(rng.integers(1, 8)))
        price = rng.uniform(-2, 1.2)
        q = arm_value(price, *arm)
        assert q == pytest.approx(brute_force(price, *arm), rel=1e-10, abs=1e-14)
        scores, rate, duration = arm
        assert q == pytest.approx((rate * np.maximum(scores - price - duration * q, 0)).sum(), rel=1e-8, abs=1e-12)


def test_closed_form_under_equal_durations():
    rng = np.random.default_rng(2)
    for _ in range(100):
        scores, rate, _ = random_arm(rng, int(rng.integers(1, 12)))
        duration = 10.0 ** rng.uniform(0, 3)
        closed = scores - duration * (rate * np.maximum(scores - scores[:, None], 0)).sum(1)
        prices = indifference_prices(scores, rate, np.full(scores.shape, duration))
        assert all(p.size == 1 for p in prices)
        np.testing.assert_allclose(np.concatenate(prices), closed, atol=1e-9 * (1 + np.abs(closed).max()))


def test_every_crossing_is_found():
    """Against a dense scan of s - ell - E[D] q(ell), for arms of very unequal durations."""
    rng = np.random.default_rng(3)
    counts = set()
    for _ in range(60):
        scores, rate, duration = random_arm(rng, int(rng.integers(2, 6)))
        roots = indifference_prices(scores, rate, duration)
        low = min((r[0] for r in roots if r.size), default=0.0)
        grid = np.sort(
            np.concatenate([np.linspace(min(low, -1) - 1, 2, 1501), -(4.0 ** np.arange(1, 15)) * (1 + abs(low))])
        )
        value = np.array([arm_value(x, scores, rate, duration) for x in grid])
        for v, prices in enumerate(roots):
            worth = scores[v] - grid - duration[v] * value
            for x in prices:
                scale = abs(x) + duration[v] * arm_value(x, scores, rate, duration) + 1
                assert abs(scores[v] - x - duration[v] * arm_value(x, scores, rate, duration)) <= 1e-8 * scale
            inside = np.zeros(grid.size, dtype=bool)
            if prices.size == 1:
                inside = grid < prices[0]
            elif prices.size == 2:
                inside = (grid > prices[0]) & (grid < prices[1])
            clear = np.abs(worth) > 1e-7 * (np.abs(grid) + duration[v] * value + 1)
            np.testing.assert_array_equal((worth > 0)[clear], inside[clear])
            counts.add(prices.size)
    assert counts == {0, 1, 2}


def test_a_long_task_is_accepted_only_between_two_prices():
    # Short tasks: s = 1, D = 1, rate 0.9. Long: s = 2, D = 10. At ell = 0, q = 0.9 / 1.9, 2 < 10 q: refused.
    # Near ell = 1 short ones are worth nothing and 2 - ell > 0: accepted. Far below, refused: 9 / 1.9 > 1.
    rate, duration, scores = np.array([0.9, 0.05]), np.array([1.0, 10.0]), np.array([1.0, 2.0])
    short, long = indifference_prices(scores, rate, duration)
    # lower end: 2 - ell = 10 * 0.9 (1 - ell) / 1.9; the upper one is the price equal to its score
    np.testing.assert_allclose(long, [(9 / 1.9 - 2) / (9 / 1.9 - 1), 2.0], atol=1e-12)
    assert short.size == 1
