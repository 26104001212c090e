"""Every fault of a user's ends in one line that names it and the cure, exit code 2, and no file."""

import os
import subprocess
import sys

import pytest

SWEEP = ("sweep", "priority", "--loads", "0.5", "--steps", "200", "--replicas", "4")
FILES = ("--service", "geometric:5", "--loads", "0.5", "--steps", "200", "--replicas", "4")
GOOD = "paper,reviewer,score\np0,r0,0.1\np0,r1,0.2\np1,r0,0.3\np1,r1,0.4\n"

# (name, arguments, text of scores.csv or None, what the line must contain)
CASES = [
    ("unknown command", ("swep",), None, "swep"),
    ("unknown option", (*SWEEP, "--stepps", "3"), None, "--stepps"),
    ("unknown instance", ("sweep", "prority"), None, "'prority'"),
    ("instance named twice", ("sweep", "priority", "priority"), None, "'priority' is named twice"),
    ("unknown policy", (*SWEEP, "--policies", "lag,greedo"), None, "'greedo'"),
    ("policy named twice", (*SWEEP, "--policies", "lag,lag"), None, "'lag' twice"),
    ("unknown selection", (*SWEEP, "--selection", "corner"), None, "corner"),
    ("load zero", ("sweep", "priority", "--loads", "0"), None, "load 0 of instance 'priority'"),
    ("load negative", ("sweep", "priority", "--loads", "-0.5"), None, "load -0.5"),
    ("load too small", ("converge", "priority", "--load", "5e-324"), None, "choose a load from"),
    ("load too small for the sweep", ("sweep", "priority", "--loads", "5e-324"), None, "to 0.875"),
    ("load too large", ("sweep", "priority", "--loads", "0.9"), None, "0.875"),
    ("load not a number", ("sweep", "priority", "--loads", "0.1,abc"), None, "'abc' is not a number"),
    ("load nan", ("sweep", "priority", "--loads", "nan"), None, "'nan' is not a number"),
    ("load range backwards", ("sweep", "priority", "--loads", "0.9:0.1:0.1"), None, "FIRST:LAST:STEP"),
    ("load range with two parts", ("sweep", "priority", "--loads", "0.1:0.9"), None, "FIRST:LAST:STEP"),
    ("steps zero", (*SWEEP[:4], "--steps", "0"), None, "steps is 0"),
    ("steps not a number", (*SWEEP[:4], "--steps", "many"), None, "'--steps'"),
    ("steps beyond a replica's counter", (*SWEEP[:4], "--steps", "99999999999999"), None, "use more replicas"),
    ("replicas zero", (*SWEEP, "--replicas", "0"), None, "replicas is 0"),
    ("seed negative", (*SWEEP, "--seed", "-1"), None, "seed is -1"),
    ("file option without file", (*SWEEP, "--per-task", "3"), None, "--scores FILE"),
    ("scores and instance", ("sweep", "priority", "--scores", "scores.csv", *FILES), GOOD, "both given"),
    ("no scores file", ("sweep", "--scores", "absent.csv", *FILES), None, "absent.csv"),
    ("scores file is a folder", ("sweep", "--scores", ".", *FILES), None, "directory"),
    ("unknown ending", ("sweep", "--scores", "scores.xls", *FILES), None, "scores.xls"),
    ("empty file", ("sweep", "--scores", "scores.csv", *FILES), "", "scores.csv"),
    ("ragged line", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0\n", "line 6"),
    ("score not a number", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0,high\n", "line 6"),
    ("score NaN", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0,nan\n", "line 6"),
    ("score negative", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0,-1\n", "line 6"),
    ("scores of both signs and a gap", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0,-1\n",
     "(`--normalise --missing 0`)"),
    ("filled off the scale", ("sweep", "--scores", "scores.csv", "--normalise", "--missing", "3", *FILES), GOOD, "from 0 to 1"),
    ("columns of other names", ("sweep", "--scores", "scores.csv", *FILES), "id,member,affinity\np,r,1\n", "'id', 'member', 'a"),
    ("shortest with a law", ("sweep", "--scores", "scores.csv", "--shortest", "1", *FILES), GOOD, "shortest is 1"),
    ("shortest without files", (*SWEEP, "--shortest", "1"), None, "--shortest describes a score file"),
    ("graph with a bad first line", ("compat", "--graph", "scores.csv"), "0;0\n0,1\n1,0\n1,1\n", "line 1: '0;0' is neither"),
    ("pair twice", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p0,r0,0.5\n", "already scored on line 2"),
    ("pair missing", ("sweep", "--scores", "scores.csv", *FILES), GOOD + "p2,r0,0.5\n", "--missing"),
    ("missing not a number", ("sweep", "--scores", "scores.csv", "--missing", "x", *FILES), GOOD, "missing"),
    ("no service times", ("sweep", "--scores", "scores.csv", "--loads", "0.5"), GOOD, "--durations FILE"),
    ("bad service law", ("sweep", "--scores", "scores.csv", "--service", "exponential:3"), GOOD, "geometric:"),
    ("service mean below 1", ("sweep", "--scores", "scores.csv", "--service", "geometric:0.5"), GOOD, "0.5"),
    ("durations absent", ("sweep", "--scores", "scores.csv", "--durations", "d.csv"), GOOD, "d.csv"),
    ("k too large", ("sweep", "--scores", "scores.csv", "--per-task", "3", *FILES), GOOD, "only 2 servers"),
    ("k zero", ("sweep", "--scores", "scores.csv", "--per-task", "0", *FILES), GOOD, "servers_per_task is 0"),
    ("sample too large", ("sweep", "--scores", "scores.csv", "--sample-papers", "3", *FILES), GOOD, "3"),
    ("sample zero", ("sweep", "--scores", "scores.csv", "--sample-reviewers", "0", *FILES), GOOD, "0"),
    ("more than one arrival a step", ("sweep", "--scores", "scores.csv", "--service", "deterministic:1", "--loads", "0.5"),
     "p0,r0,1\np0,r1,1\np0,r2,1\np0,r3,1\n", "arrivals per step"),
    ("out is a file", (*SWEEP, "--out", "scores.csv"), GOOD, "--out"),
    ("out below a file", (*SWEEP, "--out", "scores.csv/deep"), GOOD, "--out"),
    ("out cannot be made", (*SWEEP, "--out", "/proc/nowhere/results"), None, "--out"),
    ("json is a folder", (*SWEEP, "--json", "."), None, "folder"),
    ("json below a file", (*SWEEP, "--json", "scores.csv/rows.json"), GOOD, "--json"),
    ("all scores zero", ("sweep", "--scores", "scores.csv", *FILES), "a,x,0\na,y,0\n", "all 0"),
    ("one server", ("sweep", "--scores", "scores.csv", *FILES), "a,x,1\nb,x,1\n", "no load is feasible"),
    ("too many loads", ("sweep", "priority", "--loads", "0.1:0.2:1e-9"), None, "more than 1000"),
    ("json without a name", (*SWEEP, "--json", ""), None, "--json has no name"),
    ("out too long", (*SWEEP, "--out", "x" * 300), None, "--out"),
    ("missing is empty", ("sweep", "--scores", "scores.csv", "--missing", "", *FILES), GOOD, "missing"),
    ("too many replicas", (*SWEEP[:4], "--replicas", "99999999999999"), None, "at most 10000000"),
    ("selection with no LP policy", (*SWEEP, "--policies", "greedy", "--selection", "x"), None, "x"),
    ("load below the solver's reach", ("solve", "priority", "--load", "1e-300"), None, "choose a load from 1e-06 to 0.875"),
    ("load that is no normal number", ("converge", "priority", "--load", "5e-324"), None, "choose a load from 1e-06 to 0.875"),
    ("workers negative", (*SWEEP, "--workers", "-1"), None, "--workers is -1"),
    ("two ways to run", (*SWEEP, "--workers", "2", "--processes", "auto"), None, "choose one"),
    ("memory is no size", (*SWEEP, "--memory", "lots"), None, "--memory 'lots'"),
    ("progress of no kind", (*SWEEP, "--progress", "loud"), None, "--progress is 'loud'"),
    ("processes without place", (*SWEEP, "--processes", "here"), None, "HOST:PORT,NUMBER,COUNT"),
    ("process number too large", (*SWEEP, "--processes", "localhost:1,2,2"), None, "NUMBER from 0 to COUNT - 1"),
    ("scheduler without port", (*SWEEP, "--scheduler", "here"), None, "write its address as tcp://HOST:PORT"),
    ("folder without name", (*SWEEP, "--out", ""), None, "--out is empty; name a folder"),
    ("report of nothing", ("report", "nowhere"), None, "no results here"),
    ("solve too large a load", ("solve", "priority", "--load", "0.95"), None, "0.875"),
    ("solve blocking", ("solve", "priority", "--blocking", "1.5"), None, "blocking"),
]  # fmt: skip


@pytest.mark.parametrize(("args", "scores", "expected"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_bad_input_is_one_line_exit_2_and_no_file(lagjax, tmp_path, args, scores, expected):
    if scores is not None:
        (tmp_path / "scores.csv").write_text(scores)
    before = {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}
    code, out, err = lagjax(*args)
    assert code == 2, err
    assert out == ""
    error = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(error) == 1, err
    assert error[0].startswith("lagjax: error: ")
    assert expected in error[0], error[0]
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert not (tmp_path / "lagjax-results").exists()


def test_a_shell_sees_the_same(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", "from lagjax.cli.app import main; main()", "sweep", "prority"],
        cwd=tmp_path, capture_output=True, text=True, env=os.environ, timeout=1200,
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
