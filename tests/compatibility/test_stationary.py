"""Stationary figures do not depend on their start, or say that they do.

Random routing makes independent M/M/1 queues. Their starts are of the exact law, and half of a bundle's complement the other half's,
so a mean over B replicas of N servers has a standard error of at most that of B N independent geometric queues,
sqrt(rho) / (1 - rho) / sqrt(B N), however slowly the queues move.
"""

import numpy as np
import pytest

from lagjax.compatibility import (
    complete,
    describe,
    fixed_point,
    graph_of,
    jsq,
    measure,
    named_policy,
    random_routing,
    starts,
    study,
)  # fmt: skip
from lagjax.compatibility.mean_field import TINY, levels_of, trajectory
from lagjax.errors import InputError

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
    queue = starts.stationary(graph, load, 64 * 50, seed=4)[:3]
    exact = np.array([0.9 / 0.1, 0.45 / 0.55, 0])
    error = np.sqrt([0.9, 0.45, 0]) / (1 - np.array([0.9, 0.45, 0])) / np.sqrt(queue.shape[1])
    assert np.all(np.abs(queue.mean(axis=1) - exact) <= SIGMAS * error)
    assert len(np.unique(queue[0, :64])) > 5  # replicas of a bundle have starts of their own
    np.testing.assert_array_equal(starts.stationary(graph, load, 128, seed=4)[:3], queue[:, :128])
    assert not starts.law_is_known(jsq(2), complete(3, 3), load)
    assert not starts.law_is_known(jsq(2), graph, 0.5)  # server 0 is overloaded


@pytest.mark.parametrize("load", [0.5, 0.97, 0.995, 0.999999])
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


def test_join_the_shortest_of_two_servers_runs_on_until_its_start_is_gone(monkeypatch):
    """From the fixed point (2.9 tasks a server) to twice as many: 100 mean services do not reach them, and say so."""
    graph = complete(2, 2)
    forced = describe(measure(graph, jsq(2), 0.95, time=20, warmup=0, replicas=256))
    assert forced["stationary"] is False and (forced["time"], forced["warmup"]) == (20, 0)
    free = describe(measure(graph, jsq(2), 0.95, warmup=0, replicas=256))
    assert free["stationary"] is True and free["time"] > 100 and free["warmup"] > 0
    assert free["mean_queue_length"] > 2 * forced["fixed_point_queue_length"]
    monkeypatch.setattr(study, "MOST_TIMES", 4)
    bounded = describe(measure(graph, jsq(2), 0.99, warmup=0, replicas=256))
    assert bounded["stationary"] is False and bounded["time"] + bounded["warmup"] <= 400


@pytest.mark.parametrize("name", ["jsq", "jiq"])
def test_named_times_are_kept(name):
    case = measure(complete(4, 4), named_policy(name), 0.5, time=10, warmup=2, replicas=64)
    assert (case.time, case.warmup) == (10, 2) and np.isnan(case.stationary)  # one bundle: no interval of the drift


def test_loads_beyond_what_is_kept_are_named():
    with pytest.raises(InputError, match=r"load 0\.99999 brings queues of [\d,]+ tasks, and at most 32,000 are simulated"):
        measure(complete(2, 2), random_routing(), 0.99999, time=2, warmup=0, replicas=64)
