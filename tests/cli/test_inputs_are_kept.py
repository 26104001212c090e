"""Nothing that a command reads is ever written: by its own name, through a link, or as another name of the same file."""

import os

import pytest

from lagjax.cli.app import COMMANDS as COMMANDS_OF_ALL
from lagjax.cli.app import command

SCORES = "paper,reviewer,score\np0,r0,0.1\np0,r1,0.2\np1,r0,0.3\np1,r1,0.4\n"
FILES = ("--scores", "in.csv", "--service", "geometric:5")
LAW = ("--scores", "other.csv", "--service")
GRAPH = ("compat", "--servers", "4", "--graph", "in.csv")
# command, what it reads in.csv as, files that it writes in its folder, its option for a single file
COMMANDS = [
    (("sweep", *FILES), SCORES, ["sweep.nc", "table.txt", "in.png"], "--json"),
    (("sweep", "--scores", "other.csv", "--durations", "in.csv"), "3\n4\n", ["sweep.nc"], "--json"),
    (("sweep", *LAW, "sample:in.csv"), "3\n4\n", ["run/cells/old.cell"], "--json"),
    (("sweep", *LAW, "sample:in.csv:1"), "3\n4\n", ["other.png"], "--json"),
    (("converge", *FILES), SCORES, ["converge.nc", "table.txt", "converge.png"], "--json"),
    (("solve", *FILES), SCORES, ["index.csv", "tasks.csv", "solution.npz"], "--json"),
    (("exact", *FILES), SCORES, ["exact.nc", "table.txt"], "--json"),
    (("fluid", *FILES), SCORES, ["fluid.png", "fluid.json", "report.txt"], "--json"),
    (GRAPH, "0,0\n1,1\n0,2\n1,3\n", ["compat.nc", "table.txt", "compat.png"], "--json"),
]
CASES = [
    (command, text, where)
    for command, text, names, option in COMMANDS
    for where in [*(("--out", name) for name in names), (option, None)]
]


@pytest.mark.parametrize(("command", "text", "where"), CASES, ids=[f"{c[0][0]} {c[2][1] or c[2][0]}" for c in CASES])
def test_a_command_refuses_to_write_what_it_reads(lagjax, tmp_path, command, text, where):
    option, name = where
    (tmp_path / "in.csv").write_text(text)
    (tmp_path / "other.csv").write_text(SCORES)
    target = tmp_path / "out" / (name or "rows.json")
    target.parent.mkdir(parents=True)
    place = "out" if name else "out/rows.json"
    for same in (os.link, os.symlink):
        same(tmp_path / "in.csv", target)
        before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
        code, out, err = lagjax(*command, option, place)
        assert (code, out) == (2, "")
        (line,) = (line for line in err.splitlines() if not line.startswith("note: "))
        assert line.startswith(f"lagjax: error: {option} would write out") and "in.csv" in line
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
        target.unlink()
    if name is None:
        assert lagjax(*command, option, "./in.csv").code == 2
        assert (tmp_path / "in.csv").read_text() == text


def test_a_report_does_not_replace_the_results(lagjax, tmp_path):
    (tmp_path / "done").mkdir()
    (tmp_path / "done" / "sweep.nc").write_bytes(b"results")
    code, _, err = lagjax("report", "done", "--json", "done/sweep.nc")
    assert code == 2 and "--json would write done/sweep.nc" in err
    (tmp_path / "report.html").hardlink_to(tmp_path / "done" / "sweep.nc")
    code, _, err = lagjax("report", "done", "--out", ".")
    assert code == 2 and "--out would write report.html" in err
    assert (tmp_path / "done" / "sweep.nc").read_bytes() == b"results"


def test_every_command_that_reads_files_and_writes_some_is_in_this_list():
    takes = {name: {parameter.name for parameter in command(name).params} for name in COMMANDS_OF_ALL}
    reading = {name for name, has in takes.items() if has & {"scores", "graph", "folder"}}
    assert reading == {"report", *(command[0] for command, *_ in COMMANDS)}


def test_homes_are_put_in_everywhere(lagjax, tmp_path, monkeypatch):
    """As --out=~/x leaves it in some shells: nothing is ever written into a folder called ~."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "in.csv").write_text(SCORES)
    (tmp_path / "home" / "days.csv").write_text("3\n4\n")
    (tmp_path / "home" / "graph.csv").write_text("0,0\n1,1\n0,2\n1,3\n")
    small = ("--loads", "0.3", "--policies", "greedy", "--steps", "60", "--replicas", "4", "--scores=~/in.csv")
    assert lagjax("sweep", *small, "--durations=~/days.csv", "--out=~/x", "--json", "~/x.json").code == 0
    assert lagjax("report", "~/x", "--out=~/y").code == 0
    assert (
        lagjax("solve", "--scores=~/in.csv", "--service", "sample:~/days.csv", "--load", "0.3", "--out=~/x").code == 0
    )
    assert lagjax("compat", "--graph", "~/graph.csv", "--replicas", "64", "--json", "~/graph.csv").code == 2
    assert lagjax("sweep", "--scores=~nobody-here/in.csv", "--service", "geometric:5").code == 2
    assert sorted(os.listdir(tmp_path / "home")) == ["days.csv", "graph.csv", "in.csv", "x", "x.json", "y"]
    assert {"sweep.nc", "run"} <= set(os.listdir(tmp_path / "home" / "x"))
    assert os.listdir(tmp_path) == ["home"]
