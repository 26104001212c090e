"""The scaled system beside its fluid trajectory: the trace, distances of known law, and distances that must not vanish."""

import dataclasses

import jax
import numpy as np
import pytest
from scipy.stats import binom
from scipy.stats import t as student_t

from lagjax.engine.scaled_run import simulate_scaled, trace_scaled
from lagjax.errors import InputError
from lagjax.fluid import compare, fluid_system, lp_fixed_point
from lagjax.fluid.compare import compare_with_simulation, fluid_trajectory
from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.lp import solve_occ
from lagjax.models.scaled import whole_copies
from lagjax.plots.fluid_gap import plot_fluid_gap
from lagjax.policies import build_policy, make_policy
from lagjax.studies.convergence import sizes_of

FALSE_ALARM = 1e-6  # of each statistical test here


REPLICAS, MOST = 48, 128  # of all runs of `small`, so that one program serves them


def small(kind="lag"):
    """Three servers, two types of tasks with laws of their own, whose last column is of zeros; and a policy."""
    instance = make_instance(
        [[1.0, 0.6, 0.2], [0.3, 0.9, 0.5]], [[0.2, 0.3, 0.5, 0, 0], [0, 0, 0, 0.6, 0.4]], load=0.5, mix=[2, 1]
    )
    instance = dataclasses.replace(instance, service_pmf=np.pad(instance.service_pmf, ((0, 0), (0, 1))))
    if kind == "lag":
        return instance, build_policy("lag", instance)
    return instance, make_policy("weighted", [[0, 0, 1], [0, 0, 0]], [[3, 1, 1], [1, 5, 2]], "race")


def one_type(rate=0.5):
    """One type of task, three steps of service, three servers in order."""
    instance = make_instance(np.ones((1, 3)), [0, 0, 1.0], arrival_rate=[rate])
    return instance, make_policy("strict", [[0, 1, 2]], rule="capped")


def all_free(instance):
    return np.eye(1, instance.max_duration + 1).repeat(instance.num_servers, axis=0)


def random_state(instance, seed=0):
    return np.random.default_rng(seed).dirichlet(np.ones(instance.max_duration + 1), instance.num_servers)


@pytest.mark.parametrize(("copies", "dispatchers"), [(1, 1), (7, 3)])
def test_the_trace_is_the_path_that_is_counted(copies, dispatchers):
    """Copies that start service between states, recovered from the states, are those that `simulate_scaled` counts."""
    instance, policy = small()
    total, start = copies * dispatchers, random_state(instance)
    size = {
        "copies": copies, "dispatchers": dispatchers, "replicas": REPLICAS, "seed": 3, "start": start, "most_dispatchers": MOST,
    }  # fmt: skip
    states = np.array(list(trace_scaled(instance, policy, steps=40, **size)))
    assert states.shape == (41, REPLICAS, 3, 7) and states.dtype == np.float32
    counts = np.rint(states * np.float64(total)).astype(np.int64)
    np.testing.assert_allclose(states, counts / total, atol=1e-7)
    np.testing.assert_array_equal(counts.sum(axis=-1), total)
    for b in range(REPLICAS):
        np.testing.assert_array_equal(counts[0, b], whole_copies(start, total))
    aged = np.concatenate([counts[:-1, :, :, 2:], np.zeros_like(counts[1:, :, :, :1])], axis=-1)
    begun = counts[1:, :, :, 1:] - aged
    assert np.all(begun >= 0) and begun.sum() > 0
    for warmup in (0, 9):
        first = warmup
        for half in simulate_scaled(instance, policy, steps=40 - warmup, warmup=warmup, **size):
            window = begun[first : first + half.steps]
            np.testing.assert_array_equal(window.sum(axis=(0, 3)), half.served.sum(axis=0).T)
            first += half.steps
    np.testing.assert_array_equal(list(trace_scaled(instance, policy, steps=43, every=8, **size))[:6], states[::8])


def test_a_trace_starts_free_unless_told():
    instance, policy = small()
    first = next(trace_scaled(instance, policy, copies=4, dispatchers=2, steps=0, replicas=2))
    np.testing.assert_array_equal(first, np.broadcast_to(all_free(instance), first.shape))


def test_the_trajectory_is_float64_and_the_switch_stays():
    instance = priority(0.8)
    x_hat = lp_fixed_point(instance, solve_occ(instance))
    assert not jax.config.jax_enable_x64
    for x in fluid_trajectory(instance, build_policy("lag", instance), x_hat, 5):
        assert x.dtype == np.float64 and not jax.config.jax_enable_x64
        assert np.abs(x - x_hat).max() < 1e-12


SIZES = [(4, 1), (16, 4), (64, 64), (100, 1024)]  # the last one in all runs of `one_type`: one program


def test_one_step_has_the_binomial_distance():
    """From all free, each task takes all n copies of server 0 that its dispatcher has: X is Binomial(m, lambda) / m."""
    rate, replicas = 0.3, 400
    instance, policy = one_type(rate)
    data = compare_with_simulation(instance, policy, SIZES, all_free(instance), 1, replicas, seed=5)
    assert data.sizes == {"size": 4, "replica": replicas} and list(data.dispatchers) == [m for _, m in SIZES]
    sigmas = student_t.isf(FALSE_ALARM / 2 / len(SIZES), replicas - 1)
    for place, (_, m) in enumerate(SIZES):
        found = data.sup_distance[place].values
        tasks = np.rint((rate - found) * m), np.rint((rate + found) * m)
        assert np.all(np.min([np.abs(np.abs(b / m - rate) - found) for b in tasks], axis=0) < 1e-6)
        exact = float(np.abs(np.arange(m + 1) / m - rate) @ binom.pmf(np.arange(m + 1), m, rate))
        assert abs(found.mean() - exact) < sigmas * found.std(ddof=1) / np.sqrt(replicas), m
    assert list(data.shortage_steps) == [0] * 4


def compared(instance, policy, sizes):
    return compare_with_simulation(instance, policy, sizes, all_free(instance), 20, REPLICAS, seed=1)


@pytest.mark.parametrize("kind", ["lag", "weighted"])
def test_the_distance_falls_as_theory_says(kind):
    """-1/4 against n with m = floor(sqrt(n)), -1/2 against m.

    The standard error of the first is below 0.012. Its finite-size bias is below 0.03: 0.014 and 0.024 with 1,000 and 400
    replicas. So a correct program leaves the band of 0.09 with probability below 1e-6; a map that is not the limit does.
    """
    data = compared(*small(kind), sizes_of([64, 256, 1024, 4096, 16384]))
    assert data.slope_copies_error < 0.012
    assert abs(data.slope_copies + 1 / 4) < 0.09 and abs(data.slope_dispatchers + 1 / 2) < 0.18
    assert data.slope_dispatchers == pytest.approx(2 * data.slope_copies.item())
    assert list(data.shortage_steps) == [0] * 5


def test_more_copies_alone_do_not_bring_it_closer():
    data = compared(*small(), [(64, 4), (1024, 4), (16384, 4), (16384, MOST)])
    mean = data.mean_distance.values
    assert mean[2] > 0.85 * mean[0] and mean[3] < 0.4 * mean[0]


def test_a_wrong_map_is_told(monkeypatch):
    """The comparison can fail: with arrivals 10% too few in the map, the distance stays at 0.1 lambda after one step."""
    instance, policy = one_type(0.5)
    size = ([SIZES[-1]], all_free(instance), 1, 400)
    right = compare_with_simulation(instance, policy, *size)

    def too_few(instance, policy):
        system = fluid_system(instance, policy)
        return dataclasses.replace(system, arrival_rate=0.9 * system.arrival_rate)

    monkeypatch.setattr(compare, "fluid_system", too_few)
    wrong = compare_with_simulation(instance, policy, *size)
    # |Binomial(1024, 1/2) / 1024 - 1/2| has mean 0.0125 and deviation 0.0094, so 400 of them one of 0.0005
    assert abs(right.mean_distance - 0.0125) < 0.0025
    assert abs(wrong.mean_distance - 0.05) < 0.004
    assert compared(*small(), sizes_of([1024, 4096, 16384])).slope_copies > -0.15


def test_in_shortage_the_map_is_not_the_limit():
    """Half a server's worth free in all, k = 1: the map fills half of each task, the scaled system drops every task."""
    instance, policy = one_type(0.5)
    start = np.array([[0.25, 0, 0, 0.75]] * 2 + [[0, 0, 0, 1.0]])
    data = compare_with_simulation(instance, policy, [(256, 4), SIZES[-1]], start, 1, 400)
    np.testing.assert_allclose(data.sup_distance, 0.5 * 0.25, atol=1e-6)
    assert list(data.shortage_steps) == [2, 2]
    assert abs(data.slope_copies) < 1e-6


def test_faults_are_named():
    instance, policy = small()
    good = all_free(instance)
    run = {"copies": 4, "dispatchers": 2, "steps": 4, "replicas": 2}
    for start, message in (
        (good[:2], r"start has shape \(2, 7\); instance '.*' needs \(3, 7\)"),
        (good.T, r"start has shape \(7, 3\)"),
        (good * 0.5, r"start's row 0 sums to 0.5"),
        (good - np.eye(3, 7, 1) + np.eye(3, 7), "entry of -1"),
        (good * np.nan, "entry of nan"),
    ):
        for call in (
            lambda start=start: simulate_scaled(instance, policy, start=start, **run),
            lambda start=start: trace_scaled(instance, policy, start=start, **run),
            lambda start=start: compare_with_simulation(instance, policy, [(4, 2)], start, 4, 2),
        ):
            with pytest.raises(InputError, match=message) as caught:
                call()
            assert "\n" not in str(caught.value)
    with pytest.raises(InputError, match="sizes is empty"):
        compare_with_simulation(instance, policy, [], good, 4)
    with pytest.raises(InputError, match="every is 0"):
        trace_scaled(instance, policy, every=0, **run)


def test_the_picture_names_every_curve_and_the_theory(tmp_path):
    instance, policy = one_type()
    for sizes, theory in (([(4, 2), SIZES[-1]], "−1/4"), ([(100, 16), SIZES[-1]], "−1/2")):
        data = compare_with_simulation(instance, policy, sizes, all_free(instance), 1, 400)
        figure = plot_fluid_gap({"one $": data, "two": data})
        words = [text.get_text() for text in figure.legends[0].get_texts()]
        assert any(theory in w for w in words) and sum("slope" in w for w in words) == 2
        figure.savefig(tmp_path / "gap.png")
