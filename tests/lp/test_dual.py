"""The dual method: certificates first, then the exact solver as an oracle, then invariances and errors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import GALLERY_CASES

from lagjax.errors import InputError
from lagjax.gallery import gallery
from lagjax.lp import SolverError, dual_descent, largest_feasible_load, server_blocks, solve_occ
from lagjax.lp.arm_root import PADDED, Types, bend_block, recover_block, share_block, smooth_block
from lagjax.lp.dual import solve_dual
from lagjax.lp.server_blocks import ServerBlocks
from lagjax.policies.arm import arm_value

F32, F64 = jnp.dtype("float32"), jnp.dtype("float64")


def system(kind, num_types, num_servers, *, load=0.6, k=1, decades=0.0, seed=0, dtype=np.float64):
    """(scores, rate, duration, demand) at `load` times the largest feasible load."""
    rng = np.random.default_rng(seed)
    shape = num_types, num_servers
    scores = {
        "uniform": lambda: rng.random(shape),
        "rank one": lambda: np.outer(rng.random(num_types), rng.random(num_servers)) + 0.1 * rng.random(shape),
        "sparse": lambda: rng.random(shape) * (rng.random(shape) < 0.1),
        "grid": lambda: rng.integers(0, 5, shape) / 4,
        "copies": lambda: rng.random((num_types, 5))[:, rng.integers(0, 5, num_servers)],
    }[kind]()
    duration = rng.uniform(5, 60, num_types)
    rate = 10 ** (decades * rng.random(num_types))
    rate *= load * (num_servers / k - 1) / (rate @ duration)
    return scores.astype(dtype), rate, duration, float(k)


def assert_certified(s, scores, rate, duration, demand, gap):
    """The point is feasible, the bound is the dual value at the prices, and the gap lies between them."""
    scores, w = scores.astype(np.float64), s.share
    free = 1 - (rate * duration) @ w
    np.testing.assert_allclose(w.sum(1), demand, rtol=1e-12)
    np.testing.assert_allclose(s.free_fraction, free, atol=1e-12)
    assert w.min() >= 0
    assert (w - free).max() <= 1e-12
    assert s.objective == pytest.approx(rate @ (scores * w).sum(1), rel=1e-12)
    worth = [arm_value(0.0, column - s.price, rate, duration) for column in scores.T]
    unit = np.abs(s.price).max() + scores.max()
    np.testing.assert_allclose(s.server_price, worth, rtol=1e-9, atol=1e-9 * unit)
    dual = demand * rate @ s.price + sum(worth)
    assert s.bound == pytest.approx(dual, rel=1e-11)
    assert s.relative_gap == pytest.approx((s.bound - s.objective) / s.bound, abs=1e-13)
    assert -1e-12 <= s.relative_gap <= gap


CASES = [
    ("uniform", 40, 25, {}), ("rank one", 12, 60, {"load": 0.05, "decades": 3.0}), ("sparse", 60, 12, {"load": 0.95}),
    ("grid", 30, 30, {"k": 3, "load": 0.99}), ("copies", 20, 50, {"k": 3, "load": 0.3, "decades": 6.0}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "num_types", "num_servers", "options"), CASES)
@pytest.mark.parametrize("gap", [1e-3, 1e-7])
def test_a_solution_proves_its_gap(kind, num_types, num_servers, options, gap):
    given = system(kind, num_types, num_servers, **options)
    assert_certified(solve_dual(*given, gap=gap), *given, gap)


@pytest.mark.parametrize("name", GALLERY_CASES)
@pytest.mark.parametrize("blocking", [0.0, 0.2])
def test_it_brackets_the_exact_optimum(name, blocking):
    instance = gallery(name, load=0.5)
    exact = solve_occ(instance, blocking).objective
    demand = instance.servers_per_task * (1 - blocking)
    s = solve_dual(instance.scores, instance.arrival_rate, instance.mean_duration, demand, gap=1e-7)
    assert s.objective - 1e-12 * exact <= exact <= s.bound + 1e-12 * exact
    assert s.bound - exact <= 1e-7 * exact


def test_at_the_largest_load_the_even_point_is_proved_optimal():
    scores, rate, duration, demand = system("uniform", 6, 9, load=1.0)
    s = solve_dual(scores, rate, duration, demand, gap=1e-9)
    np.testing.assert_allclose(s.share, demand / 9, rtol=1e-8)
    assert_certified(s, scores, rate, duration, demand, 1e-9)


def test_single_precision_scores_stay_single_and_are_solved_as_given(monkeypatch):
    monkeypatch.setattr(dual_descent, "_SINGLE_PAIRS", 0)
    given = system("uniform", 40, 25, dtype=np.float32)
    s = solve_dual(*given)
    assert s.relative_gap <= 1e-4
    assert s.objective == pytest.approx(given[1] @ (given[0].astype(np.float64) * s.share).sum(1), rel=1e-12)
    with ServerBlocks(*given[:3]) as blocks:
        assert {block.dtype for block in blocks._scores} == {F32}


def test_blocks_devices_and_threads_give_the_same_bits(monkeypatch):
    given = system("uniform", 48, 200)
    monkeypatch.setattr(server_blocks, "BLOCK_BYTES", 64 * 8 * PADDED)
    serial = solve_dual(*given)
    monkeypatch.setattr(server_blocks, "_SERIAL_PAIRS", 0)
    threads = solve_dual(*given)
    assert len(jax.local_devices()) == 2
    monkeypatch.setattr(jax, "local_devices", lambda: jax.devices()[:1])
    one_device = solve_dual(*given)
    for other in (threads, one_device):
        assert other.iterations == serial.iterations
        assert np.array_equal(other.price, serial.price)
        assert np.array_equal(other.share, serial.share)


def test_scores_in_other_units_give_prices_in_those_units():
    scores, rate, duration, demand = system("uniform", 30, 20)
    s, scaled = solve_dual(scores, rate, duration, demand), solve_dual(scores * 2.0**-30, rate, duration, demand)
    assert np.array_equal(scaled.price, s.price * 2.0**-30)
    assert np.array_equal(scaled.share, s.share)


def test_the_gradient_is_the_derivative_of_the_value_and_the_curvature_that_of_the_gradient():
    scores, rate, duration, _ = system("uniform", 16, 24, load=0.5)
    price, step = np.random.default_rng(1).uniform(0.3, 0.6, 16), 1e-6
    with ServerBlocks(scores, rate, duration) as blocks:

        def value(price):
            total, served, _ = blocks.smooth(price, 0.05, 1e-15, F64)
            return total, -rate * served

        value(price)
        curvature = blocks.curvature(price, 0.05)
        for v in range(16):
            move = step * (np.arange(16) == v)
            (high, up), (low, down) = value(price + move), value(price - move)
            assert (high - low) / (2 * step) == pytest.approx(value(price)[1][v], abs=1e-8)
            np.testing.assert_allclose((up - down) / (2 * step), curvature[v], atol=1e-5 * np.abs(curvature).max())


def test_ties_within_the_tolerance_are_counted():
    scores = np.ones((6, 10))
    rate, duration = np.full(6, 0.02), np.full(6, 20.0)
    s = solve_dual(scores, rate, duration, 1.0)
    assert s.ties_undecided == 6 * 10 - 6
    index = scores - s.price[:, None] - np.outer(duration, s.server_price)
    assert np.abs(index).max() <= s.zero_tolerance
    different = system("uniform", 30, 40)
    assert solve_dual(*different, gap=1e-8).ties_undecided <= 2


def test_a_start_from_a_neighbouring_load_saves_evaluations():
    scores, rate, duration, demand = system("uniform", 60, 60, load=0.5)
    s = solve_dual(scores, rate, duration, demand)
    cold = solve_dual(scores, 1.02 * rate, duration, demand)
    warm = solve_dual(scores, 1.02 * rate, duration, demand, start=s.price)
    assert warm.relative_gap <= 1e-4
    assert warm.iterations < 0.8 * cold.iterations


def test_progress_is_told_what_is_certified_and_can_stop():
    given = system("uniform", 30, 40)
    told = []
    solve_dual(*given, progress=lambda count, gap: told.append((count, gap)))
    assert [count for count, _ in told] == sorted(count for count, _ in told)
    gaps = [gap for _, gap in told]
    assert gaps[0] == np.inf
    assert gaps == sorted(gaps, reverse=True)

    def interrupt(count, gap):
        if count == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_dual(*given, progress=interrupt)


def test_a_gap_that_was_not_reached_is_not_claimed():
    with pytest.raises(SolverError, match=r"relative gap of .*, not 1e-08, in \d+ evaluations; raise max_evaluations"):
        solve_dual(*system("uniform", 30, 40), gap=1e-8, max_evaluations=30)


def test_bad_input_is_refused():
    scores, rate, duration, demand = system("uniform", 4, 5)
    with pytest.raises(InputError, match=r"scores have shape \(4, 5\), arrival_rate \(3,\)"):
        solve_dual(scores, rate[:3], duration, demand)
    with pytest.raises(InputError, match="too large for OCC-LP"):
        solve_dual(scores, rate * 2, duration, demand)
    with pytest.raises(InputError, match="must be positive"):
        solve_dual(scores, rate * 0, duration, demand)
    with pytest.raises(InputError, match="must be finite"):
        solve_dual(scores * np.nan, rate, duration, demand)
    with pytest.raises(InputError, match=r"start has shape \(2,\)"):
        solve_dual(scores, rate, duration, demand, start=[1.0, 2.0])


def test_the_demand_that_is_refused_is_that_of_occ_lp():
    instance = gallery("journal", load=0.5)
    rate = instance.arrival_rate * largest_feasible_load(instance) / instance.load
    given = instance.scores, rate, instance.mean_duration
    assert solve_dual(*given, 3.0, gap=1e-8).relative_gap <= 1e-8
    with pytest.raises(InputError):
        solve_dual(*given, 3.001)


def test_every_block_function_lowers_for_cuda():
    with jax.enable_x64(True):
        scores = jax.ShapeDtypeStruct((2 * PADDED, PADDED), F32)
        column, row = (jax.ShapeDtypeStruct((n,), F64) for n in (PADDED, 2 * PADDED))
        number = jax.ShapeDtypeStruct((), F64)
        types = Types(row, row, row)
        ways = {
            smooth_block: (scores, types, column, column, number, number),
            recover_block: (scores, types, column, column, number, number),
            bend_block: (scores, types, column, column, number),
            share_block: (scores, types, column, column, column, number, row, row, row),
        }
        for way, shapes in ways.items():
            more = {"dtype": F32} if way is smooth_block else {}
            exported = jax.export.export(way, platforms=["cuda"])(*shapes, **more)
            assert exported.platforms == ("cuda",)
