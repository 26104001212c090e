"""The limit of a race: against bisection, a race of many copies, tiers in order, differentiable, in both precisions."""

import jax
import jax.numpy as jnp
import numpy as np
import plain_fluid
import pytest
from problems import random_problems

from lagjax.allocate import race_limit, waterfill
from lagjax.allocate.tiers import budget_ends

jitted = jax.jit(race_limit)
pytestmark = pytest.mark.rounding


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("servers", [1, 2, 5, 12])
def test_against_bisection(servers):
    problems = random_problems(servers, 200, seed=servers)
    budget, capacity, _, _ = problems
    amount = np.asarray(jitted(*problems))
    assert amount.dtype == np.float64
    assert np.all(amount >= 0) and np.all(amount <= capacity)
    np.testing.assert_allclose(amount.sum(axis=0), np.minimum(budget, capacity.sum(axis=0)), rtol=0, atol=1e-13)
    for b in range(200):
        plain = plain_fluid.race(budget[b], *(x[:, b].tolist() for x in problems[1:]))
        np.testing.assert_allclose(amount[:, b], plain, rtol=0, atol=1e-13)


def test_one_time_for_a_tier_and_tiers_in_order():
    """The definition: within the tier in which the budget ends, log(c / (c - u)) / w is one number."""
    budget, capacity, tier, weight = random_problems(6, 2000, seed=3)
    amount = np.asarray(jitted(budget, capacity, tier, weight))
    lower = tier[:, None] < tier[None]
    assert not np.any(lower & (capacity - amount > 1e-12)[:, None] & (amount > 1e-12)[None])
    partly = (capacity - amount > 1e-6) & (amount > 1e-6)
    time = -np.log1p(-np.divide(amount, capacity, out=np.zeros_like(amount), where=partly)) / weight
    both = partly[:, None] & partly[None]
    assert both.sum() > 5000
    np.testing.assert_allclose((both * time[:, None])[both], (both * time[None])[both], rtol=1e-7)


def test_a_race_of_many_copies():
    """n copies of each server with exponential clocks: the b n earliest win. Within 6 standard deviations (1e-8 in all)."""
    rng = np.random.default_rng(4)
    n, budget = 100_000, 1.3
    capacity, weight = np.array([0.9, 0.5, 0.8, 0.3]), np.array([1.0, 3.0, 0.2, 0.7])
    copies = np.repeat(np.arange(4), (capacity * n).round().astype(int))
    rings = rng.exponential(size=len(copies)) / weight[copies]
    winners = np.bincount(copies[np.argsort(rings)[: int(budget * n)]], minlength=4) / n
    limit = jitted(np.array([budget]), capacity[:, None], np.zeros((4, 1), int), weight[:, None])[:, 0]
    np.testing.assert_allclose(winners, limit, rtol=0, atol=6 * np.sqrt(0.25 / n))


def test_equal_weights_share_in_proportion_to_capacity():
    budget, capacity, _, _ = random_problems(6, 600, seed=5)
    amount = jitted(budget, capacity, np.zeros((6, 1), int), np.full((6, 1), 0.3))
    total = capacity.sum(axis=0)
    share = np.divide(np.minimum(budget, total), total, out=np.zeros_like(total), where=total > 0)
    np.testing.assert_allclose(amount, capacity * share, rtol=0, atol=1e-14)


def test_weights_far_apart_fill_as_tiers_do():
    """Weights 60 orders of magnitude apart: the heavier server goes first."""
    rng = np.random.default_rng(6)
    capacity = rng.random((3, 200))
    budget = rng.uniform(0, 1, 200) * capacity.sum(axis=0)
    weight = np.array([[1.0], [1e-60], [1e-120]])
    amount = jitted(budget, capacity, np.zeros((3, 1), int), weight)
    first = waterfill(budget, capacity, np.arange(3)[:, None], np.ones((3, 1)))
    np.testing.assert_allclose(amount, first, rtol=0, atol=1e-12)


def test_only_ratios_of_weights_matter():
    budget, capacity, tier, weight = random_problems(5, 300, seed=7)
    here = jitted(budget, capacity, tier, weight)
    for scale in (1e-8, 1e8):
        np.testing.assert_allclose(jitted(budget, capacity, tier, scale * weight), here, rtol=0, atol=1e-13)


def test_one_order_for_the_batch_is_the_order_per_lane():
    budget, capacity, tier, weight = random_problems(7, 500, seed=8)
    for lane in range(5):
        one = tier[:, lane : lane + 1], weight[:, lane : lane + 1]
        per_lane = [np.broadcast_to(x, capacity.shape) for x in one]
        np.testing.assert_allclose(
            jitted(budget, capacity, *one), jitted(budget, capacity, *per_lane), rtol=0, atol=1e-13
        )


def test_where_a_budget_ends():
    """Both orders of computation, on whole numbers, where a sum is exact: full before, one tier partly, none after."""
    rng = np.random.default_rng(9)
    capacity = rng.integers(0, 4, (6, 400))
    budget = rng.integers(0, 14, 400)
    tier = rng.integers(0, 4, (6, 1))
    one = budget_ends(budget, capacity, tier)
    lanes = budget_ends(budget, capacity, np.broadcast_to(tier, capacity.shape))
    upto = np.stack([np.where(tier <= t, capacity, 0).sum(axis=0) for t in range(4)])  # (T, lanes)
    fits = np.take_along_axis(upto, np.broadcast_to(tier, capacity.shape), axis=0) <= budget
    ends = np.array([next((t for t in range(4) if upto[t, b] > budget[b]), 99) for b in range(400)])
    for found in (one, lanes):
        np.testing.assert_array_equal(found.full, fits)
        np.testing.assert_array_equal(found.partly, tier == ends)
        expected = np.where(ends < 99, budget - np.where(fits, capacity, 0).sum(axis=0), 0)
        np.testing.assert_array_equal(found.left, expected)


def test_derivatives_are_finite_differences():
    rng = np.random.default_rng(10)
    servers, lanes = 5, 60
    tier = rng.integers(0, 3, (servers, lanes))
    point = [np.empty(0), rng.uniform(0.1, 1, (servers, lanes)), rng.uniform(0.2, 1, (servers, lanes))]
    point[0] = rng.uniform(0.1, 1.1, lanes) * point[1].sum(axis=0)
    toward = rng.normal(size=(servers, lanes))

    @jax.jit
    def value(budget, capacity, weight):
        return jnp.sum(race_limit(budget, capacity, tier, weight) * toward, axis=0)

    gradients = jax.jit(jax.grad(lambda *p: jnp.sum(value(*p)), argnums=(0, 1, 2)))(*point)
    tangent = jax.jit(lambda direction: jax.jvp(value, tuple(point), direction)[1])
    step, here = 1e-6, np.asarray(value(*point))
    for which, shape in enumerate(((), (servers,), (servers,))):
        for r in np.ndindex(shape):
            direction = [np.zeros_like(x) for x in point]
            direction[which][r] = 1
            ahead, behind = (
                (np.asarray(value(*(x + t * y for x, y in zip(point, direction, strict=True)))) - here) / t
                for t in (step, -step)
            )
            smooth = np.abs(ahead - behind) < 1e-4  # the budget does not move from one tier to the next
            assert smooth.mean() > 0.9
            found = np.asarray(tangent(tuple(direction)))
            np.testing.assert_allclose(found[smooth], (ahead + behind)[smooth] / 2, rtol=0, atol=1e-7)
            np.testing.assert_allclose(gradients[which][r], found, rtol=0, atol=1e-12)


def test_derivatives_are_finite_at_the_ends():
    """No budget, no capacity, a tier exactly used up or nearly, one server."""
    gradient = jax.jit(jax.grad(lambda t, *p: jnp.sum(race_limit(p[0], p[1], t, p[2]) ** 2), argnums=(1, 2, 3)))
    cases = [(0.0, [0.5, 0.5]), (1.0, [0.0, 0.0]), (1.0, [0.5, 0.5]), (0.5, [0.5, 0.5]), (1 - 1e-16, [0.5, 0.5])]
    for budget, capacity in cases:
        capacity = jnp.asarray(capacity)[:, None]
        for tier in (np.zeros(capacity.shape, int), np.arange(len(capacity))[:, None]):
            found = gradient(tier, jnp.asarray([budget]), capacity, jnp.ones(capacity.shape))
            assert all(np.all(np.isfinite(x)) for x in found), (budget, capacity)


def test_single_precision():
    """Shares err by less than 1e-5, whatever the weights; the dtype is kept."""
    budget, capacity, tier, weight = random_problems(8, 2000, seed=11)
    exact = np.asarray(jitted(budget, capacity, tier, weight))
    single = jitted(*(np.float32(x) for x in (budget, capacity)), np.int32(tier), np.float32(weight))
    assert single.dtype == np.float32
    inside = np.arange(2000) % 7 > 1  # budgets that end within a tier: rounding does not move them to another
    np.testing.assert_allclose(single[:, inside], exact[:, inside], rtol=0, atol=1e-5)
    np.testing.assert_allclose(np.sum(single, axis=0), np.minimum(budget, capacity.sum(axis=0)), rtol=0, atol=1e-5)
