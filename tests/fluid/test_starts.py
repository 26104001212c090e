"""Starts: states, of every kind, the same for a seed; and the worst are worse than random ones."""

import jax
import numpy as np
import pytest
from small_fluids import random_fluid

from lagjax.fluid import fixed_point, fluid_map, iterate, make_starts, spectrum, worst_starts


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def are_states(starts, count, servers, stages):
    assert starts.state.shape == (count, servers, stages) and len(starts.kind) == count
    assert np.all(starts.state >= 0)
    np.testing.assert_allclose(starts.state.sum(axis=2), 1, rtol=0, atol=1e-14)


def test_states_for_every_count():
    random = np.random.default_rng(0)
    for stages in (2, 3, 9):
        x = random.dirichlet(np.ones(stages), 4)
        direction = random.normal(size=x.shape)
        direction -= direction.mean(axis=1, keepdims=True)
        for count in range(1, 41):
            are_states(make_starts(count, x), count, 4, stages)
            are_states(make_starts(count, x, direction, seed=count), count, 4, stages)


def test_kinds_say_what_they_are():
    x = np.random.default_rng(1).dirichlet(np.ones(6), 3)
    direction = np.zeros((3, 6))
    direction[:, 0], direction[:, 1] = 1, -1
    starts = make_starts(60, x, direction)
    assert len(set(starts.kind)) >= 8
    for state, kind in zip(starts.state, starts.kind, strict=True):
        apart = np.abs(state - x).max()
        if kind == "all free":
            np.testing.assert_array_equal(state[:, 0], 1)
        elif kind == "all busy, just begun":
            np.testing.assert_array_equal(state[:, 5], 1)
        elif kind.startswith("all with"):
            np.testing.assert_array_equal(state[:, int(kind.split()[2])], 1)
        elif kind == "random vertex":
            np.testing.assert_array_equal(state.max(axis=1), 1)
        elif kind == "near the fixed point, slowest direction":
            np.testing.assert_allclose((state - x) / apart, direction, rtol=0, atol=1e-9)
        if "near" in kind:
            assert 0 < apart <= 1.001e-3
    assert starts.kind.count("Dirichlet") > 20


def test_near_starts_stay_in_the_state_space():
    """Where x* has empty stages a direction that leaves X is not followed beyond it."""
    x = np.array([[0.0, 0.5, 0.5], [1e-5, 0.5, 0.5 - 1e-5]])
    for sign in (1, -1):
        direction = sign * np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
        are_states(make_starts(30, x, direction), 30, 2, 3)


def test_a_seed_decides():
    x = np.random.default_rng(2).dirichlet(np.ones(5), 3)
    here, again, other = make_starts(30, x, seed=1), make_starts(30, x, seed=1), make_starts(30, x, seed=2)
    np.testing.assert_array_equal(here.state, again.state)
    assert here.kind == again.kind == other.kind
    chance = np.array(["Dirichlet" in k or "random" in k or k == "near the fixed point" for k in here.kind])
    assert np.all(
        np.abs(here.state - other.state).max(axis=(1, 2))[chance & (np.array(here.kind) != "random vertex")] > 0
    )
    np.testing.assert_array_equal(here.state[~chance], other.state[~chance])
    # more starts only add to them
    np.testing.assert_array_equal(make_starts(17, x, seed=1).state, here.state[:17])


@pytest.mark.parametrize("rule", ["capped", "race"])
def test_the_worst_are_worse(rule):
    system = random_fluid(4, rule)
    step, x = jax.tree_util.Partial(fluid_map, system), np.asarray(fixed_point(system).state)
    worst = worst_starts(step, x, 3, seed=1)
    are_states(worst, 3, 5, 5)
    assert set(worst.kind) == {"worst found by gradient ascent"}
    np.testing.assert_array_equal(worst_starts(step, x, 3, seed=1).state, worst.state)

    def after(starts):
        return np.linalg.norm((run(step, starts.state, 10) - x).reshape(len(starts.state), -1), axis=1)

    run = jax.jit(iterate, static_argnums=2)
    random = make_starts(60, x, spectrum(system, x).direction, seed=3)
    random = type(random)(random.state[20:], random.kind[20:])
    assert np.all(after(worst) >= np.median(after(random)))
    assert after(worst).max() > np.quantile(after(random), 0.9)
    if rule == "race":
        assert np.abs(worst_starts(step, x, 3, seed=2).state - worst.state).max() > 0
