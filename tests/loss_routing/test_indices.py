"""Indices and the optimal splitting against their definitions, and the published special cases."""

import mpmath
import numpy as np
import pytest
from plain_routing import blocking_and_mean, restless_index, weights
from scipy.optimize import minimize

from lagjax import InputError
from lagjax.loss_routing import (
    POLICIES,
    build_routing,
    from_index,
    make_system,
    optimal_splitting,
    relaxation_bounds,
    split_loss,
)
from lagjax.loss_routing.indices import log_improvement_index, log_restless_index
from lagjax.loss_routing.policies import FULL

MIXED = make_system([1, 3, 10], [8, 9, 40], [1.0, 0.3, 2.0], 2.0)
EQUAL = make_system([2, 2, 2], [5, 5, 5], [1.0, 0.37, 2.2], 3.0)


@pytest.mark.parametrize("arrival_rate", [0.01, 2.0, 50.0])
def test_restless_index_is_the_published_quotient(arrival_rate):
    system = MIXED.with_arrival_rate(arrival_rate)
    found = log_restless_index(system)
    with mpmath.workdps(200):  # the quotient's differences cancel; ours do not
        for k, (m, n, mu) in enumerate(zip(system.servers, system.room, system.service_rate, strict=True)):
            load = mpmath.mpf(arrival_rate) / mpmath.mpf(float(mu))
            exact = [mpmath.log(restless_index(int(m), load, arrival_rate, x)) for x in range(n)]
            np.testing.assert_allclose(found[k, :n], [float(x) for x in exact], rtol=0, atol=1e-12)
            np.testing.assert_allclose(np.exp(found[k, :m]), 1 / mu, rtol=1e-14)  # constant while a server is free
            assert np.all(np.diff(found[k, m - 1 : n]) > 0) and np.isnan(found[k, n:]).all()


def test_restless_index_is_the_slope_of_the_discounted_one():
    """Discounted at rate alpha, a subsidy of 1 - theta(x) alpha makes rejecting and accepting in state x worth the same."""
    m, n, mu, arrival_rate = 3, 8, 0.5, 2.0
    found = np.exp(log_restless_index(make_system([m], [n], [mu], arrival_rate)))[0]
    with mpmath.workdps(40):
        alpha = mpmath.mpf(10) ** -12

        def worth(threshold, subsidy, start):  # jobs served, and a subsidy for every job rejected
            equations, reward = mpmath.zeros(n + 1), mpmath.zeros(n + 1, 1)
            for x in range(n + 1):
                served, goes = min(x, m) * mpmath.mpf(mu), x < threshold
                equations[x, x] = alpha + served + (arrival_rate if goes else 0)
                reward[x] = served + (0 if goes else arrival_rate * subsidy)
                if x:
                    equations[x, x - 1] = -served
                if goes:
                    equations[x, x + 1] = -arrival_rate
            return mpmath.lu_solve(equations, reward)[start]

        for x in range(n):
            none, one = (worth(x, subsidy, x) - worth(x + 1, subsidy, x) for subsidy in (0, 1))
            assert float((1 + none / (one - none)) / alpha) == pytest.approx(found[x], rel=1e-9)


def test_restless_index_where_its_parts_underflow():
    """Free servers of 1e-600: ordered still, by logarithms."""
    found = log_restless_index(make_system([1, 1], [300, 300], [1.0, 1.1], 100.0))
    assert np.all(np.isfinite(found)) and np.all(np.diff(found, axis=1) > 0) and found.max() > 1000


def test_improvement_index_is_its_definition():
    splitting = optimal_splitting(MIXED)
    found = log_improvement_index(MIXED, splitting)
    with mpmath.workdps(60):
        for k, (m, n) in enumerate(zip(MIXED.servers, MIXED.room, strict=True)):
            paths = [blocking_and_mean(int(m), x, float(splitting.offered_load[k]))[0] for x in range(n + 1)]
            exact = [float(mpmath.log(paths[n] / paths[x])) for x in range(n)]
            np.testing.assert_allclose(found[k, :n], exact, rtol=0, atol=1e-12)


def test_equal_servers_and_room_split_to_equal_loads_and_improve_to_shortest_queue():
    splitting = optimal_splitting(EQUAL)
    assert len(set(splitting.offered_load.tolist())) == 1
    np.testing.assert_allclose(splitting.share, EQUAL.service_rate / EQUAL.service_rate.sum(), rtol=1e-14)
    improved, shortest = build_routing(["pi", "sq"], EQUAL)
    np.testing.assert_array_equal(improved.rank, shortest.rank)


def test_one_server_without_room_goes_by_speed():
    system = make_system([1, 1, 1], [1, 1, 1], [1.0, 0.3, 2.0], 1.5)
    for policy in build_routing(["rb", "sed", "fas"], system):
        assert policy.rank[:, 0].tolist() == [1, 2, 0] and policy.rank[:, 1].tolist() == [FULL] * 3


def marginal(m, n, load):
    """d(r B)/dr = B (1 + n - L), in mpmath."""
    b, mean = blocking_and_mean(m, n, load)
    return b * (1 + n - mean)


@pytest.mark.parametrize(
    "system",
    [
        make_system([1, 2], [3, 4], [1.0, 0.8], 1.5),
        make_system([1, 10, 3, 1], [20, 50, 30, 1], [1.0, 2.0, 0.1, 0.4], 30.0),
        make_system([1, 2, 2], [3, 4, 9], [1.0, 0.8, 0.3], 0.01),
        make_system([5, 2], [9, 9], [1.0, 2.0], 500.0),
        make_system([1, 1], [30, 2], [1.0, 1.0], 1e-3),
        make_system([1, 1], [1, 40], [1.0, 1.0], 1e3),
        make_system([3], [5], [2.0], 4.0),
    ],
)
def test_splitting_equalises_marginal_losses(system):
    found = optimal_splitting(system)
    assert found.share.sum() == pytest.approx(1, rel=1e-14) and found.share.min() > 0
    assert found.offered_load @ system.service_rate == pytest.approx(system.arrival_rate, rel=1e-12)
    with mpmath.workdps(400):
        values = []
        for m, n, load in zip(system.servers.tolist(), system.room.tolist(), found.offered_load.tolist(), strict=True):
            phi = marginal(m, n, load)
            values.append(float(mpmath.log(phi) - mpmath.log(1 - phi)))
        loss = sum(
            mpmath.mpf(share) * blocking_and_mean(int(m), int(n), mpmath.mpf(share) * system.arrival_rate / mu)[0]
            for share, m, n, mu in zip(
                found.share.tolist(), system.servers, system.room, system.service_rate.tolist(), strict=True
            )
        )
    np.testing.assert_allclose(values, values[0], rtol=0, atol=1e-10)
    assert found.loss == pytest.approx(float(loss * system.arrival_rate), rel=1e-11, abs=0)
    assert found.residual < 1e-10


def test_no_other_splitting_loses_less():
    system = make_system([1, 2, 3], [2, 5, 4], [1.0, 0.8, 0.4], 3.0)
    found = optimal_splitting(system)

    def loss(free):
        share = np.exp(np.r_[0.0, free])
        return split_loss(system, share / share.sum())

    best = minimize(loss, np.zeros(2), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-14})
    assert found.loss <= best.fun * (1 + 1e-12) and found.loss == pytest.approx(best.fun, rel=1e-8)


def test_bounds():
    for system in (MIXED, MIXED.with_arrival_rate(50.0)):
        found = relaxation_bounds(system)
        with mpmath.workdps(60):
            accepted = sum(
                1 - blocking_and_mean(int(m), int(n), system.arrival_rate / mu)[0]
                for m, n, mu in zip(system.servers, system.room, system.service_rate.tolist(), strict=True)
            )
            exact = system.arrival_rate * min(mpmath.mpf(1), accepted)
            assert found.throughput == pytest.approx(float(exact), rel=1e-12)
            assert found.loss == pytest.approx(float(system.arrival_rate - exact), rel=1e-12)
    assert found.loss > 0


def test_a_table_of_ones_own():
    policy = from_index([[3.0, 1.0], [1.0 + 1e-14, 2.0]], make_system([1, 1], [2, 2], [1.0, 1.0], 1.0), name="mine")
    assert policy.rank.tolist() == [[2, 0, FULL], [0, 1, FULL]]
    system = make_system([1, 1], [1, 2], [1.0, 1.0], 1.0)
    assert from_index([[3.0, np.nan], [1.0, np.inf]], system, name="mine").rank.tolist() == [
        [1, FULL, FULL],
        [0, 2, FULL],
    ]
    with pytest.raises(InputError, match=r"shape \(2, 1\); give \(2, 2\)"):
        from_index([[1.0], [1.0]], system, name="mine")
    with pytest.raises(InputError, match="not a number"):
        from_index([[1.0, 1.0], [np.nan, 1.0]], system, name="mine")


def test_names():
    assert [policy.name for policy in build_routing(list(POLICIES), MIXED)] == list(POLICIES)
    with pytest.raises(InputError, match="choose from rb, pi"):
        build_routing(["jsq"], MIXED)
    with pytest.raises(InputError, match="twice"):
        build_routing(["rb", "rb"], MIXED)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([2, 1], [1, 1], [1.0, 1.0], 1.0), "queue 1 has room for 1 jobs but 2 servers"),
        (([1, 1], [1, 1], [1.0, 0.0], 1.0), "queue 2 has service rate 0"),
        (([1, 1], [1, 1], [1.0, -2.0], 1.0), "queue 2 has service rate -2"),
        (([1, 1], [1, 1], [1.0, float("nan")], 1.0), "queue 2 has service rate nan"),
        (([1, 1], [1, 1], [1.0], 1.0), "rates 1"),
        (([1], [1, 1], [1.0, 1.0], 1.0), "servers 1, room 2, rates 2"),
        (([0], [1], [1.0], 1.0), "servers .0. are not all whole numbers, 1 or more"),
        (([1.5], [2], [1.0], 1.0), "whole numbers"),
        (([1], [1], ["fast"], 1.0), "not numbers"),
        (([1], [1], [1.0], 0.0), "arrivals is 0"),
        (([1], [1], [1.0], float("inf")), "arrivals is inf"),
        (([1], [2], [1e-300], 1e300), "load of inf"),
        (([1, 1], [2, 2], [1.0, 1e-7], 1.0), "queue 2 is a load of 1e.07; give"),
        (([1], [2], [1.0], 9e-7), "queue 1 is a load of 9e-07"),
        (([3], [3], [1.0], 2e-6), "less than a millionth of the 3 jobs"),
        (([1], [2], [1e308], 1e308), "another unit of time"),
        (([], [], [], 1.0), "0 queues"),
        (([1], [10**6], [1.0], 1.0), "at most 10000"),
    ],
)
def test_faults_of_a_system(arguments, words):
    with pytest.raises(InputError, match=words):
        make_system(*arguments)


def test_the_oracle_counts():
    assert [float(w) for w in weights(2, 4, 3.0)] == [1, 3, 4.5, 6.75, 10.125]
