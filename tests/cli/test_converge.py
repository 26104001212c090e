"""`lagjax converge`, and its faults."""

import json

import numpy as np
import pytest

from lagjax import gallery, make_instance
from lagjax.errors import InputError
from lagjax.studies.convergence import Size, converge, sizes_of
from lagjax.studies.dataset import load
from lagjax.studies.show_converge import ROW_KEYS, rows

SMALL = ("--steps", "20", "--replicas", "4")


def test_sizes_pair_n_with_m():
    assert sizes_of([1, 4, 17]) == [Size(1, 1), Size(4, 2), Size(17, 4)]
    assert sizes_of([1, 4], [1]) == [Size(1, 1), Size(4, 1)]
    assert sizes_of([1], [1, 4]) == [Size(1, 1), Size(1, 4)]
    assert sizes_of([2, 3], [5, 6]) == [Size(2, 5), Size(3, 6)]
    with pytest.raises(InputError, match="3 values of copies go with 2"):
        sizes_of([1, 2, 3], [1, 2])
    with pytest.raises(InputError, match="named twice"):
        sizes_of([4, 4])


def test_converge_writes_table_plot_and_dataset(lagjax, tmp_path):
    code, out, err = lagjax("converge", "priority", "--copies", "1,16", *SMALL, "--out", "results")
    assert code == 0, err
    folder = tmp_path / "results"
    assert {p.name for p in folder.iterdir()} == {"converge.png", "table.txt", "converge.nc", "run"}
    assert (folder / "table.txt").read_text() == out
    data = load(folder / "converge.nc")
    assert list(data.copies) == [1, 16] and list(data.dispatchers) == [1, 4]
    assert "91.6 to 96.5" in out  # what the paper states of Priority at n = 16


def test_json_rows(lagjax, tmp_path):
    args = (
        "converge",
        "priority",
        "--load",
        "0.6",
        "--copies",
        "4",
        "--dispatchers",
        "1,3",
        "--policies",
        "lag,greedy",
    )
    code, out, _ = lagjax(*args, *SMALL, "--json", "-")
    assert code == 0
    found = json.loads(out)["rows"]
    assert [(r["policy"], r["copies"], r["dispatchers"]) for r in found] == [
        ("lag", 4, 1), ("lag", 4, 3), ("greedy", 4, 1), ("greedy", 4, 3),
    ]  # fmt: skip
    for row in found:
        assert tuple(row) == ROW_KEYS
        assert row["load"] == pytest.approx(0.6) and row["steps"] == 20 and row["replicas"] == 4
        assert row["percent_of_occ_ub"] == pytest.approx(100 * row["reward_per_step"] / row["occ_ub"])
    assert not list(tmp_path.iterdir())


def test_default_steps_bring_the_interval():
    instance = make_instance([[1.0, 0.4], [0.3, 1.0]], np.ones(1), load=0.4, name="quick")
    data = converge([instance], sizes=sizes_of([4]), replicas=64)
    assert data.percent_ci95.item() < 0.3


def test_empty_and_warm_start_agree():
    """The same stationary mean from both starts: 5 standard errors, false alarm 6e-7."""
    kept = {}
    for start in ("warm", "empty"):
        data = converge([gallery("priority", 0.7)], sizes=sizes_of([16]), steps=400, replicas=64, seed=3, start=start)
        kept[start] = data.reward.values.ravel()
    spread = np.sqrt(sum(r.var(ddof=1) / r.size for r in kept.values()))
    assert abs(kept["warm"].mean() - kept["empty"].mean()) < 5 * spread


def test_policies_see_the_same_tasks():
    sizes = sizes_of([4], [1, 3])  # with the policies and replicas of `test_json_rows`: its programs serve
    data = converge([gallery("priority", 0.7)], sizes=sizes, policies=["lag", "greedy"], steps=50, replicas=4)
    np.testing.assert_array_equal(data.tasks.sel(policy="lag"), data.tasks.sel(policy="greedy"))
    assert {r["policy"] for r in rows(data)} == {"lag", "greedy"}


CASES = [
    (("--copies", "4,x"), "'x' is not a whole number"),
    (("--copies", "0"), "copies is 0"),
    (("--copies", "4", "--dispatchers", "0"), "dispatchers is 0"),
    (("--copies", "4", "--dispatchers", "root"), "'root' is not a whole number"),
    (("--copies", "1,4,16", "--dispatchers", "1,2"), "as many of each"),
    (("--copies", "4,4"), "named twice"),
    (("--copies", "16777216", "--dispatchers", "16"), "use fewer"),
    (("--load", "0.95"), "0.875"),
    (("--start", "cold"), "'cold'"),
    (("--policies", "lagg"), "'lagg'"),
    (("--steps", "1"), "steps is 1"),
    (("--replicas", "0"), "replicas is 0"),
    (("--seed", "-3"), "seed is -3"),
    (("--out", "/proc/nowhere"), "--out"),
]


@pytest.mark.parametrize(("args", "expected"), CASES, ids=[" ".join(c[0]) for c in CASES])
def test_bad_input_is_one_line_exit_2_and_no_file(lagjax, tmp_path, args, expected):
    code, out, err = lagjax("converge", "priority", *args)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert expected in err
    assert not list(tmp_path.iterdir())
