"""The search for trajectories that do not settle: planted cycles and second fixed points are found, slow maps undecided."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_fluids import random_fluid, random_states

from lagjax.errors import InputError
from lagjax.fluid import Starts, find_attractor, fixed_point, fluid_map, fluid_system, make_starts
from lagjax.fluid.attractor import BLOCK, RECORDS, total_variation
from lagjax.instance import make_instance
from lagjax.policies import build_policy

Partial = jax.tree_util.Partial
solve, apply = jax.jit(fixed_point), jax.jit(fluid_map)


@pytest.fixture(autouse=True)
def in_float64():
    with jax.enable_x64(True):
        yield


def one_type(rate):
    """LAG, one task a step at most, one step of service: three servers in a strict order.

    With phi_0 free at server 0 it takes rate phi_0, and what it took returns after a step: phi_0' = 1 - rate phi_0.
    """
    instance = make_instance([[1.0, 0.5, 0.2]], [1.0], arrival_rate=[rate])
    policy = build_policy("lag", instance)
    np.testing.assert_array_equal(policy.tier, [[0, 1, 2]])
    return fluid_system(instance, policy)


def kinds(states):
    return Starts(states, tuple(f"start {n}" for n in range(len(states))))


def test_a_planted_cycle():
    """At rate 1 phi_0 -> 1 - phi_0: every start but 1/2 is on a 2-cycle, by hand."""
    system = one_type(1.0)
    x = np.array([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    np.testing.assert_array_equal(apply(system, x), x)
    free = np.array([1.0, 0.7, 0.5])
    states = np.stack([np.stack([[a, 1 - a], [1 - a, a], [1.0, 0.0]]) for a in free])
    found = find_attractor(Partial(fluid_map, system), x, kinds(states), 59)
    assert found.verdict == "false" and found.cycle_length == 2
    np.testing.assert_allclose(found.distance[-1], [0.5, 0.2, 0], rtol=0, atol=1e-15)
    assert found.slowest == 0 and found.max_final_distance == pytest.approx(0.5)
    np.testing.assert_allclose(found.cycle[0, :2, 0], [0, 1], atol=1e-15)
    np.testing.assert_allclose(found.cycle[1, :2, 0], [1, 0], atol=1e-15)
    np.testing.assert_allclose(found.final_state, states[:, [1, 0, 2]], rtol=0, atol=1e-15)  # an odd number of steps
    # from the fixed point alone there is nothing to see
    still = find_attractor(Partial(fluid_map, system), x, kinds(states[2:]), 59)
    assert still.verdict == "true" and still.cycle_length is None and still.cycle is None


def test_the_same_system_at_a_lower_rate_settles():
    """phi_0' = 1 - 0.9 phi_0: distances shrink by 0.9 a step, exactly."""
    system = one_type(0.9)
    x = np.asarray(solve(system).state)
    np.testing.assert_allclose(x[0, 0], 1 / 1.9, rtol=1e-13)
    starts = make_starts(BLOCK, x)
    found = find_attractor(Partial(fluid_map, system), x, starts, 179)
    assert found.verdict == "true" and found.cycle_length is None
    assert found.max_final_distance <= found.tolerance
    assert found.kind == starts.kind and list(found.times) == list(range(180))
    first = np.abs(starts.state[:, 0, 0] - x[0, 0])
    of_server = np.abs(first * 0.9 ** np.arange(180)[:, None])
    assert np.all(found.distance >= of_server - 1e-12)
    reached = (found.distance > found.tolerance).sum(axis=0)
    assert reached[found.slowest] == reached.max()
    # stopped too early to tell
    short = find_attractor(Partial(fluid_map, system), x, starts, 59)
    assert short.verdict == "undecided"


def two_corners(x):
    """Each row moves x[0] to 3 x^2 - 2 x^3: fixed points 0, 1/2 (unstable) and 1."""
    free = x[..., :1]
    free = free**2 * (3 - 2 * free)
    return jnp.concatenate([free, 1 - free], axis=-1)


def test_a_planted_second_fixed_point():
    target = np.array([[1.0, 0.0]])
    free = np.array([0.9, 0.6, 0.3])
    found = find_attractor(two_corners, target, kinds(np.stack([free, 1 - free], axis=-1)[:, None]), 40)
    assert found.verdict == "false" and found.cycle_length == 1
    np.testing.assert_allclose(found.cycle, [[[0, 1]]], rtol=0, atol=1e-14)
    np.testing.assert_allclose(found.distance[-1], [0, 0, 1], rtol=0, atol=1e-14)
    assert found.slowest == 2
    near = find_attractor(two_corners, target, kinds(np.stack([free, 1 - free], axis=-1)[:2, None]), 40)
    assert near.verdict == "true"


def about(target, turn, x):
    """target + (x - target) turn: with its arrays as data, one program for all such maps."""
    return target + (x - target) @ turn


def towards(rate):
    target = np.array([[0.5, 0.25, 0.25]])
    return target, Partial(about, target, rate * np.eye(3))


@pytest.mark.parametrize("rate", [0.9999, 1 - 1e-9])
def test_slow_is_undecided(rate):
    target, step = towards(rate)
    starts = make_starts(BLOCK, target)
    found = find_attractor(step, target, starts, 500)
    assert found.verdict == "undecided" and found.cycle_length is None
    first = total_variation(starts.state, target)
    np.testing.assert_allclose(found.distance[-1], first * rate**500, rtol=1e-9)


def test_a_rotation_is_undecided():
    """By one radian about the fixed point: never back."""
    target = np.array([[1.0, 1.0, 1.0]]) / 3
    axis = np.ones(3) / np.sqrt(3)
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    turn = np.eye(3) + np.sin(1) * cross + (1 - np.cos(1)) * cross @ cross
    start = target + 0.1 * np.array([[1.0, -1.0, 0.0]])
    found = find_attractor(Partial(about, target, turn.T), target, kinds(start[None]), 200)
    assert found.verdict == "undecided" and found.cycle_length is None
    # but by a fifth of a circle it is a cycle of 5
    angle = 2 * np.pi / 5
    fifth = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    found = find_attractor(Partial(about, target, fifth.T), target, kinds(start[None]), 10)
    assert found.verdict == "false" and found.cycle_length == 5
    around = found.cycle - target
    np.testing.assert_allclose(np.linalg.norm(around, axis=(1, 2)), 0.1 * np.sqrt(2), rtol=1e-12)
    np.testing.assert_allclose(around.sum(axis=0), 0, atol=1e-12)


def test_divergence_does_not_settle():
    target, step = towards(1e300)
    found = find_attractor(step, target, make_starts(3, target), 3)
    assert found.verdict == "undecided"  # nan is not near


def test_records_are_the_distances_along_the_way():
    """More steps than records: the same trajectories, at the times that are kept."""
    system = random_fluid(1, "race")
    x = np.asarray(solve(system).state)
    states = random_states(np.random.default_rng(1), 5, 5, 5)
    calls = []
    found = find_attractor(
        Partial(fluid_map, system), x, kinds(states), 801, progress=lambda done, of: calls.append((done, of))
    )
    assert len(found.times) == RECORDS + 1 and found.times[0] == 0 and found.times[-1] == 801
    assert calls[-1] == (801, 801) and calls == sorted(calls) and len(calls) == 20
    there, at = states, dict(zip(found.times.tolist(), found.distance, strict=True))
    for t in range(802):
        if t in at:
            apart = np.abs(there - x).sum(axis=-1).max(axis=-1) / 2
            np.testing.assert_allclose(at[t], apart, rtol=0, atol=1e-14)
        last, there = there, np.asarray(apply(system, there))
    np.testing.assert_allclose(found.final_state, last, rtol=0, atol=1e-14)


def test_the_same_on_any_number_of_devices_and_starts():
    """Bitwise."""
    system = random_fluid(2, "capped")
    step, x = Partial(fluid_map, system), np.asarray(solve(system).state)
    count = 2 * BLOCK + 3
    starts = make_starts(count, x, seed=4)
    both = find_attractor(step, x, starts, 19)
    assert len(jax.local_devices()) == 2
    one = find_attractor(step, x, starts, 19, devices=jax.local_devices()[:1])
    np.testing.assert_array_equal(one.distance, both.distance)
    np.testing.assert_array_equal(one.final_state, both.final_state)
    some = slice(1, BLOCK)  # fewer, in other places of a block
    part = find_attractor(step, x, Starts(starts.state[some], starts.kind[some]), 19)
    np.testing.assert_array_equal(part.distance, both.distance[:, some])
    np.testing.assert_array_equal(part.final_state, both.final_state[some])


def test_single_precision():
    """The cycle is seen there too, and the lower rate settles: what counts as settled is small against 1."""
    system = one_type(1.0)
    x = np.float32([[0.5, 0.5], [0.5, 0.5], [1.0, 0.0]])
    states = np.stack([np.stack([[a, 1 - a], [1 - a, a], [1.0, 0.0]]) for a in (1.0, 0.7)])
    with jax.enable_x64(False):
        found = find_attractor(Partial(fluid_map, system), x, kinds(states), 59)
        slower = one_type(0.9)
        x = np.asarray(solve(slower).state)
        starts = make_starts(BLOCK, x)
        assert find_attractor(Partial(fluid_map, slower), x, starts, 179).verdict == "true"
    assert found.final_state.dtype == np.float32
    assert 1e-6 < found.tolerance < 1e-2
    assert found.verdict == "false" and found.cycle_length == 2


def test_bad_arguments():
    target, step = towards(0.5)
    starts = make_starts(3, target)
    for steps in (0, -1, 2.5, True):
        with pytest.raises(InputError, match="steps is"):
            find_attractor(step, target, starts, steps)
    with pytest.raises(InputError, match=r"starts have states of shape \(1, 3\); the fixed point has \(2, 3\)"):
        find_attractor(step, np.repeat(target, 2, axis=0), starts, 5)
    with jax.enable_x64(False), pytest.raises(InputError, match="enable_x64"):
        find_attractor(step, target, starts, 5)


@pytest.mark.parametrize("short", [1e-8, 1e-11, 1e-12])
def test_almost_a_cycle_is_undecided(short):
    """The planted system with 1 - short tasks a step settles at that rate: too slow to see, but no cycle."""
    system = one_type(1 - short)
    step, target = Partial(fluid_map, system), np.asarray(solve(system).state)
    for starts in (make_starts(BLOCK, target), kinds(target[None] + 1e-3 * np.array([[[1.0, -1.0], [0, 0], [0, 0]]]))):
        found = find_attractor(step, target, starts, 50)
        assert found.verdict == "undecided" and found.cycle_length is None


def test_what_is_no_state_or_no_fixed_point_is_refused():
    system = one_type(0.9)
    step, target = Partial(fluid_map, system), np.asarray(solve(system).state)
    starts = make_starts(3, target)
    for bad, said in (
        (Starts(np.zeros((0, *target.shape)), ()), "starts has none"),
        (starts._replace(state=2 * starts.state), "misses 1"),
        (starts._replace(state=np.nan * starts.state), "not finite"),
    ):
        with pytest.raises(InputError, match=said):
            find_attractor(step, target, bad, 10)
    free = np.tile([1.0, 0.0], (3, 1))
    with pytest.raises(InputError, match="moves by"):
        find_attractor(step, free, starts, 10)
    with pytest.raises(InputError, match="at most"):
        find_attractor(step, target, starts, 10**11)
