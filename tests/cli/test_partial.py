"""`lagjax partial`: a table for people, rows for programs, one line for a fault."""

import json

import pytest

from lagjax.partial_information import POLICIES

SERVERS = ("partial", "--model", "blocking", "--rates", "0.5,0.25x2", "--capacity", "3")
KEYS = {"policy", "discounted_reward", "discounted_ci95", "average_reward", "average_ci95"}


def test_rows_for_programs(lagjax, tmp_path):
    given = (*SERVERS, "--horizon", "60", "--replicas", "64", "--json")
    done = lagjax(*given, "-")
    assert (done.code, done.err) == (0, "")
    page = json.loads(done.out)
    assert page["command"] == "partial" and page["seed"] == 0 and "versions" in page
    assert [row["policy"] for row in page["rows"]] == list(POLICIES)
    assert all(row["oracle"].startswith("jsq") and row["seen_value"] > row["discounted_reward"] for row in page["rows"])
    assert all(set(row) >= KEYS for row in page["rows"])
    lagjax(*given, "rows.json")
    assert json.loads((tmp_path / "rows.json").read_text()) == page


def test_a_table_for_people(lagjax, tmp_path):
    done = lagjax(
        "partial", "--model", "finite", "--rates", "0.5,0.25", "--capacity", "2", "--discount", "0.9",
        "--policies", "whittle,jsq", "--start", "empty", "--horizon", "60", "--replicas", "64", "--out", "here",
    )  # fmt: skip
    assert done.code == 0 and "written: here/" in done.err
    assert "optimum of all policies that see what the dispatcher sees" in done.out and "start empty" in done.out
    assert (tmp_path / "here" / "table.txt").read_text() == done.out and (tmp_path / "here" / "partial.nc").exists()


def test_index_tables(lagjax):
    done = lagjax(*SERVERS, "--index")
    assert done.code == 0 and done.out.count("indexable") == 2 and "q=3" in done.out
    page = json.loads(lagjax(*SERVERS, "--index", "--json", "-").out)
    first = next(r for r in page["rows"] if r["rate"] == 0.5 and r["backlog"] == 1 and r["age"] == 1)
    assert first["index"] == pytest.approx(GOLDEN, abs=1e-6) and first["indexable"] is True
    done = lagjax("partial", "--model", "finite", "--rates", "0.5", "--capacity", "2", "--index", "--discount", "1")
    assert done.code == 0 and "closed form" in done.out


def test_the_average_of_one_server(lagjax):
    few = ("--capacity", "2", "--discount", "1", "--horizon", "20", "--replicas", "64")
    done = lagjax("partial", "--model", "finite", "--rates", "0.5", "--policies", "jsq", *few)
    assert done.code == 0 and done.out.startswith("N = 1 server, ") and "total reward" in done.out
    done = lagjax("partial", "--model", "finite", "--rates", "0.5x2", "--policies", "jsq", *few, "--fresh")
    assert done.code == 0 and "exact average" in done.out and "for ever" not in done.out


GOLDEN = 0.231695094  # where value iteration is indifferent, to 1e-9


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--rates", "0.5,0", "--capacity", "3"), "server 2 has rate 0"),
        (("--rates", "0.5,x", "--capacity", "3"), "--rates '0.5,x': 'x' is no rate and number"),
        (("--rates", "0.5x9999", "--capacity", "3"), "9999 servers"),
        (("--rates", "0.5", "--capacity", "0"), "--capacity is 0"),
        (("--rates", "0.5", "--capacity", "3", "--discount", "1.5"), "--discount is 1.5"),
        (("--rates", "0.5", "--capacity", "3", "--discount", "0"), "--discount is 0"),
        (("--rates", "0.5", "--capacity", "3", "--ages", "9"), "use more ages"),
        (("--rates", "0.5", "--capacity", "3", "--horizon", "0"), "--horizon is 0"),
        (("--rates", "0.5", "--capacity", "3", "--start", "half"), "--start is 'half'"),
        (
            ("--rates", "0.5", "--capacity", "3", "--start", "half", "--index"),
            "--start is 'half'; choose from full, empty",
        ),
        (("--rates", "0.5", "--capacity", "3", "--model", "open"), "--model is 'open'; choose from finite, blocking"),
        (("--rates", "0.5x0,1", "--capacity", "3"), "--rates '0.5x0,1': '0.5x0' is no rate and number"),
        (("--rates", "0.5", "--capacity", "3", "--policies", "lag"), "no policy 'lag'"),
        (("--rates", "0.5"), "--capacity is missing"),
    ],
)
def test_faults_are_one_line(lagjax, tmp_path, arguments, words):
    done = lagjax("partial", "--model", "blocking", *arguments)
    assert done.code == 2 and done.out == "" and done.err.count("\n") == 1 and words in done.err
    assert list(tmp_path.iterdir()) == []
