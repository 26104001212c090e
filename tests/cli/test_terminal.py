"""Whatever a terminal's encoding lacks is spelt otherwise: nothing printed fails, on stdout or stderr; bars leave nothing."""

import ast
import io
import sys
from pathlib import Path

import pytest

import lagjax
from lagjax.cli.app import main
from lagjax.cli.letters import fitting

SCORES = "paper,reviewer,score\n论文,r0,0.1\n论文,r1,0.2\nпример,r0,0.3\nпример,r1,0.4\n"
FILES = ("--scores", "评分.csv", "--service", "geometric:5")
SWEEP = ("sweep", *FILES, "--loads", "0.3", "--policies", "lag,greedy", "--replicas", "4", "--steps", "60")
ENCODINGS = ("gbk", "iso8859-1", "cp437", "ascii", "cp1252", "utf-8")


class Terminal(io.TextIOWrapper):
    """What a shell of that encoding shows."""

    def __init__(self, encoding):
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self):
        return True

    def shown(self):
        self.flush()
        return self.buffer.getvalue().decode(self.encoding)


@pytest.fixture
def shell(monkeypatch, tmp_path):
    """Returns a function that runs a command on terminals of an encoding, in a folder with score files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "评分.csv").write_text(SCORES, encoding="utf-8")

    def run(encoding, *arguments):
        out, err = Terminal(encoding), Terminal(encoding)
        with monkeypatch.context() as now, pytest.raises(SystemExit) as stop:
            now.setattr(sys, "argv", ["lagjax", *arguments])
            now.setattr(sys, "stdout", out)
            now.setattr(sys, "stderr", err)
            main()
        return stop.value.code, out.shown(), err.shown()

    return run


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_tables_notes_helps_and_refusals(shell, encoding):
    code, out, err = shell(encoding, "solve", *FILES, "--load", "0.3")
    assert code == 0 and err.startswith("written: ") and err.count("\n") == 1 and ("评分" in out or r"\u8bc4" in out)
    assert shell(encoding, "converge", "--help")[0] == 0
    code, out, err = shell(encoding, "sweep", "评分±†")
    assert (code, out) == (2, "") and err.startswith("lagjax: error: no instance '") and err.count("\n") == 1


@pytest.mark.parametrize("encoding", ["cp437", "ascii"])
def test_a_study_with_bars_pictures_and_a_report(shell, encoding, tmp_path):
    code, out, err = shell(encoding, *SWEEP, "--out", "结果")
    assert code == 0, err
    assert "+-" in out if encoding == "ascii" else "±" in out
    assert "Warning" not in err and "written: " in err
    assert "±" in (tmp_path / "结果" / "table.txt").read_text(encoding="utf-8")
    assert (tmp_path / "结果" / "评分.png").is_file()
    assert shell(encoding, "report", "结果")[0] == 0
    assert "<h2>评分</h2>" in (tmp_path / "结果" / "report.html").read_text(encoding="utf-8")


def test_no_bar_is_drawn_before_all_options_are_checked(shell):
    for fault in (("--selection", ""), ("--loads", "0.9"), ("--seed", "-1"), ("--replicas", "0"), ("--steps", "0")):
        code, out, err = shell("utf-8", *SWEEP, *fault)
        assert (code, out) == (2, "")
        assert err.startswith("lagjax: error: ") and err.count("\n") == 1 and "\r" not in err, fault
    assert "choose a load from 1e-06 to 0.5" in shell("utf-8", *SWEEP, "--loads", "0.9")[2]


def test_columns_stay_where_they_are():
    table = "  98.31 ±0.12†  ± half\n102.00 ±0.05   end"
    assert fitting(table, "utf-8") == fitting(table, "cp1252") == table
    assert fitting(table, "iso8859-1") == fitting(table, "gbk") == table.replace("†", "^")
    assert fitting(table, "ascii") == fitting(table, None) == fitting(table, "no such encoding")
    assert fitting(table, "ascii") == "  98.31+-0.12^  +- half\n102.00+-0.05   end"


def test_commands_print_through_one_door():
    """`say` and `note` of terminal.py; app.py shows help and version, which are ASCII."""
    for path in (Path(lagjax.__file__).parent / "cli").glob("*.py"):
        calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
        printing = {call for call in calls if call in ("print", "typer.echo", "sys.stdout.write", "sys.stderr.write")}
        assert printing == {"terminal.py": {"print"}, "app.py": {"typer.echo"}}.get(path.name, set()), path
