"""Exact losses and the optimum against plain elimination, plain value iteration and the published special cases."""

import mpmath
import numpy as np
import pytest
from plain_routing import lowest, stationary_loss, value_iteration

from lagjax import InputError
from lagjax.loss_routing import (
    POLICIES,
    build_routing,
    chain,
    exact,
    exact_loss,
    from_index,
    least_loss,
    make_system,
    optimal_splitting,
    relaxation_bounds,
)

SYSTEMS = [
    make_system([1, 2], [3, 4], [1.0, 0.8], 1.5),
    make_system([2, 1], [2, 6], [0.4, 1.7], 4.0),
    make_system([1, 2, 1], [2, 3, 1], [1.0, 0.5, 2.0], 2.0),
    make_system([1, 1, 1], [1, 1, 1], [1.0, 0.3, 2.0], 2.0),
]


def plain_index(name, system):
    """Indices from the words of the brief, not from our tables."""
    m, mu = system.servers.tolist(), system.service_rate.tolist()
    return {
        "sq": lambda k, x: x,
        "sed": lambda k, x: 1 / mu[k] if x < m[k] else 1 / mu[k] + (x + 1 - m[k]) / (m[k] * mu[k]),
        "fas": lambda k, x: 1 / mu[k] + (1e6 if x >= m[k] else 0),
        "random": lambda k, x: 1,
    }[name]


def plain_loss(system, index, number=float):
    room = system.room.tolist()

    def goes(state):
        best = lowest(index, room, state)
        return [number(k in best) / len(best) if best else number(0) for k in range(len(room))]

    return stationary_loss(
        system.servers.tolist(), room, system.service_rate.tolist(), system.arrival_rate, goes, number
    )


@pytest.mark.parametrize("system", SYSTEMS)
def test_exact_loss_of_every_policy(system):
    for policy in build_routing(list(POLICIES), system):
        found = exact_loss(system, policy)
        if policy.name == "obs":
            exact = optimal_splitting(system).loss
        elif policy.name in ("rb", "pi"):
            exact = plain_loss(system, lambda k, x, rank=policy.rank: int(rank[k, x]))
        else:
            exact = plain_loss(system, plain_index(policy.name, system))
        assert found.loss == pytest.approx(exact, rel=1e-11)
        assert found.states == system.states and found.residual < 1e-13


def test_rare_losses_are_as_exact():
    system = make_system([2, 3], [5, 5], [1.0, 0.7], 0.02)
    (policy,) = build_routing(["rb"], system)
    with mpmath.workdps(40):
        exact = float(plain_loss(system, lambda k, x: int(policy.rank[k, x]), mpmath.mpf))
    assert exact < 1e-15 and exact_loss(system, policy).loss == pytest.approx(exact, rel=1e-11, abs=0)


def test_the_likely_states_need_not_be_known():
    """Random routing fills the slow queue, which the traffic would leave empty: what is taken for likely has chance 1e-40."""
    system = make_system([1, 1], [30, 3], [0.01, 1.0], 0.9)
    found = exact_loss(system, build_routing(["random"], system)[0])
    assert found.loss == pytest.approx(plain_loss(system, plain_index("random", system)), rel=1e-11)
    light = make_system([2, 3], [5, 5], [1.0, 0.7], 0.02)
    (policy,) = build_routing(["rb"], light)
    joint = chain.build_chain(light)
    share = exact.shares(joint, policy)
    moves = joint.served + light.arrival_rate * chain.route_matrix(joint, share)
    cost = np.where(joint.jobs.sum(axis=1) == 10, light.arrival_rate, 0.0)
    for home in (0, 35, 7):
        assert chain.solve(joint, moves, cost, home).cost == pytest.approx(
            exact_loss(light, policy).loss, rel=1e-12, abs=0
        )


@pytest.mark.parametrize("system", SYSTEMS)
def test_least_loss_is_what_value_iteration_finds(system):
    found = least_loss(system)
    lower, upper = value_iteration(system.servers, system.room, system.service_rate, system.arrival_rate)
    assert upper - lower < 1e-11 and found.loss == pytest.approx(lower, abs=1e-11)
    assert found.lower <= found.loss + 1e-13 and found.upper >= found.loss - 1e-13
    assert found.upper - found.lower < 1e-12 and found.states == system.states
    assert found.loss >= relaxation_bounds(system).loss
    for policy in build_routing(list(POLICIES), system):
        assert exact_loss(system, policy).loss >= found.loss * (1 - 1e-12)


def test_the_route_found_has_the_loss_found():
    system = make_system([1, 2], [5, 4], [1.0, 0.2], 0.6)
    found = least_loss(system)
    states = [(x, y) for x in range(6) for y in range(5)]
    route = dict(zip(states, found.route.tolist(), strict=True))
    assert route[5, 4] == -1 and route[5, 0] == 1 and route[0, 4] == 0
    plain = stationary_loss(
        [1, 2], [5, 4], [1.0, 0.2], 0.6, lambda s: [float(route[s] == k) for k in range(2)]
    )  # fmt: skip
    assert found.loss == pytest.approx(plain, rel=1e-11)
    assert found.loss < exact_loss(system, build_routing(["rb"], system)[0]).loss * (1 - 1e-6)  # not an index policy
    assert found.rounds > 1


def test_published_optima():
    alone = make_system([1, 1, 1, 1], [1, 1, 1, 1], [1.0, 0.3, 2.0, 0.9], 2.5)  # Seth 1977; Derman et al. 1980
    fas, sq = build_routing(["fas", "sq"], alone)
    assert exact_loss(alone, fas).loss == pytest.approx(least_loss(alone).loss, rel=1e-12)
    assert exact_loss(alone, sq).loss > least_loss(alone).loss * 1.01
    # Hordijk and Koole 1990: equal rates, unequal buffers.
    alike = make_system([1, 1, 1], [2, 5, 3], [1.0, 1.0, 1.0], 2.5)
    (sq,) = build_routing(["sq"], alike)
    assert exact_loss(alike, sq).loss == pytest.approx(least_loss(alike).loss, rel=1e-10)


def test_restless_index_in_moderate_traffic_and_above():
    """Within 1% of the optimum on a part of the grid of experiments/routing.py, where others lose 5% more."""
    worst = dict.fromkeys(POLICIES, 0.0)
    for servers, room, rates in [
        ([1, 3], [5, 4], [1, 0.5]),
        ([2, 5], [7, 10], [1, 0.5]),
        ([1, 2, 4], [2, 4, 8], [1, 0.6, 0.3]),
    ]:
        base = make_system(servers, room, rates, 1.0)
        for traffic in (0.7, 0.9, 1.1, 1.5):
            system = base.with_arrival_rate(traffic * base.capacity)
            best = least_loss(system).loss
            for policy in build_routing(list(POLICIES), system):
                worst[policy.name] = max(worst[policy.name], exact_loss(system, policy).loss / best - 1)
    assert worst["rb"] < 0.01
    assert min(worst[name] for name in POLICIES if name != "rb") > 0.05


def test_ties_are_random():
    """Two equal queues and an index that never tells them apart: what leaves a tie to the first would lose more."""
    system = make_system([1, 1], [3, 3], [1.0, 1.0], 1.0)
    even, first = (
        from_index(np.zeros((2, 3)), system, name="even"),
        from_index([[0] * 3, [1] * 3], system, name="first"),
    )
    by_hand = plain_loss(system, lambda k, x: 1)
    assert exact_loss(system, even).loss == pytest.approx(by_hand, rel=1e-12)
    assert exact_loss(system, first).loss > by_hand * 1.05


def test_larger_chains():
    system = make_system([2, 3], [120, 120], [1.0, 0.5], 3.45)
    policy = build_routing(["rb"], system)[0]
    found, best = exact_loss(system, policy), least_loss(system)
    assert found.states == 121**2 and found.residual < 1e-12
    assert best.lower - 1e-13 <= best.loss <= found.loss * (1 + 1e-12) and best.upper - best.lower < 1e-7 * best.loss
    with pytest.raises(InputError, match="joint states; exact solutions stop at 200,000"):
        exact_loss(make_system([1] * 6, [9] * 6, [1.0] * 6, 1.0), policy)
