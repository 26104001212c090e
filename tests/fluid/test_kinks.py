"""The distance to the nearest kink: G is affine within it, and not just beyond it in the worst direction."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_fluids import random_pair, random_states

from lagjax.fluid import fluid_map, fluid_system, lp_fixed_point, nearest_kink
from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.lp import solve_occ
from lagjax.policies import build_policy, make_policy

step = jax.jit(fluid_map)


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@jax.jit
def off_affine(system, x, moves):
    """(N,) largest entry of G(x + m) - G(x) - DG(x) m, for moves of phi (N, R); their opposite is added to the busy."""
    x = jnp.asarray(x)
    change = jnp.zeros((len(moves), *x.shape), x.dtype).at[..., 0].set(moves).at[..., 1].set(-moves)
    here, slope = jax.linearize(lambda y: fluid_map(system, y), x)
    there = fluid_map(system, x + change)
    return jnp.max(jnp.abs(there - here - jax.vmap(slope)(change)), axis=(-2, -1))


def moves_of_length(rng, count, servers, length):
    """Random ones of that l1 norm: many servers, few, and one."""
    moves = rng.normal(size=(count, servers)) * (rng.random((count, servers)) < rng.choice([0.2, 0.5, 1], (count, 1)))
    moves[np.arange(count), rng.integers(0, servers, count)] += 0.1
    moves = np.concatenate([moves, np.eye(servers), -np.eye(servers), np.ones((1, servers)), -np.ones((1, servers))])
    return length * moves / np.abs(moves).sum(axis=1, keepdims=True)


def test_affine_within_and_not_beyond():
    """Random states and capped policies. Beyond: along one server up or down, or all up against all others down."""
    rng = np.random.default_rng(1)
    causes = set()
    instance, _ = random_pair(1, "capped", laws=1)
    for case in range(40):
        _, policy = random_pair(case, "capped", laws=1, tiers=1 + case % 4)
        system = fluid_system(instance, policy)
        x = rng.dirichlet(np.ones(5), 5)
        if case % 5 == 0:
            x[:, 1:] += 0.9 * x[:, :1] / 4  # little free
            x[:, 0] *= 0.1
        kink = nearest_kink(system, x)
        causes.add(re.sub(r"\d+", "", kink.cause))
        assert kink.distance >= 0
        inside = off_affine(system, x, moves_of_length(rng, 300, 5, 0.999 * kink.distance))
        assert inside.max() <= 1e-12, (case, kink, float(inside.max()))
        beyond = kink.distance * 1.2 + 1e-6
        signs = np.array(np.meshgrid(*[[-1, 0, 1]] * 5)).reshape(5, -1).T
        signs = signs[np.abs(signs).sum(axis=1) > 0]
        worst = off_affine(system, x, beyond * signs / np.abs(signs).sum(axis=1, keepdims=True)).max()
        assert worst > 1e-9, (case, kink, float(worst))
    assert len(causes) == 4, causes


def test_by_hand():
    # one task of one server, strict order: server 0 has 0.7, server 1 would have to give 0.3 of its 0.9
    instance = make_instance(np.ones((1, 3)), [0.5, 0.5], arrival_rate=[0.4])
    x = np.array([[0.7, 0.2, 0.1], [0.9, 0.05, 0.05], [0.8, 0.1, 0.1]])
    kink = nearest_kink(fluid_system(instance, make_policy("order", [[0, 1, 2]])), x)
    assert kink.task_type == 0 and "earlier tier" in kink.cause
    np.testing.assert_allclose(kink.distance, 0.3, rtol=1e-12)
    # shared by weights 1, 1, 8: the third fills up to 0.8 at theta = 0.1, and each takes 0.1 more of nothing left
    system = fluid_system(instance, make_policy("shared", np.zeros((1, 3)), [[1, 1, 8]], "capped"))
    kink = nearest_kink(system, x)
    assert kink.distance == pytest.approx(0, abs=1e-12) and kink.server == 2
    # short by 0.2
    x[:, 0] = [0.3, 0.3, 0.2]
    x[:, 2] = 1 - x[:, 0] - x[:, 1]
    kink = nearest_kink(system, x)
    np.testing.assert_allclose(kink.distance, 0.2, rtol=1e-12)
    assert "what is free" in kink.cause


def test_no_kink_before_the_first_tier():
    """One tier for all and k of 1: only a shortage can change the derivative."""
    instance = make_instance(np.ones((1, 3)), [0.5, 0.5], arrival_rate=[0.4])
    x = np.array([[0.9, 0.1, 0.0], [0.8, 0.1, 0.1], [0.7, 0.2, 0.1]])
    kink = nearest_kink(fluid_system(instance, make_policy("random", np.zeros((1, 3)))), x)
    np.testing.assert_allclose(kink.distance, 1.4, rtol=1e-12)


def test_the_nearest_of_several_types():
    instance, policy = random_pair(2, "capped", laws=1)
    x = random_states(np.random.default_rng(3), 4, 5, 5)[0]
    kink = nearest_kink(fluid_system(instance, policy), x)
    single = []
    for v in range(instance.num_types):
        one = make_instance(instance.scores[v : v + 1], instance.service_pmf[:1], arrival_rate=[0.1])
        alone = make_policy("one", policy.tier[v : v + 1], policy.weight[v : v + 1], policy.rule)
        single.append(nearest_kink(fluid_system(one, alone), x))
    nearest = min(single, key=lambda found: found.distance)
    np.testing.assert_allclose(kink.distance, nearest.distance, rtol=1e-12)
    assert single[kink.task_type].cause == kink.cause == nearest.cause


def test_a_race_keeps_its_tiers_within():
    """Not affine, but smooth: the derivative at the end of a short move is near, and jumps beyond the kink."""
    instance, _ = random_pair(1, "race", laws=1)
    system = fluid_system(instance, make_policy("pairs", [[0, 0, 1, 1, 1]] * 3))
    x = np.tile([0.3, 0.3, 0.2, 0.1, 0.1], (5, 1))  # 0.6 of 1 from the first two, 0.4 of 0.9 from the others
    kink = nearest_kink(system, x)
    np.testing.assert_allclose(kink.distance, 0.4, rtol=1e-12)
    derivative = jax.jit(jax.jacfwd(lambda phi: fluid_map(system, jnp.asarray(x).at[:, 0].set(phi))))
    phi, up = jnp.full(5, 0.3), jnp.eye(5)[0]
    inside = derivative(phi + 0.399 * up), derivative(phi + 0.3999 * up)
    beyond = derivative(phi + 0.4001 * up)
    assert np.abs(inside[0] - inside[1]).max() < 1e-2 < 0.1 < np.abs(beyond - inside[1]).max()


@pytest.mark.parametrize("name", GALLERY)
def test_at_the_optimum(name):
    """Where LAG's fixed point lies off every kink, random moves within leave G affine."""
    instance = gallery(name, 0.6)
    solution = solve_occ(instance)
    system = fluid_system(instance, build_policy("lag", instance))
    x = lp_fixed_point(instance, solution)
    kink = nearest_kink(system, x)
    assert 0 <= kink.distance <= instance.servers_per_task and 0 <= kink.task_type < instance.num_types
    if kink.distance > 1e-9:
        moves = moves_of_length(np.random.default_rng(4), 50, instance.num_servers, 0.999 * kink.distance)
        assert off_affine(system, x, moves).max() <= 1e-12
