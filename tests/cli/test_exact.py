"""`lagjax exact`: a table for people, rows for programs, and one line when a system is too large."""

import json

import pytest

KEYS = {
    "instance", "load", "policy", "reward_per_step", "blocking", "percent_of_occ_ub", "percent_of_optimum",
    "optimal_reward", "states", "level_bound",
}  # fmt: skip


def test_rows_for_programs(lagjax):
    done = lagjax("exact", "priority", "--load", "0.2", "--selection", "vertex", "--json", "-")
    assert (done.code, done.err) == (0, "")
    page = json.loads(done.out)
    assert page["command"] == "exact" and page["configuration"]["selection"] == "vertex" and "jax" in page["versions"]
    rows = page["rows"]
    named = ["lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate"]
    assert [row["policy"] for row in rows] == [*named, "tuned", "lag-levels", "improved"]
    assert all(set(row) == KEYS and row["states"] >= 21 and row["instance"] == "priority" for row in rows)
    lag = rows[0]
    assert lag["percent_of_occ_ub"] == pytest.approx(84.14, abs=0.005)
    assert lag["percent_of_optimum"] == pytest.approx(100 * lag["reward_per_step"] / lag["optimal_reward"])
    assert lag["optimal_reward"] < lag["level_bound"] < 0.93 * lag["reward_per_step"] / lag["percent_of_occ_ub"] * 100
    assert len({round(row["blocking"], 12) for row in rows}) == 1
    assert (
        rows[6]["percent_of_occ_ub"] > 87.75
        and rows[7]["percent_of_occ_ub"] > 88.3
        and rows[-1]["percent_of_optimum"] > 99.9
    )


def test_only_small_systems_are_tuned_unasked(lagjax, tmp_path):
    (tmp_path / "s.csv").write_text(
        "paper,reviewer,score\n" + "".join(f"p0,r{r},1\np1,r{r},{r // 6}\n" for r in range(12))
    )
    done = lagjax("exact", "--scores", "s.csv", "--service", "geometric:5", "--load", "0.4", "--json", "-")
    assert done.code == 0 and [row["policy"] for row in json.loads(done.out)["rows"]][-1] == "whittle-rate"


def test_a_table_for_people(lagjax, tmp_path):
    done = lagjax("exact", "specialist", "--load", "0.8", "--policies", "lag,greedy")
    assert done.code == 0 and done.err.startswith("written: lagjax-exact/ (exact.nc, table.txt")
    assert (tmp_path / "lagjax-exact" / "table.txt").read_text() == done.out
    assert lagjax("report", "lagjax-exact").code == 0
    assert (
        "Without simulation: specialist; policies lag, greedy."
        in (tmp_path / "lagjax-exact" / "report.html").read_text()
    )
    assert "over 96 states" in done.out and "exact blocking B = 0.133" in done.out
    assert [line.split()[0] for line in done.out.splitlines()[-2:]] == ["lag", "greedy"]
    assert done.out.splitlines()[-2].split()[2:4] == ["92.73", "100.00"]


def test_a_file_of_ones_own(lagjax, tmp_path):
    (tmp_path / "s.csv").write_text("paper,reviewer,score\np0,r0,0.1\np0,r1,0.2\np1,r0,0.3\np1,r1,0.4\n")
    done = lagjax(
        "exact", "--scores", "s.csv", "--service", "geometric:5", "--load", "0.4", "--policies", "lag", "--json", "-"
    )
    assert done.code == 0 and json.loads(done.out)["rows"][0]["states"] == 4


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("low-rank",), "10^49 states; exact solutions stop at 2,000,000 states"),
        (("journal",), "more than"),
        (("priority", "--load", "0.9"), "choose a load from 1e-06 to 0.875"),
        (("priority", "--selection", "corner"), "corner"),
        (("priority", "--policies", "lag,greedo"), "'greedo'"),
    ],
)
def test_faults_are_one_line(lagjax, arguments, words):
    done = lagjax("exact", *arguments)
    assert done.code == 2 and done.out == ""
    assert words in done.err and done.err.count("\n") == 1
