"""The ODE and its fixed point."""

import numpy as np
import pytest

from lagjax.compatibility import (
    fixed_point,
    join_idle_queue,
    jsq,
    mean_queue_length,
    mean_sojourn,
    random_routing,
    trajectory,
)
from lagjax.compatibility.mean_field import drift
from lagjax.errors import InputError


@pytest.mark.parametrize("choices", [1, 2, 3, 10])
@pytest.mark.parametrize("load", [0.3, 0.9])
def test_nothing_moves_at_the_fixed_point(choices, load):
    star = fixed_point(jsq(choices), load, 400)
    assert np.abs(drift(star, load, choices)).max() < 1e-6  # float32
    np.testing.assert_allclose(star[0], load)
    # what comes to level i or higher leaves it
    np.testing.assert_allclose(load * np.r_[1.0, star[:-1]] ** choices, star, rtol=1e-9)
    assert mean_queue_length(jsq(choices), load) == pytest.approx(star.sum(), rel=1e-9)


def test_known_values():
    np.testing.assert_allclose(fixed_point(jsq(2), 0.9, 4), 0.9 ** np.array([1, 3, 7, 15]))
    assert mean_queue_length(random_routing(), 0.75) == pytest.approx(3.0)
    assert mean_sojourn(mean_queue_length(random_routing(), 0.75), 0.75) == pytest.approx(4.0)
    for policy in (jsq(), join_idle_queue()):
        np.testing.assert_array_equal(fixed_point(policy, 0.8, 3), [0.8, 0, 0])
        assert mean_queue_length(policy, 0.8) == 0.8


def test_trajectories_reach_the_fixed_point_and_conserve_tasks():
    times = np.r_[np.linspace(0.05, 10, 200), 400.0]
    path = trajectory(jsq(2), 0.9, times, (0.8, 0.5, 0.5))
    assert path.dtype == np.float64
    np.testing.assert_allclose(path[-1], fixed_point(jsq(2), 0.9, path.shape[1]), atol=1e-7)
    # d/dt sum_i q_i = lambda - q_1
    tasks, busy = path[:200].sum(axis=1), path[:200, 0]
    step = np.diff(times[:200])
    np.testing.assert_allclose(np.diff(tasks), step * (0.9 - (busy[1:] + busy[:-1]) / 2), atol=2e-5)
    assert (np.diff(path, axis=1) <= 1e-9).all()


def test_a_trajectory_starts_where_it_is_told():
    path = trajectory(jsq(3), 0.5, [0.0, 1.0], (1.0, 0.25))
    np.testing.assert_allclose(path[0, :3], [1.0, 0.25, 0.0])
    np.testing.assert_array_equal(trajectory(jsq(3), 0.5, [0.0])[0], 0)


BAD = [
    (lambda: fixed_point(jsq(2), 1.0, 3), "load is 1"),
    (lambda: trajectory(jsq(2), -0.5, [1.0]), "load is -0.5"),
    (lambda: trajectory(jsq(), 0.5, [1.0]), "no smooth mean field"),
    (lambda: trajectory(join_idle_queue(), 0.5, [1.0]), "no smooth mean field"),
    (lambda: trajectory(jsq(2), 0.5, [1.0, 1.0]), "increase"),
    (lambda: trajectory(jsq(2), 0.5, [1.0], (0.5, 0.6)), "no occupancy"),
    (lambda: trajectory(jsq(2), 0.5, [1.0], (1.5,)), "no occupancy"),
    (lambda: jsq(0), "choices is 0"),
    (lambda: jsq(1.5), "choices is 1.5"),
]


@pytest.mark.parametrize(("make", "message"), BAD, ids=[f"{m} {i}" for i, (_, m) in enumerate(BAD)])
def test_bad_arguments(make, message):
    with pytest.raises(InputError, match=message):
        make()
