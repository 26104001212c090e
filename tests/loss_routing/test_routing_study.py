"""Comparisons: what the Dataset and its rows hold, and which intervals are given."""

import numpy as np
import pytest

from lagjax import InputError
from lagjax.loss_routing import (
    exact_loss,
    from_index,
    least_loss,
    make_system,
    optimal_splitting,
    relaxation_bounds,
)
from lagjax.studies.dataset import load, save
from lagjax.studies.routing import LEAST_SEEN, needed, route
from lagjax.studies.show_route import ROW_KEYS, rows

BASE = make_system([1, 2], [3, 4], [1.0, 0.8], 2.0)
SYSTEMS = [BASE, BASE.with_arrival_rate(3.0)]


def mine(system):
    return from_index([[0, 1, 2, 9], [0, 1, 2, 3]], system, name="mine")


@pytest.fixture(scope="module")
def data():
    return route(SYSTEMS, policies=["rb", "sq", "obs", mine], arrivals=2000, replicas=256, seed=2)


def test_values(data):
    for system in SYSTEMS:
        cell = data.sel(arrival_rate=system.arrival_rate)
        assert cell.optimal_loss == least_loss(system).loss and cell.optimal_bracket < 1e-13
        assert cell.loss_lower_bound == relaxation_bounds(system).loss and cell.traffic == system.traffic
        assert cell.exact_loss.sel(policy="mine") == exact_loss(system, mine(system)).loss
        assert np.all(cell.exact_loss >= cell.optimal_loss * (1 - 1e-12))
        error = cell.loss_ci95 / 1.97
        assert np.all(np.abs(cell.loss_rate - cell.exact_loss) < 5.3 * error)
        assert np.all(np.abs(cell.drift) < 5.3 / 1.97 * cell.drift_ci95)
        assert np.all(cell.seen == 256) and cell.states == 20


def test_pairs_on_the_same_events(data):
    """Ratios and differences cover their exact values, far tighter than if the events differed."""
    for system in SYSTEMS:
        cell = data.sel(arrival_rate=system.arrival_rate)
        exact = cell.exact_loss.values
        np.testing.assert_allclose(np.diag(cell.ratio), 1)
        assert np.all(np.diag(cell.ratio_ci95) == 0) and np.all(np.diag(cell.difference_ci95) == 0)
        off = ~np.eye(4, dtype=bool)
        for value, half, truth in (
            (cell.ratio, cell.ratio_ci95, exact[:, None] / exact),
            (cell.difference, cell.difference_ci95, exact[:, None] - exact),
        ):
            assert np.all(np.abs(value.values - truth)[off] <= 5.3 / 1.97 * half.values[off])  # `mine` is sq here
        pair = cell.sel(policy="sq", than="rb")
        alone = np.hypot(*cell.loss_ci95.sel(policy=["sq", "rb"]).values)
        assert pair.difference_ci95 < 0.5 * alone and pair.ratio - pair.ratio_ci95 > 1


def test_rows_and_files(data, tmp_path):
    found = rows(data)
    assert [(row["arrival_rate"], row["policy"]) for row in found] == [
        (rate, policy) for rate in (2.0, 3.0) for policy in ("rb", "sq", "obs", "mine")
    ]
    assert all(tuple(row) == ROW_KEYS for row in found)
    assert found[0]["ratio_to_first"] == 1.0 and found[1]["ratio_to_first"] > 1
    save(data, tmp_path / "route.nc")
    assert load(tmp_path / "route.nc").identical(data)


def test_no_interval_where_losses_were_hardly_seen():
    system = make_system([2, 2], [6, 6], [1.0, 1.0], 0.8)
    data = route([system], policies=["rb", "random"], arrivals=500, replicas=64)
    rare = data.squeeze("arrival_rate").sel(policy="rb")
    assert rare.seen < LEAST_SEEN and np.isnan(rare.loss_ci95) and np.isnan(rare.ratio_ci95.sel(than="random"))
    assert rows(data)[0]["loss_ci95"] is None and rows(data)[0]["exact_loss"] > 0


def test_few_replicas_have_intervals_if_all_saw_losses():
    assert [needed(replicas) for replicas in (1, 2, 8, 1024)] == [2, 2, 8, LEAST_SEEN]
    for replicas, given in ((1, False), (4, True)):
        data = route([BASE], policies=["sq"], arrivals=3000, replicas=replicas, exact_states=0)
        assert np.isfinite(data.loss_ci95.values).all() == given and data.seen == replicas


def test_beyond_exact_sizes():
    system = make_system([1] * 12, [5] * 12, [1.0] * 12, 11.0)
    data = route([system], policies=["sq", "obs"], arrivals=300, replicas=32)
    cell = data.squeeze("arrival_rate")
    assert np.isnan(cell.optimal_loss) and np.isnan(cell.exact_loss.sel(policy="sq"))
    assert cell.exact_loss.sel(policy="obs") == optimal_splitting(system).loss
    row = rows(data)[0]
    assert row["optimal_loss"] is None and row["exact_loss"] is None and row["states"] == 6**12


def test_progress_and_faults():
    told = []
    route(SYSTEMS, policies=["sq"], arrivals=100, replicas=4, progress=lambda *now: told.append(now))
    done, total = zip(*told, strict=True)
    assert set(total) == {800} and list(done) == sorted(done) and 0 < done[-1] <= 800
    with pytest.raises(InputError, match="repeat or are missing"):
        route([BASE, BASE], arrivals=100)
    with pytest.raises(InputError, match="share a name"):
        route([BASE], policies=[mine, mine], arrivals=100)
