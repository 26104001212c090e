"""`lagjax solve`: a screen for any size, JSON and files for programs, options that reach the solver, Ctrl-C."""

import dataclasses
import json
import re
import time

import numpy as np
import pytest

from lagjax import lp
from lagjax.gallery import gallery
from lagjax.lp import solve_kiid, solve_occ
from lagjax.lp.watching import Step, solving
from lagjax.policies import build_policy
from lagjax.prices import load_policy
from lagjax.runs import solving as speaking


def scores_file(path, papers, reviewers, seed=0):
    rng = np.random.default_rng(seed)
    lines = [f"p{p},r{r},{rng.random():.3f}" for p in range(papers) for r in range(reviewers)]
    path.write_text("\n".join(lines) + "\n")


def test_a_small_system_is_shown_whole(lagjax):
    code, out, err = lagjax("solve", "priority", "--load", "0.7")
    solution = solve_occ(gallery("priority", 0.7))
    assert code == 0 and err.startswith("written: lagjax-solution/ (index.csv, ") and err.count("\n") == 1
    assert f"OPT(OCC-LP(0)) = {solution.objective:.9g} reward per step\n" in out
    assert "KIID" not in out
    assert "method interior (auto: 16 pairs are few enough for an exact method)" in out
    assert "Servers, the dearest first" in out and "standard 5" in out
    assert "16 pairs: 2 positive, 12 zero (12 with a share), 2 negative; 0 undecided" in out
    assert re.search(r"^standard +1 +-4.09 +-4.09 +0 \(0.167\)", out, re.MULTILINE)
    assert "e-4" not in out.split("Prices")[1]  # a price that is zero up to round-off is zero
    assert re.search(r"^q, .* 0 +0 +0.2445 +6$", out, re.MULTILINE)


def test_a_large_system_fits_a_screen(lagjax, tmp_path):
    scores_file(tmp_path / "s.csv", 60, 25)
    arguments = ("solve", "--scores", "s.csv", "--service", "geometric:20", "--per-task", "2", "--load", "0.5")
    code, out, _ = lagjax(*arguments)
    assert code == 0
    assert len(out.splitlines()) < 30 and max(map(len, out.splitlines())) < 200
    assert "The 10 dearest of 25 servers" in out and "--table prints it" in out
    whole = lagjax(*arguments, "--table").out
    assert "p59" in whole and len(whole.splitlines()) > 80
    assert "price ell" not in lagjax("solve", "priority", "--no-table").out


def test_the_dearest_servers_come_first(lagjax):
    out = lagjax("solve", "journal", "--load", "0.6").out
    solution, instance = solve_occ(gallery("journal", 0.6)), gallery("journal")
    named = re.findall(r"^(reviewer \d+) ", out, re.MULTILINE)
    assert named == [instance.servers[r] for r in np.argsort(-solution.server_price)[:10]]


def test_json_goes_to_a_file_or_to_stdout(lagjax, tmp_path):
    code, out, _ = lagjax("solve", "priority", "--load", "0.7", "--json", "-", "--kiid")
    page = json.loads(out)
    assert page["configuration"]["load"] == 0.7 and page["configuration"]["kiid"] is True
    instance = gallery("priority").with_load(0.7)
    solution = solve_occ(instance)
    assert code == 0
    assert page["objective"] == page["occ_ub"] == solution.objective
    assert page["kiid_ub"] == solve_kiid(instance).objective
    assert (page["method"], page["selection"], page["ties_undecided"]) == ("interior", "canonical", 0)
    assert page["relative_gap"] == solution.duality_gap and page["iterations"] == solution.iterations
    assert {"python", "lagjax", "numpy"} <= set(page["versions"])
    for key in ("index", "tie_weight", "task_price", "server_price"):
        assert page[key] == getattr(solution, key).tolist()
    assert page["mean_duration"] == instance.mean_duration.tolist()
    code, out, _ = lagjax("solve", "priority", "--load", "0.7", "--json", "page.json")
    assert code == 0 and "OPT(OCC-LP(0))" in out
    again = json.loads((tmp_path / "page.json").read_text())
    assert again == {**page, "kiid_ub": None, "configuration": {**page["configuration"], "kiid": False}}


def test_out_keeps_the_policy(lagjax, tmp_path):
    code, _, err = lagjax("solve", "unfriendly", "--load", "0.5", "--selection", "vertex", "--out", "prices")
    assert code == 0 and "written: prices/ (index.csv, " in err
    policy = build_policy("lag", gallery("unfriendly").with_load(0.5), "vertex")
    for path in (tmp_path / "prices", tmp_path / "prices" / "solution.npz"):
        np.testing.assert_array_equal(load_policy(path).tier, policy.tier)
        np.testing.assert_array_equal(load_policy(path).weight, policy.weight)


def test_method_and_gap_reach_the_solver_and_the_summary(lagjax, monkeypatch):
    asked = {}

    def dual(instance, blocking, selection, **more):
        asked.update(more, blocking=blocking, selection=selection)
        exact = solve_occ(instance, blocking, selection)
        return dataclasses.replace(exact, method="dual", iterations=175, ties_undecided=3, duality_gap=8e-5)

    monkeypatch.setattr(lp, "solve_occ", dual)
    code, out, _ = lagjax("solve", "priority", "--method", "dual", "--gap", "1e-3", "--blocking", "0.1")
    assert code == 0
    assert asked == {"method": "dual", "gap": 1e-3, "blocking": 0.1, "selection": "canonical"}
    assert (
        "method dual, 175 iterations, status optimal, selection canonical\n" in out
        and "gap 8.0e-05" in out
        and "3 undecided" in out
    )
    assert "OCC-LP(0.1)" in out
    assert "(auto: 16 pairs are too many for an exact method)" in lagjax("solve", "priority").out


def slow(instance, *_, **__):
    with solving("OCC-LP(0)") as tell:
        tell(Step("dual", 7, 1e-2, 1e-4))
        time.sleep(0.4)
    return solve_occ(instance)


def test_a_long_program_writes_lines_where_asked_and_nothing_in_a_pipe(lagjax, monkeypatch):
    monkeypatch.setattr(speaking, "PATIENCE", 0.1)
    monkeypatch.setattr(lp, "solve_occ", slow)
    assert lagjax("solve", "priority", "--json", "-").err == ""
    said = lagjax("solve", "priority", "--json", "-", "--progress", "lines").err
    assert said.startswith("OCC-LP(0): dual iteration 7, gap 1.0e-02 (to 1e-04), 0.1") and said.count("\n") == 1
    bar = lagjax("solve", "priority", "--json", "-", "--progress", "bar").err
    assert "OCC-LP(0): dual iteration 7" in bar and "\n" not in bar.replace("\r", "").strip()


def test_an_interrupt_is_one_line_and_130(lagjax, monkeypatch, tmp_path):
    def interrupted(*_, **__):
        with solving("OCC-LP(0)"):
            raise KeyboardInterrupt

    monkeypatch.setattr(lp, "solve_occ", interrupted)
    code, out, err = lagjax("solve", "priority", "--out", "prices", "--progress", "bar")
    assert (code, out, err) == (130, "", "lagjax: interrupted; run the same command again\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--method", "simplex"), "--method is 'simplex'; choose from auto, interior, highs"),
        (("--selection", "corner"), "selection is 'corner'"),
        (("--progress", "loud"), "--progress is 'loud'"),
        (("--json", "."), "--json . is a folder"),
        (("--out", "/proc/nowhere"), "--out: cannot write"),
        (("--blocking", "2"), "--blocking is 2"),
    ],
)
def test_bad_options(lagjax, tmp_path, arguments, message):
    code, out, err = lagjax("solve", "priority", *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert message in err
    assert list(tmp_path.iterdir()) == []


def test_json_of_millions_of_pairs_is_refused_before_any_work(lagjax, monkeypatch):
    monkeypatch.setattr("lagjax.cli.solve.MOST_JSON", 15)
    monkeypatch.setattr(lp, "solve_occ", None)
    code, _, err = lagjax("solve", "priority", "--json", "-")
    assert code == 2 and "--json would hold 16 pairs; use --out DIR" in err
