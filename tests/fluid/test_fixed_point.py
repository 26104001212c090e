"""Fixed points of G: the LP's own, unique from every start, and with the LP's sensitivities as derivatives."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optimistix
import pytest
from small_fluids import random_fluid, random_pair, random_states

from lagjax.errors import InputError
from lagjax.fluid import assignment_rates, fixed_point, fluid_map, fluid_reward, fluid_system, lp_fixed_point
from lagjax.fluid.fixed_point import _damped
from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, solve_occ
from lagjax.policies import POLICIES, build_policy
from lagjax.policies.lag import lag

RULES = ("capped", "race")
solve = jax.jit(fixed_point)
step = jax.jit(fluid_map)


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@jax.jit
def moved_and_paid(system, x):
    return fluid_map(system, x), assignment_rates(system, x), fluid_reward(system, x)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", GALLERY)
def test_the_optimum_is_a_fixed_point(name, selection):
    """Lemma 4.4(a): G(x_hat) = x_hat, u(x_hat) = u*, reward OPT(OCC-LP(0)); at every feasible load, the largest too."""
    instance = gallery(name, 0.3)
    largest = min(instance.max_load, instance.load / instance.total_rate)  # at most one arrival per step
    for load in [*np.arange(0.1, largest, 0.2), largest]:
        instance = gallery(name, load)
        solution = solve_occ(instance, selection=selection)
        x = lp_fixed_point(instance, solution)
        np.testing.assert_allclose(x.sum(axis=1), 1, rtol=0, atol=1e-12)
        assert x.min() >= 0
        moved, rates, reward = moved_and_paid(fluid_system(instance, lag(instance, solution)), x)
        np.testing.assert_allclose(moved, x, rtol=0, atol=1e-12)
        np.testing.assert_allclose(rates, solution.assignment_rate, rtol=0, atol=1e-12)
        np.testing.assert_allclose(reward, solution.objective, rtol=1e-12)


def test_the_optimum_in_single_precision():
    """Residual below 2e-6, reward within 2e-6 of the optimum."""
    for name in GALLERY:
        instance = gallery(name, 0.8)
        solution = solve_occ(instance)
        x = np.float32(lp_fixed_point(instance, solution))
        system = fluid_system(instance, lag(instance, solution))
        moved, _, reward = moved_and_paid(system, x)
        assert moved.dtype == reward.dtype == np.float32
        np.testing.assert_allclose(moved, x, rtol=0, atol=2e-6)
        np.testing.assert_allclose(reward, solution.objective, rtol=2e-6)


@pytest.mark.parametrize("name", ["specialist"])
def test_one_fixed_point_from_every_start_for_every_policy(name):
    instance = gallery(name, 0.6)
    solution = solve_occ(instance)
    starts = random_states(np.random.default_rng(1), 4, instance.num_servers, instance.max_duration + 1)
    for policy in POLICIES:
        system = fluid_system(instance, build_policy(policy, instance))
        found = [solve(system, x) for x in starts]
        for point in found:
            assert point.residual <= 1e-12
            np.testing.assert_allclose(np.sum(point.state, axis=1), 1, rtol=0, atol=1e-12)
            np.testing.assert_allclose(point.state, found[0].state, rtol=0, atol=1e-11)
            np.testing.assert_allclose(point.reward, fluid_reward(system, point.state), rtol=1e-14)
            assert point.reward <= solution.objective * (1 + 1e-12)
        if policy == "lag":
            np.testing.assert_allclose(found[0].state, lp_fixed_point(instance, solution), rtol=0, atol=1e-11)
            np.testing.assert_allclose(found[0].reward, solution.objective, rtol=1e-12)


def test_one_server_by_hand():
    """phi + lambda E[D] phi = 1."""
    instance = make_instance([[2.0]], [0.5, 0.0, 0.5], arrival_rate=[0.25])
    point = solve(fluid_system(instance, build_policy("random", instance)))
    free = 1 / (1 + 0.25 * 2)
    np.testing.assert_allclose(point.state[0], free * np.array([1, 0.25, 0.125, 0.125]), rtol=1e-13)
    np.testing.assert_allclose(point.reward, 2 * 0.25 * free, rtol=1e-13)


@pytest.mark.parametrize("rule", RULES)
def test_the_proof_of_uniqueness(rule):
    """The claims of the module: signs and column sums of the Jacobian N, and the contraction of the l1 norm."""
    rng = np.random.default_rng(2)
    contraction = []
    for seed in range(2):
        system = random_fluid(seed, rule, servers_per_task=1 + seed)
        duration = np.asarray(system.law)[list(system.law_of_type)] @ np.arange(1, system.law.shape[1] + 1)
        load = system.arrival_rate @ duration

        @jax.jit
        def busy(phi, system=system, duration=duration):
            return jnp.asarray(duration) @ assignment_rates(system, phi[:, None])

        jacobian = jax.jit(jax.vmap(jax.jacfwd(busy)))(random_states(rng, 400, 5, 5)[:, :, 0])
        diagonal = np.einsum("nrr->nr", jacobian)
        assert diagonal.min() >= -1e-12 and diagonal.max() <= load + 1e-12
        assert np.max(jacobian - np.eye(5) * diagonal[:, None]) <= 1e-12
        columns = np.sum(jacobian, axis=1)
        assert columns.min() >= -1e-12
        assert diagonal.max() > 0.1 and columns.max() > 0.01 > columns.min()  # with too little free, and with enough
        here, there = random_states(rng, 1000, 5, 5)[:, :, 0], random_states(rng, 1000, 5, 5)[:, :, 0]
        there = np.where(np.arange(1000)[:, None] % 2, np.clip(here + 1e-3 * (there - here), 0, 1), there)
        damped = jax.jit(jax.vmap(lambda phi, system=system: _damped(system, phi)))
        moved = np.abs(damped(here) - damped(there)).sum(axis=1)
        bound = (1 - 1 / (1 + load)) * np.abs(here - there).sum(axis=1)
        assert np.all(moved <= bound + 1e-13)
        contraction.append(np.max(moved[bound > 0] / bound[bound > 0]))
    assert max(contraction) > 0.9  # the bound is near


@pytest.mark.parametrize("rule", RULES)
def test_newton_agrees(rule):
    system = random_fluid(5, rule)
    newton = optimistix.Newton(rtol=1e-13, atol=1e-13)
    point = jax.jit(lambda system: fixed_point(system, solver=newton))(system)
    other = solve(system)
    assert point.residual <= 1e-12
    np.testing.assert_allclose(point.state, other.state, rtol=0, atol=1e-11)


def test_start_and_precision():
    system = random_fluid(6, "capped")
    exact = solve(system)
    assert exact.state.dtype == exact.reward.dtype == np.float64
    start = np.float32(np.asarray(exact.state))
    assert solve(system, start).state.dtype == np.float64  # a start of any type, the result in the precision of JAX
    with jax.enable_x64(False):
        for single in (solve(system), solve(system, np.asarray(exact.state))):
            assert single.state.dtype == single.reward.dtype == np.float32
            assert single.residual < 2e-6
            np.testing.assert_allclose(single.state, exact.state, rtol=0, atol=5e-6)
    with pytest.raises(InputError, match="start has shape"):
        fixed_point(system, np.ones((3, 5)))


def test_a_solution_that_is_no_fixed_point_is_refused():
    instance = gallery("priority")
    with pytest.raises(InputError, match="needs OCC-LP"):
        lp_fixed_point(instance, solve_occ(instance, blocking=0.1))
    with pytest.raises(InputError, match="solution has shape"):
        lp_fixed_point(gallery("specialist"), solve_occ(instance))


def moved_instance(instance, field, direction, t):
    return dataclasses.replace(instance, **{field: np.asarray(getattr(instance, field)) + t * direction})


def tangent_directions(instance, rng):
    """A direction in scores, in arrival rates, and in the laws that keeps their sums."""
    law = rng.normal(size=instance.service_pmf.shape) * (instance.service_pmf > 0)
    support = np.sum(instance.service_pmf > 0, axis=1, keepdims=True)
    law = (law - law.sum(axis=1, keepdims=True) / support) * (instance.service_pmf > 0)
    return {
        "scores": rng.normal(size=instance.scores.shape),
        "arrival_rate": rng.normal(size=instance.arrival_rate.shape) * instance.arrival_rate,
        "service_pmf": law,
    }


def test_implicit_derivatives_are_finite_differences():
    """The whole instance at once, under a policy of each rule that stays as it is."""
    for rule in RULES:
        instance, policy = random_pair(9, rule, laws=3)

        @jax.jit
        def reward(instance, policy=policy):
            instance = jax.tree.map(jnp.asarray, instance)
            return fixed_point(fluid_system(instance, policy)).reward

        gradient = jax.jit(jax.grad(reward))(instance)
        for field, direction in tangent_directions(instance, np.random.default_rng(3)).items():
            ahead, behind = (float(reward(moved_instance(instance, field, direction, t))) for t in (1e-5, -1e-5))
            found = np.sum(np.asarray(getattr(gradient, field)) * direction)
            assert abs(found) > 1e-3
            np.testing.assert_allclose(found, (ahead - behind) / 2e-5, rtol=1e-6, err_msg=field)


def test_derivatives_are_the_sensitivities_of_the_program():
    """Where the optimum is one vertex, LAG's reward is OPT to first order, and the envelope theorem gives its derivatives.

    dOPT/ds = u*, dOPT/dlambda_v = k ell_v + sum_r phi_r max(L_vr, 0), and along changes of p_v that keep its sum
    dOPT/dp_v(i) = -i sum_r q_r u*_vr.
    """
    compared = 0
    for seed in (3, 4):
        instance, _ = random_pair(seed, "capped", laws=3)
        solution = solve_occ(instance)
        vertex = solve_occ(instance, selection="vertex")
        if (
            np.abs(vertex.index - solution.index).max() > 1e-9
            or np.abs(vertex.tie_weight - solution.tie_weight).max() > 1e-9
        ):
            continue  # not one optimum
        policy = lag(instance, solution)
        gradient = jax.jit(
            jax.grad(lambda i, policy=policy: fixed_point(fluid_system(jax.tree.map(jnp.asarray, i), policy)).reward)
        )(instance)
        positive = np.maximum(solution.index, 0)
        by_rate = instance.servers_per_task * solution.task_price + positive @ solution.free_fraction
        cost = solution.assignment_rate @ solution.server_price
        by_law = -cost[:, None] * np.arange(1, instance.max_duration + 1)
        np.testing.assert_allclose(gradient.scores, solution.assignment_rate, rtol=0, atol=1e-12)
        np.testing.assert_allclose(gradient.arrival_rate, by_rate, rtol=0, atol=1e-11)
        apart = np.asarray(gradient.service_pmf) - by_law
        apart = apart - apart.mean(axis=1, keepdims=True)  # only changes that keep the sum mean anything
        np.testing.assert_allclose(apart, 0, rtol=0, atol=1e-11)
        # and the program itself, solved again
        for field, direction in tangent_directions(instance, np.random.default_rng(seed)).items():
            ahead, behind = (solve_occ(moved_instance(instance, field, direction, t)).objective for t in (1e-5, -1e-5))
            found = np.sum(np.asarray(getattr(gradient, field)) * direction)
            np.testing.assert_allclose(found, (ahead - behind) / 2e-5, rtol=1e-5, atol=1e-8, err_msg=field)
        compared += 1
    assert compared == 2
