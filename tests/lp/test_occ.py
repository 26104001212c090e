"""OCC-LP: identities first (Lemma B.1, duality), then oracles, then hand-solved cases and errors."""

import dataclasses

import numpy as np
import pytest
from programs import GALLERY_CASES, load_grid, random_instance

from lagjax.durations import deterministic
from lagjax.errors import InputError
from lagjax.gallery import gallery, priority
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, largest_feasible_load, occ_bound, occ_upper_bound, solve_occ
from lagjax.lp.highs import solve_highs
from lagjax.lp.program import occ_program

TOLERANCE = 1e-9


def random_feasible(instance, rng, points=20):
    """Feasible (u, phi) of OCC-LP(0): mixtures of optimal points for other scores and of the even split."""
    k, num_servers = instance.servers_per_task, instance.num_servers
    w = np.full(instance.scores.shape, k / num_servers)
    even = (instance.arrival_rate[:, None] * w, 1 - instance.mean_duration @ (instance.arrival_rate[:, None] * w))
    corners = [even]
    for _ in range(3):
        other = make_instance(
            rng.random(instance.scores.shape), instance.service_pmf, servers_per_task=k,
            arrival_rate=instance.arrival_rate,
        )  # fmt: skip
        solution = solve_occ(other)
        corners.append((solution.assignment_rate, solution.free_fraction))
    for _ in range(points):
        mix = rng.dirichlet(np.ones(len(corners)))
        yield tuple(sum(m * c[i] for m, c in zip(mix, corners, strict=True)) for i in range(2))


def check_lemma(instance, s, rng):
    rate = instance.arrival_rate[:, None]
    scale, k = instance.scores.max(), instance.servers_per_task
    unit = scale * instance.total_rate * k
    L, u, phi = s.index, s.assignment_rate, s.free_fraction
    raw = instance.scores - s.task_price[:, None] - np.outer(instance.mean_duration, s.server_price)
    np.testing.assert_allclose(L, raw, atol=TOLERANCE * scale, rtol=0)
    # (i)
    np.testing.assert_allclose(s.server_price, (rate * np.maximum(L, 0)).sum(0), atol=TOLERANCE * scale, rtol=0)
    # (ii), on the solution itself and on other feasible points
    dual = s.server_price.sum() + k * (instance.arrival_rate @ s.task_price)
    for v, free in [(u, phi), *random_feasible(instance, rng)]:
        loss = np.maximum(L, 0) * (rate * free - v) + np.maximum(-L, 0) * v
        assert loss.min() >= -TOLERANCE * unit
        assert dual - (instance.scores * v).sum() == pytest.approx(loss.sum(), abs=TOLERANCE * unit)
    # (iii), with an index that is either exactly zero or clearly not
    assert np.all((L == 0) | (np.abs(L) > s.zero_tolerance))
    assert np.abs((u - rate * phi)[L > 0]).max(initial=0) <= TOLERANCE * rate.max()
    assert np.all(u[L < 0] == 0)
    # feasibility
    np.testing.assert_allclose(u.sum(1), k * instance.arrival_rate, rtol=TOLERANCE)
    np.testing.assert_allclose(phi + instance.mean_duration @ u, 1, atol=TOLERANCE)
    assert np.all(u >= 0) and np.all(u <= rate * phi * (1 + TOLERANCE)) and np.all(phi >= 0)
    assert s.objective == pytest.approx((instance.scores * u).sum(), rel=1e-12)
    assert max(s.primal_residual, s.dual_residual, s.duality_gap) <= TOLERANCE
    np.testing.assert_array_equal(s.tie_weight * rate, u)


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", GALLERY_CASES)
def test_lemma_b1_on_the_gallery(name, selection):
    rng = np.random.default_rng(1)
    for load in load_grid(name):
        instance = gallery(name, load)
        check_lemma(instance, solve_occ(instance, selection=selection), rng)


@pytest.mark.parametrize("selection", SELECTIONS)
def test_lemma_b1_on_random_instances(selection):
    rng = np.random.default_rng(2)
    for _ in range(60):
        instance = random_instance(rng)
        check_lemma(instance, solve_occ(instance, selection=selection), rng)


def test_objective_equals_highs_and_falls_with_blocking():
    rng = np.random.default_rng(3)
    for _ in range(40):
        instance = random_instance(rng)
        for blocking in (0.0, 0.3 * rng.random()):
            program = occ_program(instance, blocking)
            for method in ("highs-ds", "highs-ipm"):
                w = solve_highs(program, method)[0][0]
                oracle = (instance.arrival_rate[:, None] * instance.scores * w).sum()
                for selection in SELECTIONS:
                    assert solve_occ(instance, blocking, selection).objective == pytest.approx(oracle, rel=1e-9)


def test_identical_servers_get_identical_values():
    for load in load_grid("priority"):
        s = solve_occ(priority(load))
        for servers in (slice(0, 2), slice(2, 8)):
            for array in (s.index, s.assignment_rate, s.free_fraction, s.server_price):
                assert np.all(array[..., servers] == array[..., servers.start : servers.start + 1])


def test_slope_is_the_derivative_of_the_bound():
    rng = np.random.default_rng(4)
    for _ in range(20):
        instance, b, h = random_instance(rng), 0.05 + 0.4 * rng.random(), 1e-6
        below, above = occ_upper_bound(instance, b - h), occ_upper_bound(instance, b + h)
        value, slope = occ_bound(instance, b)
        left, right = (value - below) / h, (above - value) / h
        assert right - 1e-6 <= slope <= left + 1e-6  # concave in B; a kink leaves an interval
        assert value == occ_upper_bound(instance, b)


def test_feasible_exactly_up_to_the_stated_load():
    for k, blocking in ((1, 0.0), (2, 0.0), (1, 0.2), (3, 0.35)):
        base = make_instance(np.eye(3, 5), deterministic(40), servers_per_task=k, load=0.1, mix=[1, 2, 3])
        largest = largest_feasible_load(base, blocking)
        assert largest_feasible_load(base) == pytest.approx(base.max_load)
        for factor in (0.9999, 1.0, 1.0001):
            rates = base.arrival_rate * (largest * factor / base.load)
            instance = make_instance(base.scores, base.service_pmf, servers_per_task=k, arrival_rate=rates)
            if factor > 1:
                with pytest.raises(InputError, match=f"load .* largest feasible load is {largest:.6g}"):
                    solve_occ(instance, blocking)
            else:
                s = solve_occ(instance, blocking)
                assert s.primal_residual <= TOLERANCE and s.duality_gap <= TOLERANCE


def test_prices_at_the_largest_load_are_the_limit_of_smaller_ones():
    for name, load in (("unfriendly", 0.9), ("journal", 0.9)):
        for selection in SELECTIONS:
            at = solve_occ(gallery(name, load), selection=selection)
            near = solve_occ(gallery(name, load - 1e-5), selection=selection)
            assert at.index.min() >= 0
            np.testing.assert_allclose(at.index, near.index, atol=1e-4)
            np.testing.assert_array_equal(at.index == 0, near.index == 0)


def test_one_type_two_servers_by_hand():
    # One type at rate 1/4 with D = 2, k = 1; scores 1 and 0. Server 0 is taken whenever free: phi = 1 - 2 u
    # and u = phi / 4, so u = 1/6; the other server takes 1/12 of the 1/4 and prices it: ell = q_1 = 0. Then
    # L_00 = 1 - 2 q_0 = q_0 / lambda = 4 q_0, so q_0 = 1/6 and L = (2/3, 0).
    instance = make_instance([[1.0, 0.0]], deterministic(2), arrival_rate=[0.25])
    for selection in SELECTIONS:
        s = solve_occ(instance, selection=selection)
        np.testing.assert_allclose(s.assignment_rate, [[1 / 6, 1 / 12]], atol=1e-14)
        np.testing.assert_allclose(s.free_fraction, [2 / 3, 5 / 6], atol=1e-14)
        np.testing.assert_allclose(s.server_price, [1 / 6, 0], atol=1e-14)
        np.testing.assert_allclose(s.index, [[2 / 3, 0]], atol=1e-14)
        assert s.objective == pytest.approx(1 / 6) and s.index[0, 1] == 0
    value, slope = occ_bound(instance, 0.1)
    assert value == pytest.approx(1 / 6) and slope == pytest.approx(0, abs=1e-12)


def test_specialist_bound_at_measured_blocking():
    instance = gallery("specialist", 0.8)
    assert occ_upper_bound(instance, 0.0) == pytest.approx(0.2465, abs=1e-4)
    assert occ_upper_bound(instance, 0.133) == pytest.approx(0.2986, abs=1e-4)


def test_equal_numbers_are_solved_once_and_results_are_read_only(monkeypatch):
    instance = gallery("low-rank", 0.37)
    first = solve_occ(instance)
    monkeypatch.setattr("lagjax.lp.selection._centre", None)  # solving again would fail
    again = solve_occ(gallery("low-rank", 0.37))
    np.testing.assert_array_equal(first.index, again.index)
    with pytest.raises(ValueError, match="read-only"):
        first.index[0, 0] = 1
    with pytest.raises(ValueError, match="read-only"):
        first.tie_weight[0, 0] = 1


def test_scales_of_scores_and_time_do_not_matter():
    instance = gallery("journal", 0.6)
    s = solve_occ(instance)
    scaled = make_instance(
        1e6 * instance.scores, instance.service_pmf, servers_per_task=3, arrival_rate=instance.arrival_rate
    )
    t = solve_occ(scaled)
    np.testing.assert_allclose(t.index, 1e6 * s.index, atol=1e-3, rtol=1e-9)
    np.testing.assert_array_equal(t.index == 0, s.index == 0)
    assert t.zero_tolerance == pytest.approx(1e6 * s.zero_tolerance)


def test_all_scores_zero():
    positive = make_instance(np.ones((2, 3)), deterministic(3), load=0.3)
    instance = dataclasses.replace(positive, scores=np.zeros((2, 3)))  # refused of users, but the program has an answer
    for selection in SELECTIONS:
        s = solve_occ(instance, selection=selection)
        assert s.objective == 0 and np.all(s.index == 0)


def test_bad_arguments_are_named():
    instance = gallery("specialist", 0.3)
    for blocking in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match="blocking is"):
            solve_occ(instance, blocking)
    with pytest.raises(InputError, match="selection is 'simplex'; choose from canonical, interior, vertex"):
        solve_occ(instance, selection="simplex")
