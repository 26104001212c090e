"""Simulation against chains solved exactly, the fixed point, and itself cut in other ways.

Bounds are 6.5 standard errors of the means of 32 bundles: with 31 degrees of freedom a false alarm has a chance of 3e-7 a figure,
at fixed seeds.
"""

import jax
import numpy as np
import pytest
import queue_pairs

from lagjax.compatibility import (
    bundle_means,
    complete,
    fixed_point,
    graph_of,
    join_idle_queue,
    jsq,
    queues,
    random_routing,
    regular,
    ring,
    simulate,
    trace,
    trajectory,
)  # fmt: skip
from lagjax.errors import InputError

SIGMAS = {32: 6.5}


def shorter(x):
    return 1.0 if x[0] < x[1] else 0.5 if x[0] == x[1] else 0.0


def near(samples, exact):
    """Whether the mean of (..., bundles) agrees with the exact values."""
    n = samples.shape[-1]
    error = samples.std(axis=-1, ddof=1) / np.sqrt(n)
    assert np.all(np.abs(samples.mean(axis=-1) - exact) <= SIGMAS[n] * error + 1e-12), (samples.mean(-1), exact, error)


def measured(graph, policy, load, **how):
    windows = simulate(graph, policy, load, **how)
    observations = graph.num_servers * sum(w.observations for w in windows)
    return tuple(bundle_means((windows[0][k] + windows[1][k]) / observations) for k in (0, 1))


def test_one_server_is_mm1():
    occupancy, tasks = measured(complete(1, 1), jsq(2), 0.6, time=400, warmup=60, replicas=2048)
    near(occupancy[:8], 0.6 ** np.arange(1, 9))
    near(tasks, 0.6 / 0.4)


TWO = {
    "jsq": ([[0, 1]], jsq(2), shorter),
    "random": ([[0, 1]], random_routing(), lambda x: 0.5),
    "jiq": ([[0, 1]], join_idle_queue(), lambda x: shorter((min(x[0], 1), min(x[1], 1)))),
    "one type is bound": ([[0], [0, 1], [1], [1, 0]], jsq(2), shorter),
    "uneven": ([[0, 1], [0, 1], [1]], jsq(), shorter),
}


@pytest.mark.parametrize("name", TWO)
def test_two_servers_are_the_exact_chain(name):
    types, policy, rule = TWO[name]
    exact = queue_pairs.two_servers(types, 0.5, rule)
    assert exact.edge < 1e-10
    graph = graph_of(name, [np.array(t) for t in types], 2)
    occupancy, tasks = measured(graph, policy, 0.5, time=300, warmup=60, replicas=2048, seed=3)
    near(occupancy[:6], exact.occupancy[:6])
    near(tasks, exact.queue_length)


def test_looking_at_all_is_join_the_shortest_queue():
    """d = N on the complete graph is JSQ, bit for bit, and so is any larger d."""
    graph = complete(5, 5)
    runs = [simulate(graph, policy, 0.8, time=20, replicas=64) for policy in (jsq(5), jsq(17), jsq())]
    for other in runs[1:]:
        np.testing.assert_array_equal(other[1].servers, runs[0][1].servers)


def test_ten_thousand_servers_are_at_the_fixed_point():
    """Of 8 bundles: at 7 degrees of freedom 17 standard errors are 6e-7; 1e-4 is left for a bias of order 1 / N."""
    star = fixed_point(jsq(2), 0.8, 64)
    windows = simulate(complete(10_000, 10_000), jsq(2), 0.8, time=6, warmup=3, replicas=512, start=star)
    found = bundle_means((windows[0].servers + windows[1].servers) / (6 * 10_000))
    error = found.std(axis=1, ddof=1) / np.sqrt(8)
    assert np.all(error < 1e-3)  # else the test says nothing
    assert np.all(np.abs(found.mean(axis=1) - star) < 1e-4 + 17 * error)
    assert np.abs(found.mean(axis=1) - star).max() < 5e-3


def test_a_sparse_regular_graph_matches_the_flexible_system_and_a_ring_does_not():
    """Degree ln(N)^2: all occupancies within 1% for the regular graph; for the ring of that degree one is 1.8% off.

    Standard errors of the occupancies are below 0.0007.
    """
    servers, degree, load = 300, 33, 0.95
    how = {"time": 100, "warmup": 40, "replicas": 1024, "start": fixed_point(jsq(2), load, 64), "seed": 2}
    flexible, even, near_ring = (
        measured(graph, jsq(2), load, **how)[0].mean(axis=1)
        for graph in (complete(servers, servers), regular(servers, servers, degree), ring(servers, servers, degree))
    )
    assert np.abs(even - flexible).max() < 0.01
    assert np.abs(near_ring - flexible).max() > 0.013


def test_trajectories_follow_the_ode_from_the_same_start_only_where_the_graph_allows_it():
    times, start = np.arange(1, 7) * 1.0, (0.5,) * 4
    path = trajectory(jsq(2), 0.9, times, start)[:, :8]
    far = {}
    for graph in (regular(1000, 1000, 48), ring(1000, 1000, 48)):
        seen = trace(graph, jsq(2), 0.9, times=times, start=start, together=True, replicas=128)
        far[graph.name] = np.abs(seen.mean(axis=2)[:, :8] - path).max()
    assert far["regular"] < 0.015
    assert far["ring"] > 0.08
    scattered = trace(ring(1000, 1000, 48), jsq(2), 0.9, times=times, start=start, replicas=128)
    assert np.abs(scattered.mean(axis=2)[:, :8] - path).max() < 0.02


def test_the_clock_of_a_trajectory_is_poisson():
    """M/M/1 from empty: P(busy at t), by the transient chain; a clock of a fixed number of events would be far off."""
    times = np.array([0.5, 1.0, 3.0])
    seen = bundle_means(trace(complete(1, 1), jsq(1), 0.7, times=times, replicas=2**15)[:, 0])
    rates = np.zeros((60, 60))
    for n in range(60):
        if n < 59:
            rates[n, n + 1] = 0.7
        if n:
            rates[n, n - 1] = 1.0
        rates[n, n] = -rates[n].sum()
    values, vectors = np.linalg.eig(rates.T)
    first = np.linalg.solve(vectors, np.eye(60)[0])
    exact = [1 - (vectors @ (np.exp(values * t) * first))[0].real for t in times]
    error = seen.std(axis=1, ddof=1) / np.sqrt(seen.shape[1])
    assert np.all(np.abs(seen.mean(axis=1) - exact) < 5 * error)


CUTS = {"fewer replicas": {"replicas": 64}, "one interval a call": {"chunk": 1}, "one device": {"devices": 1}}


@pytest.mark.parametrize("cut", CUTS)
def test_however_the_work_is_cut(cut):
    graph = regular(30, 30, 6)
    whole = simulate(graph, jsq(2), 0.9, time=9, warmup=3, replicas=192, seed=5)
    how = {"replicas": 192, **CUTS[cut]}
    if "devices" in how:
        how["devices"] = jax.local_devices()[: how["devices"]]
    part = simulate(graph, jsq(2), 0.9, time=9, warmup=3, seed=5, **how)
    for half, expected in zip(part, whole, strict=True):
        np.testing.assert_array_equal(half.servers, expected.servers[:, : how["replicas"]])
        np.testing.assert_array_equal(half.tasks, expected.tasks[: how["replicas"]])
    assert len(np.unique(whole[0].tasks)) > 60  # replicas differ


def test_long_queues_get_a_wider_dtype_and_the_same_counts(monkeypatch):
    how = {"time": 40, "replicas": 64, "start": (1.0,) * 120}
    narrow = simulate(complete(3, 3), random_routing(), 0.9, **how)
    monkeypatch.setattr(queues, "GUARD", 150)  # 105 tasks are too many for a byte now
    wide = simulate(complete(3, 3), random_routing(), 0.9, **how)
    np.testing.assert_array_equal(wide[1].tasks, narrow[1].tasks)
    assert narrow[0].tasks.mean() / (3 * 20) > 105


def test_a_system_that_cannot_carry_its_load_is_named(monkeypatch):
    monkeypatch.setattr(queues, "LONGEST", 40)
    graph = graph_of("star", [np.array([0]), np.array([0]), np.array([1, 2])], 3)
    with pytest.raises(InputError, match=r"graph 'star'.*does not carry this load"):
        simulate(graph, jsq(2), 0.9, time=200, replicas=64, allow_overloaded=True)


def test_bundles_of_intervals_cover_the_truth():
    """95% intervals of 8 bundles cover M/M/1's mean: too few of 40 would do so by chance 1e-6 at a coverage of 92%."""
    from scipy.stats import binom

    from lagjax.stats import estimate

    _, tasks = measured(complete(2, 2), random_routing(), 0.5, time=100, warmup=40, replicas=64 * 8 * 40)
    groups = estimate(tasks.reshape(40, 8))
    covered = int(np.sum(np.abs(groups.mean - 1.0) <= groups.ci95))
    assert binom.ppf(1e-6, 40, 0.92) <= covered


BAD = [
    ({"start": "stationary"}, "start 'stationary' is not known for policy 'jsq\\(2\\)' on graph 'complete'"),
    ({"load": 1.0}, "load is 1"),
    ({"load": -0.2}, "load is -0.2"),
    ({"replicas": 100}, "multiple of 64"),
    ({"time": 1}, "time is 1"),
    ({"seed": -1}, "seed is -1"),
    ({"start": (0.2, 0.4)}, "start is no occupancy"),
    ({"time": 10**9}, "more than 2\\^32 events"),
]


@pytest.mark.parametrize(("change", "message"), BAD, ids=[m for _, m in BAD])
def test_bad_arguments(change, message):
    how = {"load": 0.5, "time": 4, "replicas": 64, **change}
    with pytest.raises(InputError, match=message):
        simulate(complete(4, 4), jsq(2), how.pop("load"), **how)
