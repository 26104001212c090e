"""The spectrum of G at its fixed point: against dense eigenvalues of its Jacobian, and against trajectories."""

import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_fluids import random_pair

from lagjax.fluid import fixed_point, fluid_map, fluid_system, iterate, spectrum
from lagjax.gallery import gallery
from lagjax.instance import make_instance
from lagjax.policies import build_policy, make_policy

spectrum_module = importlib.import_module("lagjax.fluid.spectrum")  # the package has the function of that name
solve = jax.jit(fixed_point)
run = jax.jit(iterate, static_argnums=2)
VANISHING = 1e-2  # eigenvalues below: defective zeros, which rounding moves by the d-th root of eps


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


@jax.jit
def jacobian(system, x):
    """Of G on the tangent space, coordinates x[r, 1..d]: x[r, 0] gives what they take."""
    servers, stages = x.shape

    def moved(busy):
        tangent = jnp.concatenate([-jnp.sum(busy, axis=1, keepdims=True), busy], axis=1)
        return jax.jvp(lambda y: fluid_map(system, y), (x,), (tangent,))[1][:, 1:]

    basis = jnp.eye(servers * (stages - 1), dtype=x.dtype).reshape(-1, servers, stages - 1)
    return jax.vmap(moved)(basis).reshape(len(basis), -1).T


def eigenvalues_match(found, dense):
    """Each of one has a partner of its own among the other, largest first."""
    left = list(found)
    for value in sorted(dense, key=abs, reverse=True):
        nearest = int(np.argmin(np.abs(np.array(left) - value)))
        assert abs(left.pop(nearest) - value) < 1e-7
    assert not left


def check(system, x):
    dense = np.linalg.eigvals(jacobian(system, jnp.asarray(x)))
    found = spectrum(system, x)
    assert found.whole
    large = found.eigenvalues[np.abs(found.eigenvalues) > VANISHING]
    eigenvalues_match(large, dense[np.abs(dense) > VANISHING])
    assert np.all(np.diff(np.abs(found.eigenvalues)) <= 1e-9)
    np.testing.assert_allclose(found.radius, np.abs(dense).max(), rtol=1e-9)
    check_direction(system, x, found)
    return found


def check_direction(system, x, found):
    """Rows sum to 0, and G multiplies the plane of the direction and its conjugate by the leading eigenvalue."""
    z, here = found.eigenvalues[0], found.direction
    np.testing.assert_allclose(here.sum(axis=1), 0, rtol=0, atol=1e-13)
    np.testing.assert_allclose(np.abs(here).max(), 1, rtol=1e-12)
    once = jacobian(system, jnp.asarray(x)) @ here[:, 1:].ravel()
    twice = jacobian(system, jnp.asarray(x)) @ once
    # z^2 - 2 Re(z) z + |z|^2 = 0 on that plane; for a real z already z is enough
    if z.imag == 0:
        np.testing.assert_allclose(once, z.real * here[:, 1:].ravel(), rtol=0, atol=1e-8)
    np.testing.assert_allclose(twice - 2 * z.real * once + abs(z) ** 2 * here[:, 1:].ravel(), 0, rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", ["capped", "race"])
@pytest.mark.parametrize("laws", [1, 2])
def test_against_dense_eigenvalues(rule, laws):
    complex_leads = 0
    for seed in range(3):
        instance, policy = random_pair(seed, rule, laws=laws, servers_per_task=1 + (seed == 2))
        system = fluid_system(instance, policy)
        found = check(system, solve(system).state)
        complex_leads += found.eigenvalues[0].imag != 0
    assert complex_leads > 0  # of both kinds
    if laws == 2:  # a state that is no fixed point will do
        check(system, np.random.default_rng(0).dirichlet(np.ones(5), 5))


def test_complex_eigenvalues_of_the_rates():
    """Three servers, three types that prefer them in a circle: M has a complex pair, and each its own polynomial."""
    tier = [[0, 1, 2], [2, 0, 1], [1, 2, 0]]
    instance = make_instance(np.ones((3, 3)), [0.1, 0.2, 0.7], arrival_rate=[0.33, 0.33, 0.33])
    system = fluid_system(instance, make_policy("circle", tier))
    x = np.tile([0.6, 0.2, 0.1, 0.1], (3, 1))
    slopes = spectrum_module.rate_slopes(system, x)
    assert np.abs(np.linalg.eigvals(slopes[0]).imag).max() > 0.1
    check(system, x)


def test_repeated_eigenvalues_of_the_rates():
    """Random on equal servers: M = lambda k (I - 11'/R) / (R phi) has one eigenvalue R - 1 times."""
    instance = make_instance(np.ones((1, 6)), [0.0, 0.0, 1.0], arrival_rate=[0.8])
    system = fluid_system(instance, make_policy("random", np.zeros((1, 6))))
    x = solve(system).state
    found = check(system, x)
    phi = 1 - 3 * 0.8 / 6
    np.testing.assert_allclose(x[:, 0], phi, rtol=1e-12)
    roots = np.roots([1, *[0.8 / (6 * phi)] * 3])
    assert len(found.eigenvalues) == 15
    np.testing.assert_allclose(found.radius, np.abs(roots).max(), rtol=1e-9)


def test_by_hand():
    """One task a step, strict order, D = 1: server 0 is taken whole, server 1 gets 1 - phi_0 = x[0, 1]. G is a 2-cycle there."""
    for rate in (1.0, 0.9):
        instance = make_instance([[1.0, 0.5, 0.2]], [1.0], arrival_rate=[rate])
        system = fluid_system(instance, make_policy("order", [[0, 1, 2]]))
        found = spectrum(system, solve(system).state)
        np.testing.assert_allclose(found.eigenvalues, -rate, rtol=1e-12)


def test_nothing_moves():
    """All servers are taken whole whatever phi: with budgets to spare M = lambda I, its polynomials are all there is."""
    instance = make_instance([[1.0, 1.0]], [1.0], servers_per_task=1, arrival_rate=[0.5])
    system = fluid_system(instance, make_policy("order", [[0, 1]]))
    x = np.array([[0.3, 0.7], [0.2, 0.8]])  # shortage: each is taken
    np.testing.assert_allclose(spectrum(system, x).eigenvalues, [-0.5, -0.5])


def test_leading_eigenvalues_of_a_large_system(monkeypatch):
    instance, policy = random_pair(3, "race", laws=2, servers=12, longest=20, types=4)
    system = fluid_system(instance, policy)
    x = solve(system).state
    dense = spectrum(system, x)
    monkeypatch.setattr(spectrum_module, "DENSE", 10)
    found = spectrum(system, x)
    assert dense.whole and not found.whole
    assert len(found.eigenvalues) == spectrum_module.LEADING
    np.testing.assert_allclose(np.abs(found.eigenvalues[:20]), np.abs(dense.eigenvalues[:20]), rtol=1e-8)
    np.testing.assert_allclose(found.radius, dense.radius, rtol=1e-10)
    check_direction(system, x, found)


@pytest.mark.rounding
@pytest.mark.parametrize("name, load", [("priority", 0.6), ("unfriendly", 0.4)])
def test_trajectories_shrink_at_the_predicted_rate(name, load):
    """From x* + eps direction G^t stays on the plane of z and its conjugate, to second order in eps.

    There y_{t+2} - 2 Re(z) y_{t+1} + |z|^2 y_t = 0, and y_{t+1} - conj(z) y_t shrinks by |z| at every step. Its slope is
    fitted while it is above 1e-9. Rounding accumulates to about 1e-13 in norm, so to 1e-4 of it, and what is of second
    order to eps / (1 - |z|) = 2e-3. Over more than 100 steps that is an error of the rate below 1e-4.
    """
    instance = gallery(name, load)
    system = fluid_system(instance, build_policy("random" if name == "unfriendly" else "lag", instance))
    x = np.asarray(solve(system).state)
    found = spectrum(system, x)
    np.testing.assert_allclose(found.direction.sum(axis=1), 0, rtol=0, atol=1e-13)
    step, z = jax.tree_util.Partial(fluid_map, system), found.eigenvalues[0]
    assert 0.5 < found.radius < 1 and z.imag != 0
    y, state = [1e-4 * found.direction], x + 1e-4 * found.direction
    while np.linalg.norm(y[-1]) > 1e-9 and len(y) < 1000:
        state = run(step, state, 1)
        y.append(np.asarray(state) - x)
    y = np.array(y).reshape(len(y), -1)
    residual = y[2:] - 2 * z.real * y[1:-1] + abs(z) ** 2 * y[:-2]
    np.testing.assert_allclose(residual, 0, rtol=0, atol=1e-7)  # eps^2 = 1e-8, times a curvature of order 1
    amplitude = np.linalg.norm(y[1:] - np.conj(z) * y[:-1], axis=1)
    amplitude = amplitude[amplitude > 1e-9]
    assert len(amplitude) > 100
    slope = np.polyfit(np.arange(len(amplitude)), np.log(amplitude), 1)[0]
    np.testing.assert_allclose(np.exp(slope), found.radius, rtol=1e-4)
