"""Runs the command line in this process, as a shell would see it."""

import sys
from typing import NamedTuple

import pytest

from lagjax.cli.app import main


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def lagjax(monkeypatch, capsys, tmp_path):
    """Returns a function that runs `lagjax ARGS...` in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*args):
        monkeypatch.setattr(sys, "argv", ["lagjax", *map(str, args)])
        with pytest.raises(SystemExit) as stop:
            main()
        captured = capsys.readouterr()
        return Outcome(stop.value.code, captured.out, captured.err)

    return run
