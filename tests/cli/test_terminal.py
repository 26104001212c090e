"""Whatever a terminal's encoding lacks is spelt otherwise: no command fails on it, on stdout or stderr, with bars or without."""

import io
import sys

import pytest

from lagjax.cli.app import main
from lagjax.cli.letters import fitting

SCORES = "paper,reviewer,score\n论文,r0,0.1\n论文,r1,0.2\nпример,r0,0.3\nпример,r1,0.4\n"
FILES = ("--scores", "评分.csv", "--service", "geometric:5")
SMALL = ("--replicas", "4", "--steps", "60")
COMMANDS = {
    "sweep": ("sweep", *FILES, "--loads", "0.3", "--policies", "lag,greedy", *SMALL),
    "converge": ("converge", *FILES, "--load", "0.3", "--copies", "1,2", *SMALL),
    "solve": ("solve", *FILES, "--load", "0.3"),
    "exact": ("exact", *FILES, "--load", "0.3", "--policies", "lag"),
    "fluid": ("fluid", *FILES, "--load", "0.3", "--starts", "4", "--steps", "20"),
    "route": ("route", "--servers", "1,2", "--room", "2,3", "--rates", "1,1", "--arrivals", "1", "--jobs", "50",
              "--replicas", "8", "--policies", "sq,random"),
    "compat": ("compat", "--servers", "20", "--graph", "图.csv", "--time", "2", "--warmup", "1", "--horizon", "0", "--replicas",
               "128"),
    "partial": ("partial", "--model", "finite", "--rates", "0.2x2", "--capacity", "2", "--horizon", "8", "--replicas", "8",
                "--policies", "random,jsq"),
    "help": ("converge", "--help"),
    "refusal": ("sweep", "评分"),
}  # fmt: skip
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


@pytest.mark.parametrize("command", COMMANDS)
def test_no_command_fails_on_an_encoding(command, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "评分.csv").write_text(SCORES, encoding="utf-8")
    (tmp_path / "图.csv").write_text("".join(f"{i},{i}\n" for i in range(20)), encoding="utf-8")
    monkeypatch.setattr(sys, "argv", ["lagjax", *COMMANDS[command]])
    for encoding in ENCODINGS if command != "fluid" else ("cp437",):
        out, err = Terminal(encoding), Terminal(encoding)
        with monkeypatch.context() as now, pytest.raises(SystemExit) as stop:
            now.setattr(sys, "stdout", out)
            now.setattr(sys, "stderr", err)
            main()
        assert stop.value.code == (2 if command == "refusal" else 0), (encoding, err.shown())
        assert "Traceback" not in err.shown() and "ignored" not in err.shown()
        assert (err if command == "refusal" else out).shown()
        if encoding == "utf-8" and command in ("sweep", "converge"):
            assert "评分" in out.shown() and "±" in out.shown()


def test_tables_keep_their_columns():
    table = "  98.31 ±0.12†  ± half\n102.00 ±0.05   end"
    assert fitting(table, "utf-8") == fitting(table, "cp1252") == table
    assert fitting(table, "iso8859-1") == fitting(table, "gbk") == table.replace("†", "^")
    assert fitting(table, "ascii") == fitting(table, None) == fitting(table, "no such encoding")
    assert fitting(table, "ascii") == "  98.31+-0.12^  +- half\n102.00+-0.05   end"
