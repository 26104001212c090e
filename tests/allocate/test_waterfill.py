"""Waterfill: against bisection and the printed definition, Lipschitz, a fixed point at the optimum, differentiable."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import plain_allocation
import pytest
from problems import random_problems

from lagjax.allocate import waterfill
from lagjax.gallery import GALLERY
from lagjax.instance import make_instance
from lagjax.lp import solve_occ
from lagjax.policies.lag import lag

jitted = jax.jit(waterfill)
pytestmark = pytest.mark.rounding


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@pytest.mark.parametrize("servers", [1, 2, 5, 12])
def test_against_a_plain_walk(servers):
    problems = random_problems(servers, 600, seed=servers)
    amount = np.asarray(jitted(*problems))
    budget, capacity, _, _ = problems
    assert amount.dtype == np.float64
    assert np.all(amount >= 0) and np.all(amount <= capacity + 1e-15)
    np.testing.assert_allclose(amount.sum(axis=0), np.minimum(budget, capacity.sum(axis=0)), atol=1e-13)
    for b in range(600):
        plain = plain_allocation.waterfill(budget[b], *(x[:, b].tolist() for x in problems[1:]))
        np.testing.assert_allclose(amount[:, b], plain, atol=1e-12)


def test_tiers_fill_in_order_and_shares_follow_weights():
    """The definition itself: no server gets anything while a lower tier has room, and one theta serves a tier."""
    budget, capacity, tier, weight = random_problems(6, 2000, seed=3)
    amount = np.asarray(jitted(budget, capacity, tier, weight))
    room = capacity - amount > 1e-12
    used = amount > 1e-12
    lower = tier[:, None] < tier[None]
    assert not np.any(lower & room[:, None] & used[None])
    theta = amount / weight
    same = tier[:, None] == tier[None]
    # a server with room is at theta; nobody of its tier is above it
    above = theta[None] > theta[:, None] * (1 + 1e-12) + 1e-12
    assert not np.any(same & room[:, None] & above)


def lag_problem(index, weight):
    """The LAG policy of given indices and weights (V, R), whatever program they would solve."""
    instance = make_instance(np.ones(index.shape), [1.0], arrival_rate=np.full(len(index), 0.5 / len(index)))
    solution = dataclasses.replace(solve_occ(instance), index=index, tie_weight=weight)
    return lag(instance, solution)


def test_lag_is_the_three_stages_of_the_definition():
    rng = np.random.default_rng(5)
    types, servers, lanes = 40, 7, 25
    index = rng.integers(-2, 3, (types, servers)) / 4
    weight = rng.integers(0, 4, (types, servers)) / 3
    policy = lag_problem(index, weight)
    assert policy.rule == "capped"
    capacity = rng.random((types, servers, lanes)) * (rng.random((types, servers, lanes)) < 0.8)
    budget = rng.uniform(0, 6, (types, lanes))
    full = (
        np.broadcast_to(policy.tier[:, :, None], capacity.shape),
        np.broadcast_to(policy.weight[:, :, None], capacity.shape),
    )
    amount = np.asarray(jitted(budget, capacity, *full))
    for v in range(types):
        for b in range(lanes):
            literal = plain_allocation.three_stages(budget[v, b], capacity[v, :, b], index[v], weight[v])
            np.testing.assert_allclose(amount[v, :, b], literal, atol=1e-12)


def test_lipschitz_in_the_capacities():
    """Lemma 4.3: a change of the capacities moves the amounts by at most 4 times its l1 norm."""
    rng = np.random.default_rng(6)
    servers, lanes = 8, 20000
    index = rng.integers(-1, 2, (1, servers)) / 2
    worst = 0
    for _ in range(6):
        policy = lag_problem(index, rng.integers(0, 5, (1, servers)) / 4)
        tier, weight = (np.broadcast_to(x[0][:, None], (servers, lanes)) for x in (policy.tier, policy.weight))
        capacity = rng.random((servers, lanes))
        size = 10 ** rng.uniform(-6, 0, lanes)
        other = np.clip(
            capacity + size * rng.normal(size=(servers, lanes)) * (rng.random((servers, lanes)) < 0.5), 0, 1
        )
        budget = rng.uniform(0, 4, lanes)
        moved = np.abs(jitted(budget, capacity, tier, weight) - jitted(budget, other, tier, weight)).sum(axis=0)
        distance = np.abs(capacity - other).sum(axis=0)
        assert np.all(moved <= 4 * distance + 1e-13)
        worst = max(worst, np.max(moved[distance > 0] / distance[distance > 0]))
        index = rng.integers(-1, 2, (1, servers)) / 2
    assert worst > 1  # the pairs do move the shares


@pytest.mark.parametrize("selection", ["canonical", "vertex", "interior"])
@pytest.mark.parametrize("name", GALLERY)
def test_the_optimum_is_what_lag_does_at_its_free_fractions(name, selection):
    """Lemma 4.4(a): u* = lambda waterfill(k, phi*; L, w)."""
    for load in (0.3, 0.8):
        instance = GALLERY[name](load)
        solution = solve_occ(instance, selection=selection)
        policy = lag(instance, solution)
        capacity = np.repeat(solution.free_fraction[:, None], instance.num_types, axis=1)
        budget = np.full(instance.num_types, float(instance.servers_per_task))
        share = np.asarray(jitted(budget, capacity, policy.tier.T, policy.weight.T)).T
        np.testing.assert_allclose(share, solution.tie_weight, atol=2e-8)
        np.testing.assert_allclose(share * instance.arrival_rate[:, None], solution.assignment_rate, atol=1e-8)


def test_derivatives_are_finite_differences():
    """By jvp and by grad, in every capacity, weight and budget away from kinks."""
    rng = np.random.default_rng(9)
    servers, lanes = 6, 60
    tier = rng.integers(0, 3, (servers, lanes))
    capacity = rng.uniform(0.1, 1, (servers, lanes))
    weight = rng.uniform(0.2, 1, (servers, lanes))
    budget = rng.uniform(0.1, 1.1, lanes) * capacity.sum(axis=0)
    budget[:3] = rng.uniform(5.5, 6, 3)  # more than there is
    toward = rng.normal(size=(servers, lanes))

    @jax.jit
    def value(budget, capacity, weight):
        return jnp.sum(waterfill(budget, capacity, tier, weight) * toward, axis=0)

    point = budget, capacity, weight
    gradients = jax.jit(jax.grad(lambda *p: jnp.sum(value(*p)), argnums=(0, 1, 2)))(*point)
    tangent = jax.jit(lambda direction: jax.jvp(value, point, direction)[1])
    step, compared, here = 1e-6, 0, np.asarray(value(*point))
    for which, shape in enumerate(((), (servers,), (servers,))):
        for r in np.ndindex(shape):
            direction = [np.zeros_like(x) for x in point]
            direction[which][r] = 1
            ahead, behind = (
                (np.asarray(value(*(x + t * y for x, y in zip(point, direction, strict=True)))) - here) / t
                for t in (step, -step)
            )
            smooth = np.abs(ahead - behind) < 1e-4
            assert smooth.mean() > 0.9
            found = np.asarray(tangent(tuple(direction)))
            np.testing.assert_allclose(found[smooth], (ahead + behind)[smooth] / 2, atol=1e-4)
            np.testing.assert_allclose(gradients[which][r], found, atol=1e-12)
            compared += np.sum(np.abs(found) > 1e-3)
    assert compared > 300


def test_derivatives_are_finite_at_the_ends():
    """No budget, no capacity, a tier exactly used up, one server."""
    gradient = jax.jit(jax.grad(lambda tier, *p: jnp.sum(waterfill(p[0], p[1], tier, p[2]) ** 2), argnums=(1, 2, 3)))
    for budget, capacity in ((0.0, [0.5, 0.5]), (1.0, [0.0, 0.0]), (1.0, [0.5, 0.5]), (0.5, [0.5, 0.5]), (0.3, [0.4])):
        capacity = jnp.asarray(capacity)[:, None]
        for tier in (np.zeros(capacity.shape, int), np.arange(len(capacity))[:, None]):
            found = gradient(tier, jnp.asarray([budget]), capacity, jnp.ones(capacity.shape))
            assert all(np.all(np.isfinite(x)) for x in found)


def test_one_order_for_the_batch_is_the_order_per_lane():
    """Tiers and weights of shape (R, 1): the quicker way to where the budget ends gives the same shares."""
    budget, capacity, tier, weight = random_problems(7, 600, seed=12)
    for lane in range(6):
        one = tier[:, lane : lane + 1], weight[:, lane : lane + 1]
        per_lane = [np.broadcast_to(x, capacity.shape) for x in one]
        np.testing.assert_allclose(
            jitted(budget, capacity, *one), jitted(budget, capacity, *per_lane), rtol=0, atol=1e-13
        )


def test_lipschitz_with_2_on_many_pairs():
    """Lemma 4.3 on 120,000 pairs of random capacities, tiers and weights: 4 holds, 2 does, and 2 is nearly reached."""
    worst = 0
    rng = np.random.default_rng(13)
    for seed in range(6):
        budget, capacity, tier, weight = random_problems(6, 20_000, seed=20 + seed)
        change = rng.normal(size=capacity.shape) * (rng.random(capacity.shape) < rng.choice([0.2, 0.5, 1], 20_000))
        other = np.clip(capacity + 10 ** rng.uniform(-5, 0, 20_000) * change, 0, 1)
        moved = np.abs(jitted(budget, capacity, tier, weight) - jitted(budget, other, tier, weight)).sum(axis=0)
        distance = np.abs(capacity - other).sum(axis=0)
        assert np.all(moved <= 4 * distance + 1e-13)
        assert np.all(moved <= 2 * distance + 1e-13)
        some = distance > 1e-9
        worst = max(worst, np.max(moved[some] / distance[some]))
    assert worst > 1.99
