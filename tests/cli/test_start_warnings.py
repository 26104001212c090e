"""Every command says where a figure still shows its start: in its table, in its rows and in one line."""

import json

import pytest

from lagjax.stats import NOT_STATIONARY
from lagjax.studies import load_cells, size_cells

FORCED = {
    "compat": ("--servers", 2, "--graph", "complete", "--load", 0.95, "--time", 20, "--warmup", 0, "--replicas", 128,
        "--horizon", 0),
    "route": ("--servers", 1, "--room", 300, "--rates", 1, "--arrivals", 1, "--jobs", 2000, "--replicas", 64, "--policies", "sq"),
    "partial": (
        "--model", "finite", "--rates", "0.001x50", "--capacity", 5, "--start", "empty", "--horizon", 60, "--policies", "random",
        "--replicas", 256,
    ),
    "converge": (
        "priority", "--load", 0.5, "--copies", 16, "--steps", 20, "--replicas", 128, "--start", "empty", "--policies", "greedy",
    ),
    "sweep": ("priority", "--loads", 0.875, "--steps", 300, "--replicas", 2048, "--policies", "greedy"),
}  # fmt: skip


@pytest.mark.parametrize("command", FORCED)
def test_a_start_that_decides_is_named(command, lagjax, monkeypatch):
    """Short runs from far away, those of sweep and converge without their warm-up: drifts of five standard errors and more."""
    monkeypatch.setattr(size_cells, "warmup_steps", lambda mean, longest, start: 0)
    monkeypatch.setattr(load_cells, "arrivals_and_warmup", lambda instance, steps: (256, 0))
    code, out, err = lagjax(command, *FORCED[command], "--json", "rows.json")
    assert code == 0, err
    (warning,) = [line for line in err.splitlines() if line.startswith("warning: ")]
    assert warning.startswith(f"warning: {NOT_STATIONARY}: ")
    assert NOT_STATIONARY in out
    with open("rows.json") as file:
        page = json.load(file)
    assert [row["stationary"] for row in page["rows"]] == [False]
