"""Stationary figures do not depend on their start, or say that they do.

Random routing makes independent M/M/1 queues. Starts are of their exact law, half of them complements of the other half's, so a
mean over B replicas of N servers has a standard error of at most that of B N independent geometric queues,
sqrt(rho) / (1 - rho) / sqrt(B N), however slowly the queues move.
"""

import numpy as np
import pytest
import queue_pairs

from lagjax.compatibility import (
    blocks,
    complete,
    fixed_point,
    graph_of,
    jsq,
    named_policy,
    random_routing,
    starts,
)
from lagjax.compatibility.mean_field import TINY, levels_of, trajectory
from lagjax.errors import InputError
from lagjax.stats import RELAXATIONS, estimate
from lagjax.studies import compatibility as study
from lagjax.studies.compatibility import measure
from lagjax.studies.show_compat import describe

SERVERS, REPLICAS = 20, 128
SIGMAS = 5.0  # standard errors: 6e-7 for a mean of thousands of queues, one sided 3e-7


@pytest.mark.parametrize("policy", [random_routing(), jsq(1)], ids=lambda p: p.name)
@pytest.mark.parametrize("load", [0.97, 0.98, 0.99, 0.995])
def test_random_routing_is_mm1_at_any_load(policy, load):
    case = measure(complete(SERVERS, SERVERS), policy, load, time=10, warmup=3, replicas=REPLICAS)
    error = np.sqrt(load) / (1 - load) / np.sqrt(SERVERS * REPLICAS)
    assert case.queue_length.mean() == pytest.approx(load / (1 - load), abs=SIGMAS * error)
    share = np.sqrt(0.25 / (SERVERS * REPLICAS))
    np.testing.assert_allclose(case.occupancy.mean(axis=1), load ** np.arange(1, 65), atol=SIGMAS * share)
    found = describe(case)
    assert found["stationary"] is True
    assert found["queue_length_above_levels"] == pytest.approx(load**65 / (1 - load), abs=SIGMAS * error)


def test_servers_of_other_loads_have_their_own_law():
    """Two types bound to server 0, one to server 1, none to server 2: loads 2/3, 1/3 and 0 of all arrivals, each exact."""
    graph = graph_of("bound", [np.array([0]), np.array([0]), np.array([1])], 3)
    load = 0.45  # 0.9, 0.45 and 0
    assert starts.law_is_known(jsq(2), graph, load)  # nobody sees two servers
    queue = starts.stationary(graph, load, np.arange(50), seed=4)[:3]
    exact = np.array([0.9 / 0.1, 0.45 / 0.55, 0])
    error = np.sqrt([0.9, 0.45, 0]) / (1 - np.array([0.9, 0.45, 0])) / np.sqrt(queue.shape[1])
    assert np.all(np.abs(queue.mean(axis=1) - exact) <= SIGMAS * error)
    assert len(np.unique(queue[0, :64])) > 5  # replicas of a bundle have starts of their own
    np.testing.assert_array_equal(starts.stationary(graph, load, np.arange(2), seed=4)[:3], queue[:, :128])
    assert not starts.law_is_known(jsq(2), complete(3, 3), load)
    assert not starts.law_is_known(jsq(2), graph, 0.5)  # server 0 is overloaded


@pytest.mark.parametrize("load", [0.5, 0.97, 0.995, 0.9999])
@pytest.mark.parametrize("choices", [1, 2, 5])
def test_the_fixed_point_is_cut_where_nothing_is_left(choices, load):
    levels = levels_of(jsq(choices), load)
    tail = fixed_point(jsq(choices), load, levels + 1)[-1]
    assert tail <= TINY
    if choices == 1:
        assert levels <= 2 ** np.ceil(np.log2(max(8, np.log(TINY) / np.log(load) + 1)))


def test_a_trajectory_keeps_all_of_a_short_horizon_and_refuses_what_it_would_cut():
    """At load 0.99999 the fixed point has 3 million levels; within 3 mean services a start of 2 tasks reaches some 30."""
    path = trajectory(random_routing(), 0.99999, [3.0], (0.5, 0.5))[0]
    assert len(path) < 60 and path[-1] < 1e-9
    gained = path.sum() - 1.0
    assert 0 < gained < 3 * 0.99999
    with pytest.raises(InputError, match=r"needs 10\d,\d{3} levels of queues"):
        trajectory(random_routing(), 0.99999, [1e5], (0.5, 0.5))


def test_join_the_shortest_of_two_servers_is_warm_before_it_counts():
    """From the fixed point to twice as many tasks, exactly known: 6.5 standard errors of the means of 32 bundles, 3e-7.

    A warm-up that is named and too short is called so, however little the halves differ.
    """
    graph, load = complete(2, 2), 0.8
    needed = RELAXATIONS * study.relaxation(graph, load)
    assert needed == pytest.approx(3 / (2 * (1 - np.sqrt(load)) ** 2))
    exact = queue_pairs.two_servers([[0, 1]], load, lambda x: 1.0 if x[0] < x[1] else 0.5 if x[0] == x[1] else 0.0)
    assert exact.edge < 1e-5
    free = measure(graph, jsq(2), load, replicas=2048)
    assert free.warmup >= needed and free.time >= needed and free.stationary == 1
    found = estimate(free.queue_length)
    assert abs(found.mean - exact.queue_length) < 6.5 / 2.04 * found.ci95 < 0.15 * exact.queue_length
    forced = describe(measure(graph, jsq(2), load, time=20, warmup=50, replicas=128))
    assert forced["stationary"] is False and (forced["time"], forced["warmup"]) == (20, 50)


def test_runs_go_on_while_they_drift_and_end_at_a_bound(monkeypatch):
    """A warm-up of relaxation times that is kept from working: the halves themselves say that the start is not gone."""
    monkeypatch.setattr(study, "relaxation", lambda graph, load: 0.0)
    monkeypatch.setattr(study, "WARMUP", 0)
    graph = complete(2, 2)
    free = measure(graph, jsq(2), 0.9, replicas=512)
    assert free.stationary == 1 and free.warmup >= 100 and free.time == 2 * free.warmup
    monkeypatch.setattr(study, "MOST_TIMES", 1)
    bounded = measure(graph, jsq(2), 0.97, replicas=512)
    assert bounded.stationary == 0 and bounded.time + bounded.warmup <= 400


def test_pools_are_the_connected_parts():
    graph = graph_of("two parts", [np.array([0, 1]), np.array([1, 2]), np.array([3])], 5)
    servers, loads = graph.pools(0.6)
    order = np.argsort(-servers, kind="stable")
    np.testing.assert_array_equal(servers[order], [3, 1, 1])
    np.testing.assert_allclose(np.sort(loads), [0, 2 / 3, 1])
    assert study.relaxation(graph, 0.6) == np.inf  # server 3 is saturated
    assert study.relaxation(blocks(20, 20, 5), 0.9) == pytest.approx(1 / (5 * (1 - np.sqrt(0.9)) ** 2))


@pytest.mark.parametrize("name", ["jsq", "jiq"])
def test_named_times_are_kept(name):
    case = measure(complete(4, 4), named_policy(name), 0.5, time=10, warmup=20, replicas=64)
    assert (case.time, case.warmup) == (10, 20) and np.isnan(case.stationary)  # one bundle: no interval of the drift


def test_loads_beyond_what_is_kept_are_named():
    with pytest.raises(
        InputError, match=r"load 0\.99999 brings queues of [\d,]+ tasks, and at most 32,000 are simulated"
    ):
        measure(complete(2, 2), random_routing(), 0.99999, time=2, warmup=0, replicas=64)
