"""`lagjax fluid`, and its faults."""

import json
import shutil

import pytest

from lagjax import gallery, solve_occ

KEYS = {
    "instance", "load", "policy", "residual", "fluid_reward", "occ_ub_0", "spectral_radius", "starts", "steps",
    "max_final_distance", "slowest_start", "attractor", "cycle_length",
}  # fmt: skip


def test_writes_report_plot_and_json(lagjax, tmp_path):
    code, out, err = lagjax("fluid", "unfriendly", "--load", "0.5", "--starts", "20", "--out", "results")
    assert code == 0, err
    folder = tmp_path / "results"
    assert {p.name for p in folder.iterdir()} == {"report.txt", "fluid.json", "fluid.png"}
    assert (folder / "report.txt").read_text() == out
    assert "\nATTRACTOR: " in out
    page = json.loads((folder / "fluid.json").read_text())
    assert page["rows"][0].keys() >= KEYS and page["rows"][0]["attractor"] is True
    # the same figures again, and nothing written
    shutil.rmtree(folder)
    code, out, _ = lagjax("fluid", "unfriendly", "--load", "0.5", "--starts", "20", "--json", "-")
    assert code == 0 and json.loads(out) == page
    assert not list(tmp_path.iterdir())


def test_json_keys(lagjax):
    code, out, _ = lagjax("fluid", "specialist", "--load", "0.3", "--starts", "9", "--steps", "50", "--json", "-")
    (page,) = json.loads(out)["rows"]
    assert code == 0 and page.keys() >= KEYS
    assert (page["instance"], page["load"], page["policy"]) == ("specialist", 0.3, "lag")
    assert (page["starts"], page["steps"], page["cycle_length"]) == (9, 50, None)
    assert page["occ_ub_0"] == pytest.approx(solve_occ(gallery("specialist", 0.3)).objective, rel=1e-12)
    assert page["fluid_reward"] == pytest.approx(page["occ_ub_0"], rel=1e-12)
    assert page["residual"] < 1e-12
    assert page["attractor"] == "undecided"  # 50 steps are too few, and it says so


def test_a_cycle_is_reported(lagjax, tmp_path):
    """One task a step, one step of service: server a, preferred, serves every other step."""
    (tmp_path / "two.csv").write_text("task,a,1\ntask,b,0.5\ntask,c,0.5\ntask,e,0.2\n")
    args = ("fluid", "--scores", "two.csv", "--service", "deterministic:1", "--load", "0.25", "--starts", "12")
    code, out, err = lagjax(*args, "--steps", "200")
    assert code == 0, err
    assert "NO ATTRACTOR: " in out and "cycle of 2 steps" in out
    (page,) = json.loads(lagjax(*args, "--steps", "200", "--json", "-").out)["rows"]
    assert page["attractor"] is False and page["cycle_length"] == 2


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("priority", "--load", "0.9"), "0.875"),
        (("priority", "--policy", "lagg"), "'lagg'"),
        (("priority", "--policy", "lag,greedy"), "one policy"),
        (("priority", "--starts", "0"), "starts is 0"),
        (("priority", "--steps", "-3"), "steps is -3"),
        (("priority", "--selection", "best"), "'best'"),
        (("priority", "--seed", "-1"), "seed is -1"),
        (("prioritee",), "'prioritee'"),
    ],
)
def test_faults(lagjax, tmp_path, args, said):
    code, out, err = lagjax("fluid", *args)
    assert code == 2 and out == ""
    assert err.startswith("lagjax: error: ") and err.count("\n") == 1
    assert said in err
    assert not list(tmp_path.iterdir())
