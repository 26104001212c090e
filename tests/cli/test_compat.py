"""`lagjax compat`, and its faults."""

import json

import numpy as np
import pytest

from lagjax.studies.dataset import load

SMALL = ("--servers", "20", "--time", "4", "--warmup", "1", "--replicas", "128", "--horizon", "1")


def test_compat_writes_table_plot_and_dataset(lagjax, tmp_path):
    code, out, err = lagjax("compat", *SMALL, "--graph", "regular,ring", "--degree", "4", "--out", "results")
    assert code == 0, err
    folder = tmp_path / "results"
    assert {p.name for p in folder.iterdir()} == {"compat.png", "table.txt", "compat.nc", "run"}
    assert (folder / "table.txt").read_text() == out
    assert "sup-distance to the ODE" in out and "ring, 20 servers, 20 types, jsq(2), load 0.9" in out
    data = load(folder / "compat.nc")
    assert dict(data.sizes) == {"case": 2, "level": 64, "bundle": 2}
    np.testing.assert_allclose(data.occupancy.mean("bundle").sum("level"), data.mean_queue_length)


def test_json_of_one_case(lagjax, tmp_path):
    (tmp_path / "desk.csv").write_text("0,0\n0,1\n1,1\n1,2\n2,0\n2,2\n")
    args = (
        "--graph",
        "desk.csv",
        "--load",
        "0.5",
        "--policy",
        "jiq",
        "--replicas",
        "128",
        "--time",
        "40",
        "--json",
        "-",
    )
    code, out, err = lagjax("compat", *args)
    assert code == 0, err
    (found,) = json.loads(out)["rows"]
    assert set(found["rows"][0]) == {"level", "occupancy", "occupancy_ci95", "fixed_point"}
    first = found["rows"][0]
    assert abs(first["occupancy"] - 0.5) < 4 * first["occupancy_ci95"] and first["fixed_point"] == 0.5
    assert found["mean_sojourn_time"] == pytest.approx(found["mean_queue_length"] / 0.5)
    assert found["mean_queue_length"] == pytest.approx(sum(r["occupancy"] for r in found["rows"]), rel=1e-4)
    assert found["sigma"] == pytest.approx(0.5) and found["sup_distance"] is None
    assert found["subcriticality_margin"] == pytest.approx(0.5)
    assert [p.name for p in tmp_path.iterdir()] == ["desk.csv"]


def test_json_of_a_sweep(lagjax, tmp_path):
    code, out, err = lagjax(
        "compat", *SMALL[2:], "--servers", "6,12", "--graph", "complete", "--load", "0.4,0.8", "--json", "s.json"
    )
    assert code == 0, err
    cases = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert [(c["servers"], c["load"]) for c in cases] == [(6, 0.4), (6, 0.8), (12, 0.4), (12, 0.8)]
    assert all(c["rows"] and c["sup_distance"] > 0 for c in cases)
    assert "complete" in out and not (tmp_path / "lagjax-compatibility").exists()


def test_a_file_among_several_sizes_has_its_own(lagjax, tmp_path):
    (tmp_path / "good.csv").write_text("0,0\n0,1\n1,1\n1,2\n2,0\n2,2\n")
    short = ("--time", "2", "--warmup", "0", "--replicas", "64", "--horizon", "0", "--json", "s.json")
    code, out, err = lagjax("compat", "--servers", "6,12", "--graph", "good.csv,complete", *short)
    assert code == 0 and "note: good.csv has 3 servers of its own" in err
    assert [c["servers"] for c in json.loads((tmp_path / "s.json").read_text())["rows"]] == [3, 6, 12]
    assert out.endswith("one bundle of 64 replicas: no intervals; use --replicas 128 or more\n")
    assert "sup-distance: " not in out and out.count("±") == 1  # the legend's


CASES = [
    (("--graph", "star"), "no graph 'star'"),
    (("--servers", "0"), "--servers is 0"),
    (("--servers", "12,x"), "'x' is not a whole number"),
    (("--types", "-3"), "--types is -3"),
    (("--choices", "0"), "--choices is 0"),
    (("--load", "-0.5"), "--load is -0.5"),
    (("--load", "1"), "--load is 1"),
    (("--load", "high"), "--load 'high': 'high' is not a number"),
    (("--load", "nan"), "--load 'nan'"),
    (("--policy", "lag"), "no policy 'lag'"),
    (("--degree", "-2"), "--degree is -2"),
    (("--degree", "3.5"), "evenly"),
    (("--graph", "random", "--degree", "0.1"), "has no server"),
    (("--graph", "random", "--degree", "20"), "overloaded under random routing"),
    (("--graph", "edges.csv"), "line 2"),
    (("--graph", "good.csv"), "--servers is 50, but good.csv has 3; leave --servers out, or give 3"),
    (("--graph", "good.csv", "--servers", "3", "--types", "9"), "--types is 9, but good.csv has 2"),
    (("--replicas", "100"), "multiple of 64"),
    (("--time", "1"), "--time is 1"),
    (("--epsilon", "0"), "--epsilon is 0"),
    (("--epsilon", "1e-300", "--replicas", "64"), "--epsilon is 1e-300; give a deviation from 1e-09 to below 1"),
    (("--load", "5e-324"), "--load is 4.94066e-324; give the arrival rate per server, from 1e-06 to below 1"),
    (("--horizon", "-1"), "--horizon is -1"),
    (("--horizon", "1e300"), "--horizon is 1e+300; give mean service times, below 1e6"),
    (("--warmup", "-1"), "--warmup is -1"),
    (("--policy", "random", "--allow-overloaded"), "--allow-overloaded"),
    (("--seed", "-3"), "--seed is -3"),
    (("--out", "/proc/nowhere"), "--out"),
    (("--json", "."), "folder"),
]


@pytest.mark.parametrize(("args", "expected"), CASES, ids=[" ".join(c[0]) for c in CASES])
def test_bad_input_is_one_line_exit_2_and_no_file(lagjax, tmp_path, args, expected):
    (tmp_path / "edges.csv").write_text("0,1\n0,one\n")
    (tmp_path / "good.csv").write_text("0,0\n0,1\n1,2\n")
    servers = () if "--servers" in args else ("--servers", "50")
    code, out, err = lagjax("compat", *servers, *args)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert expected in err
    assert {p.name for p in tmp_path.iterdir()} == {"edges.csv", "good.csv"}
