"""The fluid map: against the formulas written out, conserving, transformable, differentiable, in both precisions."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import plain_fluid
import pytest
from small_fluids import random_fluid, random_pair, random_states

from lagjax.errors import InputError
from lagjax.fluid import assignment_rates, fluid_map, fluid_reward, fluid_system, iterate
from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.policies import POLICIES, build_policy, make_policy

apply, rates_at, reward_at = jax.jit(fluid_map), jax.jit(assignment_rates), jax.jit(fluid_reward)
run = jax.jit(iterate, static_argnums=2)
Partial = jax.tree_util.Partial
RULES = ("capped", "race")
pytestmark = pytest.mark.rounding
# An entry of G(x) is at most 1 and comes of fewer than 20 sums and products here, each of which rounds by half of 2.2e-16
# at most: two programs for it, which add in other orders, agree to this.
ONE_STEP = 4e-15


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@jax.jit
def together(system, x):
    return fluid_map(system, x), assignment_rates(system, x), fluid_reward(system, x)


def written_out(instance, policy, x):
    u = plain_fluid.rates(instance.arrival_rate, policy.tier, policy.weight, policy.rule, instance.servers_per_task, x)
    return u, plain_fluid.step(u, instance.service_pmf, x)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("laws, servers_per_task, longest", [(1, 3, 4), (3, 1, 1), (2, 2, 5)])
def test_the_formulas_written_out(rule, laws, servers_per_task, longest):
    instance, policy = random_pair(longest, rule, laws=laws, servers_per_task=servers_per_task, longest=longest)
    system = fluid_system(instance, policy)
    assert len(system.law) == laws if longest > 1 else len(system.law) == 1
    states = random_states(np.random.default_rng(3), 60, instance.num_servers, longest + 1)
    short = states[..., 0].sum(axis=1) < servers_per_task
    assert 5 < short.sum() < 40  # shortage: what is free is taken
    moved, rates, reward = map(np.asarray, together(system, states))
    for x, y, u in zip(states, moved, rates, strict=True):
        plain_u, plain_y = written_out(instance, policy, x)
        np.testing.assert_allclose(u, plain_u, rtol=0, atol=1e-13)
        np.testing.assert_allclose(y, plain_y, rtol=0, atol=1e-13)
    taken = rates.sum(axis=2)
    served = np.minimum(servers_per_task, states[..., 0].sum(axis=1))
    np.testing.assert_allclose(taken, served[:, None] * instance.arrival_rate, rtol=0, atol=1e-14)
    np.testing.assert_allclose(reward, (instance.scores * rates).sum(axis=(1, 2)), rtol=1e-14)


@pytest.mark.parametrize("name", POLICIES)
def test_every_policy_on_the_gallery(name):
    rng = np.random.default_rng(4)
    for where in GALLERY:
        instance = gallery(where, 0.6)
        policy = build_policy(name, instance)
        system = fluid_system(instance, policy)
        states = random_states(rng, 4, instance.num_servers, instance.max_duration + 1)
        for x, y in zip(states, np.asarray(apply(system, states)), strict=True):
            np.testing.assert_allclose(y, written_out(instance, policy, x)[1], rtol=0, atol=1e-13)


@pytest.mark.parametrize(("rule", "servers_per_task"), [("capped", 3), ("race", 1)])
def test_states_stay_states(rule, servers_per_task):
    """Rows keep their sum, entries stay in [0, 1], for a thousand steps."""
    system = random_fluid(1, rule, servers_per_task=servers_per_task)
    x = random_states(np.random.default_rng(2), 200, 5, 5)
    for y in (apply(system, x), run(Partial(fluid_map, system), x, 1000)):
        np.testing.assert_allclose(np.sum(y, axis=-1), 1, rtol=0, atol=1e-12)
        assert np.min(y) >= -ONE_STEP and np.max(y) <= 1 + 1e-12
    unequal = x * np.linspace(0.1, 1, 5)[:, None]  # rows of any sum
    np.testing.assert_allclose(np.sum(apply(system, unequal), axis=-1), np.sum(unequal, axis=-1), rtol=0, atol=ONE_STEP)


@pytest.mark.parametrize("rule", RULES)
def test_jit_vmap_loop_and_batch_axes_agree(rule):
    system = random_fluid(7, rule)
    states = jnp.asarray(random_states(np.random.default_rng(5), 12, 5, 5))
    loop = np.stack([apply(system, x) for x in states])
    for other in (
        apply(system, states),
        jax.jit(jax.vmap(lambda x: fluid_map(system, x)))(states),
        apply(system, states.reshape(2, 3, 2, 5, 5)).reshape(12, 5, 5),
    ):
        np.testing.assert_allclose(other, loop, rtol=0, atol=ONE_STEP)
    assert reward_at(system, states.reshape(2, 6, 5, 5)).shape == (2, 6)
    if rule == "capped":  # without jit, which takes seconds
        np.testing.assert_allclose(fluid_map(system, states[0]), loop[0], rtol=0, atol=ONE_STEP)
    # over systems: a sweep over loads
    scale = jnp.asarray([0.3, 0.8])
    swept = jax.jit(
        jax.vmap(lambda s: fluid_map(dataclasses.replace(system, arrival_rate=s * system.arrival_rate), states[0]))
    )
    for s, y in zip(scale, swept(scale), strict=True):
        at = dataclasses.replace(system, arrival_rate=s * system.arrival_rate)
        np.testing.assert_allclose(y, apply(at, states[0]), rtol=0, atol=ONE_STEP)


def test_iterate_is_a_loop():
    system = random_fluid(8, "capped")
    step = Partial(fluid_map, system)
    x = jnp.asarray(random_states(np.random.default_rng(6), 3, 5, 5))
    looped = x
    for _ in range(25):
        looped = apply(system, looped)
    np.testing.assert_allclose(run(step, x, 25), looped, rtol=0, atol=25 * ONE_STEP)
    np.testing.assert_array_equal(run(step, x, 0), x)
    # and differentiable both ways
    direction = np.random.default_rng(1).normal(size=x.shape)

    @jax.jit
    def total(x):
        return jnp.sum(iterate(step, x, 10) * direction)

    forward = jax.jit(lambda x, d: jax.jvp(total, (x,), (d,))[1])(x, jnp.asarray(direction))
    np.testing.assert_allclose(forward, np.sum(jax.jit(jax.grad(total))(x) * direction), rtol=1e-12)


@pytest.mark.parametrize("rule", RULES)
def test_derivatives_are_finite_differences(rule):
    """In x, weights, arrival rates and laws, by jvp and by grad, away from kinks."""
    rng = np.random.default_rng(11)

    @jax.jit
    def value(point, fixed, toward):
        x, weight, arrival_rate, law = point
        system = dataclasses.replace(fixed, weight=weight, arrival_rate=arrival_rate, law=law)
        return jnp.sum(fluid_map(system, x) * toward, axis=(-2, -1))

    @jax.jit
    def gradients(states, fixed, toward):
        def one(x):
            return jax.grad(value)((x, fixed.weight, fixed.arrival_rate, fixed.law), fixed, toward)

        return jax.vmap(one)(states)

    @jax.jit
    def slope(point, direction, fixed, toward):
        return jax.jvp(lambda p: value(p, fixed, toward), (point,), (direction,))[1]

    compared = 0
    system = jax.tree.map(jnp.asarray, random_fluid(20, rule, servers_per_task=2))
    toward = rng.normal(size=(5, 5))
    states = rng.dirichlet(np.ones(5), (40, 5))
    states[8:, :, 0] += 0.6  # most with enough for a task
    states = jnp.asarray(states / states.sum(axis=2, keepdims=True))
    found = gradients(states, system, toward)
    assert all(np.all(np.isfinite(g)) for g in found)
    point = states, system.weight, system.arrival_rate, system.law
    here = np.asarray(value(point, system, toward))
    for which in range(4):
        direction = [jnp.zeros_like(p) for p in point]
        direction[which] = jnp.asarray(rng.normal(size=point[which].shape)) * point[which]
        tangent = slope(point, tuple(direction), system, toward)
        dot = (found[which] * direction[which]).reshape(40, -1).sum(axis=1)
        np.testing.assert_allclose(tangent, dot, rtol=1e-10, atol=1e-13)
        ahead, behind = (
            (np.asarray(value(tuple(p + t * d for p, d in zip(point, direction, strict=True)), system, toward)) - here)
            / t
            for t in (1e-6, -1e-6)
        )
        smooth = np.abs(ahead - behind) < 1e-5  # no kink in between
        np.testing.assert_allclose(tangent[smooth], (ahead + behind)[smooth] / 2, rtol=0, atol=1e-7)
        compared += smooth.sum()
    assert compared > 150


def test_derivatives_are_finite_on_the_edges_of_the_state_space():
    for rule in RULES:
        system = jax.tree.map(jnp.asarray, random_fluid(3, rule, servers_per_task=2))
        gradient = jax.jit(jax.grad(lambda s, x: jnp.sum(fluid_map(s, x) ** 2), argnums=(0, 1), allow_int=True))
        for x in (np.eye(5)[np.zeros(5, int)], np.eye(5)[np.full(5, 4)], np.eye(5)[[0, 0, 1, 2, 3]]):
            of_system, of_state = gradient(system, jnp.asarray(x))
            assert np.all(np.isfinite(of_state))
            for field in ("weight", "arrival_rate", "law"):
                assert np.all(np.isfinite(getattr(of_system, field)))


@pytest.mark.parametrize("rule", RULES)
def test_float32_is_close_and_stays_float32(rule):
    """Entries of one step err by less than 1e-6, of a hundred steps by less than 1e-5."""
    system = random_fluid(30, rule, servers_per_task=2)
    states = random_states(np.random.default_rng(8), 40, 5, 5)
    step = Partial(fluid_map, system)
    for steps, tolerance in ((1, 1e-6), (100, 1e-5)):
        exact = run(step, states, steps)
        with jax.enable_x64(False):
            single = run(step, jnp.asarray(states, jnp.float32), steps)
            shapes = jax.eval_shape(rates_at, system, single), jax.eval_shape(reward_at, system, single)
        assert single.dtype == shapes[0].dtype == shapes[1].dtype == np.float32
        np.testing.assert_allclose(single, exact, rtol=0, atol=tolerance)
    assert jax.eval_shape(apply, system, single).dtype == np.float32  # also in 64-bit mode


@pytest.mark.parametrize("policy", ["lag", "alg-sc-lp"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_lowers_for_cuda(policy, dtype):
    instance = gallery("specialist", 0.8)
    system = fluid_system(instance, build_policy(policy, instance))
    shape = jax.ShapeDtypeStruct((4, instance.num_servers, instance.max_duration + 1), dtype)

    def both(x):
        return fluid_map(system, x), iterate(Partial(fluid_map, system), x, 7)

    with jax.enable_x64(dtype == np.float64):
        exported = jax.export.export(jax.jit(both), platforms=["cuda"])(shape)
    assert exported.platforms == ("cuda",)
    assert {a.dtype for a in exported.out_avals} == {np.dtype(dtype)}
    assert "callback" not in exported.mlir_module()


def test_equal_weights_race_in_proportion_to_what_is_free():
    rng = np.random.default_rng(12)
    for servers_per_task in (1, 2):
        instance, _ = random_pair(5, "race", servers_per_task=servers_per_task)
        system = fluid_system(instance, make_policy("uniform", np.zeros((3, 5)), rule="race"))
        x = random_states(rng, 50, 5, 5)
        phi = x[..., 0]
        share = np.minimum(servers_per_task, phi.sum(axis=1)) / np.maximum(phi.sum(axis=1), 1e-300)
        u = instance.arrival_rate[:, None] * (phi * share[:, None])[:, None]
        np.testing.assert_allclose(rates_at(system, x), u, rtol=0, atol=1e-14)


def test_copies_of_equal_laws_share_one():
    law = [0.5, 0.25, 0.25]
    instance = make_instance(np.ones((3, 2)), [law, [0.0, 1.0], law], load=0.3)
    system = fluid_system(instance, make_policy("any", np.zeros((3, 2))))
    assert len(system.law) == 2 and system.law_of_type[0] == system.law_of_type[2] != system.law_of_type[1]
    # a traced law has one row per type, and gives the same map
    own = fluid_system(
        dataclasses.replace(instance, service_pmf=jnp.asarray(instance.service_pmf)),
        make_policy("any", np.zeros((3, 2))),
    )
    assert own.law_of_type == (0, 1, 2)
    x = random_states(np.random.default_rng(2), 5, 2, 4)
    np.testing.assert_allclose(apply(own, x), apply(system, x), rtol=0, atol=ONE_STEP)


def test_a_policy_of_another_shape_is_refused():
    with pytest.raises(InputError, match=r"shape \(1, 2\).*\(2, 8\)"):
        fluid_system(gallery("priority"), make_policy("small", np.zeros((1, 2))))
