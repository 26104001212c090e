"""The sweep: rewards per step from exact counts, paired differences, same seed same numbers, early errors."""

import math
import sys

import jax
import numpy as np
import pytest
import xarray as xr

from lagjax.engine.run import Counts, simulate
from lagjax.errors import InputError, RunError
from lagjax.exact import optimum
from lagjax.gallery import GALLERY, gallery, priority, specialist, unfriendly
from lagjax.instance import make_instance
from lagjax.lp import SolverError, occ_bound, occ_upper_bound, solve_kiid
from lagjax.policies import build_policy, from_priorities, make_policy
from lagjax.studies import load_cells
from lagjax.studies.load_sweep import sweep
from lagjax.studies.measure import DEFAULT_ARRIVALS, arrivals_and_warmup, measure
from lagjax.studies.show_sweep import percent_table, rows

CELLS = [("specialist", 0.5), ("specialist", 0.8), ("priority", 0.3), ("priority", 0.8)]


@pytest.mark.parametrize(("name", "load"), CELLS)
def test_a_cell_is_the_simulation_and_its_bounds(name, load, small_sweep):
    """Everything in a cell, recomputed from the counts of the same seed."""
    cell = small_sweep.sel(instance=name, offered_load=load)
    instance = gallery(name, load)
    names = ["whittle", "lag", "greedy"]
    policies = [build_policy(p, instance) for p in names]
    arrivals = math.ceil(3000 * instance.total_rate)
    mean, d = instance.mean_duration.max(), instance.max_duration
    warmup = math.ceil(max(10 * mean, d) * instance.total_rate)
    assert (arrivals, warmup) == arrivals_and_warmup(instance, 3000)
    counts = simulate(instance, policies, arrivals=arrivals, warmup=warmup, replicas=48, seed=1)
    steps = arrivals / instance.total_rate
    earned = (instance.scores[:, :, None] * counts.served).sum(axis=(1, 2)) / steps
    np.testing.assert_allclose(cell.reward.sel(policy=names), earned, rtol=1e-12)
    np.testing.assert_allclose(cell.blocked, counts.blocked.sum(axis=0) / arrivals)
    np.testing.assert_allclose(cell.reward_per_step.sel(policy=names), earned.mean(axis=1))
    used = cell[f"assigned_{name}"].sel(policy=names)
    np.testing.assert_allclose(used, counts.served.mean(axis=3) / steps)
    blocking = float(cell.blocking)
    assert blocking == pytest.approx(counts.blocked.sum() / arrivals / 48)
    assert float(cell.occ_ub) == pytest.approx(occ_bound(instance, blocking)[0])
    assert float(cell.occ_ub_0) == pytest.approx(occ_upper_bound(instance, 0))
    assert float(cell.kiid_ub) == pytest.approx(solve_kiid(instance).objective)
    percent = 100 * earned.mean(axis=1) / float(cell.occ_ub)
    np.testing.assert_allclose(cell.percent_of_occ_ub.sel(policy=names), percent)
    assert int(cell.steps) == 3000
    assert int(cell.warmup) == round(warmup / instance.total_rate)


def test_differences_are_antisymmetric_and_paired(small_sweep):
    for name, load in CELLS:
        cell = small_sweep.sel(instance=name, offered_load=load)
        difference = cell.difference.transpose("policy", "than").values
        interval = cell.difference_ci95.transpose("policy", "than").values
        np.testing.assert_allclose(difference, -difference.T, atol=1e-12)
        np.testing.assert_allclose(interval, interval.T, atol=1e-12)
        share = cell.percent_of_occ_ub.values
        np.testing.assert_allclose(difference, share[:, None] - share[None], atol=1e-9)
        assert np.all(np.diag(interval) == 0)


@pytest.mark.parametrize("load", [0.5, 0.8])
def test_common_arrivals_narrow_the_difference(load, small_sweep):
    """LAG against Whittle: at most two thirds of the interval of two independent runs."""
    cell = small_sweep.sel(instance="specialist", offered_load=load)
    each = cell.percent_ci95.sel(policy=["lag", "whittle"])
    paired = float(cell.difference_ci95.sel(policy="lag", than="whittle"))
    assert 0 < paired < 2 / 3 * float(np.hypot(*each))


SMALL = {"loads": [0.4], "policies": ["lag", "random"], "steps": 500, "replicas": 4}


def test_same_seed_same_numbers():
    first, again, other = (sweep([priority()], **SMALL, seed=s) for s in (5, 5, 6))
    xr.testing.assert_identical(first, again)
    assert np.all(first.reward != other.reward)


def test_default_length_and_warmup():
    for name in GALLERY:
        instance = gallery(name, 0.5)
        counted, dropped = arrivals_and_warmup(instance, None)
        assert counted == DEFAULT_ARRIVALS
        assert dropped >= instance.max_duration * instance.total_rate
        assert dropped >= 10 * instance.mean_duration.max() * instance.total_rate
    assert arrivals_and_warmup(make_instance([[1.0]], [1.0], arrival_rate=[0.1]), 1)[0] == 1
    # a whole number of tasks is not rounded up by an ulp
    assert arrivals_and_warmup(make_instance([[1.0]], [1.0], arrival_rate=[0.1]), 30)[0] == 3


def test_users_policies_and_load_functions():
    def by_score(instance):
        return from_priorities(instance.scores, name="mine")

    half = {"loads": lambda i: [i.max_load / 2]}
    data = sweep([priority()], **{**SMALL, **half, "policies": ["greedy", by_score]})
    assert data.policy.values.tolist() == ["greedy", "mine"]
    assert data.offered_load.values == pytest.approx([0.4375])


def test_loads_are_sorted_and_counted_once():
    data = sweep([priority()], **{**SMALL, "loads": [0.5, 0.3, 0.1 + 0.2, 0.5]})
    assert data.offered_load.values.tolist() == [0.3, 0.5]


def test_one_replica_has_no_interval():
    data = sweep([priority()], **{**SMALL, "replicas": 1})
    assert np.isnan(data.reward_ci95).all()
    assert not np.isnan(data.reward_per_step).any()


def test_progress_ends_at_the_total():
    calls = []
    sweep([priority()], **{**SMALL, "loads": [0.3, 0.6]}, progress=lambda *call: calls.append(call))
    done, totals = zip(*calls, strict=True)
    expected = sum(sum(arrivals_and_warmup(priority(load), 500)) for load in (0.3, 0.6)) * 2 * 4
    assert set(totals) == {expected}
    assert list(done) == sorted(done)
    assert done[-1] == expected


def test_measure_from_given_counts():
    """Rewards by hand: one task type of two earned 1 and 0.5 in 10 arrivals at a rate of 0.5 per step."""
    instance = make_instance([[1.0, 0.5], [0.0, 0.25]], [1.0], arrival_rate=[0.25, 0.25])
    served = np.zeros((1, 2, 2, 3), np.int32)
    served[0, 0, 0], served[0, 0, 1], served[0, 1, 1] = [2, 3, 4], [1, 1, 1], [4, 4, 0]
    arrived = np.full((2, 3), 5, np.int32)
    counts = Counts(served, arrived, arrived - served[0].sum(axis=1), 10, ())
    cell = measure(instance, [build_policy("greedy", instance)], counts)
    np.testing.assert_allclose(cell.reward, [[3.5 / 20, 4.5 / 20, 4.5 / 20]])
    np.testing.assert_allclose(cell.blocked, [0.3, 0.2, 0.5])
    np.testing.assert_allclose(cell.assigned, [[[3 / 20, 1 / 20], [0, 8 / 3 / 20]]])
    assert cell.steps == 20
    assert cell.occ_ub == pytest.approx(occ_bound(instance, 1 / 3)[0])


BAD = [
    ({"steps": 0}, "steps is 0"),
    ({"steps": 1.5}, "steps is 1.5"),
    ({"steps": True}, "steps is True"),
    ({"steps": math.nan}, "steps is nan"),
    ({"steps": math.inf}, "steps is inf"),
    ({"steps": "many"}, "steps is 'many'"),
    ({"instances": []}, r"instances is \[\]"),
    ({"policies": []}, r"policies is \[\]"),
    ({"policies": "lag"}, "policies is 'lag'"),
    ({"loads": []}, r"loads is \[\]"),
    ({"loads": 0.3}, "loads is 0.3"),
    ({"loads": ["0.3"]}, "load is '0.3'"),
    ({"instances": [priority(), priority(0.3)]}, "instances share a name"),
    ({"policies": ["lag", "lag"]}, "policies share a name"),
    ({"policies": ["lag", lambda i: make_policy("lag", i.scores)]}, "policies share a name"),
    ({"policies": ["best"]}, "no policy 'best'"),
    ({"loads": [0.5, 0.99]}, "load 0.99"),
    ({"loads": [0.0, 0.5]}, "load 0 "),
    ({"selection": "any"}, "selection"),
]


@pytest.mark.parametrize(("changes", "message"), BAD, ids=[m for _, m in BAD])
def test_errors_come_before_any_simulation(changes, message, monkeypatch):
    monkeypatch.setattr(load_cells, "simulate", None)
    arguments = {"instances": [specialist(), priority()], **SMALL, **changes}
    with pytest.raises(InputError, match=message):
        sweep(arguments.pop("instances"), **arguments)


def test_a_program_that_fails_costs_its_cell_only(monkeypatch, tmp_path):
    """Programs are solved in the turn of their cell, once: the others are kept, and a second try would fail the same way."""
    module = sys.modules["lagjax.studies.measure"]
    tried = []

    def fail_late(instance, *_):
        if instance.load > 0.5:
            tried.append(instance.load)
            raise SolverError("no optimum")
        return 1.0

    monkeypatch.setattr(module, "occ_upper_bound", fail_late)
    arguments = {**SMALL, "loads": [0.6, 0.3], "policies": ["random"]}
    with pytest.raises(SolverError, match="no optimum"):
        sweep([priority()], **arguments)
    tried.clear()
    with pytest.raises(RunError, match=r"1 of 2 cells failed: priority 0\.6: no optimum"):
        sweep([priority()], **arguments, out=tmp_path)
    assert len(tried) == 1
    assert [path.name[:12] for path in (tmp_path / "run" / "cells").iterdir()] == ["priority_0.3"]


def test_no_program_is_solved_before_the_first_cell_runs(monkeypatch):
    """First feedback comes at once."""

    def stop(task, watch):
        raise ArithmeticError("first cell")

    for module, name in (("lagjax.policies.registry", "solve_occ"), ("lagjax.policies.registry", "solve_kiid")):
        monkeypatch.setattr(sys.modules[module], name, None)
    monkeypatch.setattr(load_cells, "run_load", stop)
    with pytest.raises(ArithmeticError, match="first cell"):
        sweep([priority()], **{**SMALL, "policies": ["lag", "alg-sc-lp"]})


def test_results_do_not_depend_on_the_number_of_devices(monkeypatch, small_sweep):
    one = jax.local_devices()[:1]
    monkeypatch.setattr(jax, "local_devices", lambda: one)
    data = sweep([priority()], loads=[0.3], policies=["whittle", "lag", "greedy"], steps=3000, replicas=48, seed=1)
    both = small_sweep.sel(instance="priority", offered_load=0.3)
    np.testing.assert_array_equal(data.reward.sel(offered_load=0.3, instance="priority"), both.reward)


def test_percent_of_the_optimum_where_it_is_known():
    """Priority at load 0.5: LAG is optimal, so its interval covers 100 (fixed seed); a system too large has none."""
    data = sweep([priority()], loads=[0.5], policies=["lag", "random"], steps=20_000, replicas=64)
    cell = data.sel(instance="priority", offered_load=0.5)
    np.testing.assert_allclose(cell.optimal_reward, optimum(priority(0.5)).reward)
    np.testing.assert_allclose(cell.percent_of_optimum, 100 * cell.reward_per_step / cell.optimal_reward)
    np.testing.assert_allclose(cell.percent_of_optimum_ci95, 100 * cell.reward_ci95 / cell.optimal_reward)
    lag = cell.sel(policy="lag")
    assert abs(lag.percent_of_optimum - 100) < 3 * lag.percent_of_optimum_ci95
    assert cell.percent_of_optimum.sel(policy="random") < 90
    assert "optimum" in percent_table(data, "priority")
    data = sweep([unfriendly()], loads=[0.5], policies=["lag"], steps=300, replicas=2)
    assert np.isnan(data.optimal_reward).all() and rows(data)[0]["percent_of_optimum"] is None
    assert "optimum" not in percent_table(data, "unfriendly")
