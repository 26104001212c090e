"""`lagjax route`: a table for people, rows for programs, one line for a fault."""

import json

import pytest

QUEUES = ("route", "--servers", "1,2", "--room", "3,4", "--rates", "1.0,0.8")
KEYS = {"policy", "loss_rate", "loss_ci95", "exact_loss", "optimal_loss", "loss_lower_bound", "arrival_rate", "traffic"}


def test_rows_for_programs(lagjax, tmp_path):
    given = (*QUEUES, "--arrivals", "1.5,3", "--jobs", "300", "--replicas", "64", "--json")
    done = lagjax(*given, "-")
    assert (done.code, done.err) == (0, "")
    page = json.loads(done.out)
    assert page["command"] == "route" and page["seed"] == 0 and "versions" in page
    rows = page["rows"]
    assert [row["policy"] for row in rows] == ["rb", "pi", "obs", "sq", "sed", "fas", "random"] * 2
    assert all(set(row) >= KEYS for row in rows)
    assert rows[0]["exact_loss"] == pytest.approx(0.0248531488149786, rel=1e-12) == rows[0]["optimal_loss"]
    assert rows[2]["exact_loss"] == pytest.approx(0.111638800505045, rel=1e-12)
    lagjax(*given, "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == page


def test_a_table_for_people(lagjax, tmp_path):
    done = lagjax(
        *QUEUES, "--arrivals", "1.5", "--policies", "rb,sq", "--jobs", "300", "--replicas", "64", "--out", "here"
    )
    assert done.code == 0 and "written: here/" in done.err
    assert "optimum 0.0248531 over 20 states" in done.out
    lines = [line.split() for line in done.out.splitlines()[-2:]]
    assert [line[0] for line in lines] == ["rb", "sq"] and lines[1][-1] == "+16.235"
    assert (tmp_path / "here" / "table.txt").read_text() == done.out
    assert (tmp_path / "here" / "route.nc").exists()


def test_what_is_too_large_or_too_rare(lagjax):
    done = lagjax(*QUEUES, "--arrivals", "0.01", "--policies", "rb", "--jobs", "100", "--exact-states", "0")
    assert done.code == 0 and "exact" not in done.out and "optimum" not in done.out
    assert "fewer than 30 of 1024 replicas saw a loss of rb: no interval" in done.err and done.err.count("\n") == 2
    never = lagjax(
        *QUEUES, "--arrivals", "0.001", "--policies", "rb", "--jobs", "100", "--exact-states", "0", "--fresh"
    )
    assert never.code == 0 and "rb      0 (none seen)" in never.out


ONE = ("--servers", "1", "--room", "1", "--rates", "1")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ("--servers", "2,1", "--room", "1,1", "--rates", "1,1", "--arrivals", "1"),
            "queue 1 has room for 1 jobs but 2 servers",
        ),
        (("--servers", "1,1", "--room", "1,1", "--rates", "1,0", "--arrivals", "1"), "queue 2 has service rate 0"),
        (("--servers", "1,1", "--room", "1,1", "--rates", "1,-1", "--arrivals", "1"), "queue 2 has service rate -1"),
        (("--servers", "1,1", "--room", "1,1", "--rates", "1", "--arrivals", "1"), "servers 2, room 2, rates 1"),
        (("--servers", "1,1", "--room", "1", "--rates", "1,1", "--arrivals", "1"), "servers 2, room 1, rates 2"),
        (
            ("--servers", "1,x", "--room", "1,1", "--rates", "1,1", "--arrivals", "1"),
            "--servers '1,x': 'x' is not a whole number",
        ),
        (
            ("--servers", "1", "--room", "1", "--rates", "fast", "--arrivals", "1"),
            "--rates 'fast': 'fast' is not a number",
        ),
        ((*ONE, "--arrivals", "0"), "--arrivals is 0"),
        ((*ONE, "--arrivals", "1,1"), "repeat"),
        ((*ONE, "--arrivals", "1,1e300"), "--arrivals 1e+300 over rates 1 of queue 1 is a load of 1e+300; give"),
        (ONE, "--arrivals is missing; give all of --servers, --room, --rates, --arrivals, or none"),
        ((*ONE, "--arrivals", "1", "--policies", "jsq"), "no policy 'jsq'"),
        ((*ONE, "--arrivals", "1", "--jobs", "0"), "--jobs is 0"),
    ],
)
def test_faults_are_one_line(lagjax, tmp_path, arguments, words):
    done = lagjax("route", *arguments)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and words in done.err
    assert list(tmp_path.iterdir()) == []
