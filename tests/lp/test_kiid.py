"""KIID LP: feasibility, duality, and its place above OCC-LP."""

import numpy as np
import pytest
from programs import GALLERY_CASES, load_grid, random_instance

from lagjax.durations import deterministic
from lagjax.gallery import gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, interior, occ_upper_bound, solve_kiid
from lagjax.lp.highs import solve_highs
from lagjax.lp.newton import NewtonSystem
from lagjax.lp.program import kiid_program

TOLERANCE = 1e-9


def check(instance, s):
    x, rate, k = s.assignment_rate, instance.arrival_rate, instance.servers_per_task
    scale = instance.scores.max()
    assert np.all(x >= 0) and np.all(x <= rate[:, None] * (1 + TOLERANCE))
    assert np.all(x.sum(1) <= k * rate * (1 + TOLERANCE)) and np.all(instance.mean_duration @ x <= 1 + TOLERANCE)
    assert s.task_price.min() >= -TOLERANCE * scale and s.server_price.min() >= -TOLERANCE * scale
    raw = instance.scores - s.task_price[:, None] - np.outer(instance.mean_duration, s.server_price)
    np.testing.assert_allclose(s.reduced, raw, atol=TOLERANCE * scale, rtol=0)
    dual = k * rate @ s.task_price + s.server_price.sum() + (rate[:, None] * np.maximum(raw, 0)).sum()
    assert s.objective == pytest.approx(dual, abs=TOLERANCE * scale * k * rate.sum())
    assert s.objective == pytest.approx((instance.scores * x).sum(), rel=1e-12)
    assert np.all(x[s.reduced < 0] == 0)
    assert max(s.primal_residual, s.dual_residual, s.duality_gap) <= TOLERANCE


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("name", GALLERY_CASES)
def test_gallery(name, selection):
    for load in load_grid(name):
        instance = gallery(name, load)
        check(instance, solve_kiid(instance, selection))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_random_instances(selection):
    rng = np.random.default_rng(1)
    for _ in range(60):
        instance = random_instance(rng)
        s = solve_kiid(instance, selection)
        check(instance, s)
        w = solve_highs(kiid_program(instance), "highs-ipm")[0][0]
        oracle = (instance.arrival_rate[:, None] * instance.scores * w).sum()
        assert s.objective == pytest.approx(oracle, rel=1e-9)


def test_kiid_is_never_below_occ():
    rng = np.random.default_rng(2)
    cases = [gallery(n, load) for n in GALLERY_CASES for load in load_grid(n)]
    for instance in cases + [random_instance(rng) for _ in range(40)]:
        for blocking in (0.0, 0.1, 0.5):
            assert solve_kiid(instance).objective >= occ_upper_bound(instance, blocking) * (1 - 1e-12)


def test_two_types_by_hand():
    # D = 4, both types at rate 1/4: each server has room for 1/4, and the types prefer different servers.
    instance = make_instance([[1.0, 0.2], [0.3, 0.5]], deterministic(4), arrival_rate=[0.25, 0.25])
    for selection in SELECTIONS:
        s = solve_kiid(instance, selection)
        np.testing.assert_allclose(s.assignment_rate, [[0.25, 0], [0, 0.25]], atol=1e-14)
        assert s.objective == pytest.approx(0.375)


def test_vanishing_weights_are_those_of_the_central_path():
    instance = gallery("low-rank", 0.5)
    s, program = solve_kiid(instance, "interior"), kiid_program(instance)
    gone = s.assignment_rate == 0
    assert np.all((s.vanishing_weight > 0) == gone)
    assert not solve_kiid(instance).vanishing_weight.any()
    p = next(point for point, left in interior.path(program) if left < 1e-5)
    for _ in range(60):  # centre it
        products = interior._products(p)
        aims = [1e-10 - x for x in products]
        system = NewtonSystem(program.occupancy, interior._curvature(program, p))
        step = interior._direction(program, p, system, aims)
        p = interior._move(p, step, *interior._steps(p, step, 0.9))
    for v in range(1, instance.num_types):
        seen, limit = p.w[v, gone[v]], s.vanishing_weight[v, gone[v]]
        assert limit.max() > 3 * limit.min()
        np.testing.assert_allclose(seen / seen.sum(), limit / limit.sum(), rtol=1e-4)
