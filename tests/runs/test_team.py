"""Two processes on loopback do one sweep together: bitwise what one process gives, written by process 0 alone."""

import json
import os
import socket
import subprocess
import sys

import pytest

from lagjax.cli.app import main
from lagjax.errors import InputError
from lagjax.runs.job import share
from lagjax.runs.team import join

ARGS = ("sweep", "priority", "--loads", "0.4", "--policies", "lag,random", "--steps", "2000", "--replicas", "9")


def start(*args, folder):
    code = "from lagjax.cli.app import main; main()"
    return subprocess.Popen(
        [sys.executable, "-c", code, *ARGS, *args], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "1"},
    )  # fmt: skip


def free_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def both(folder, *args):
    where = f"127.0.0.1:{free_port()}"
    started = [start(*args, "--processes", f"{where},{i},2", folder=folder) for i in range(2)]
    return [(*process.communicate(timeout=1200), process.returncode) for process in started]


def test_two_processes_are_one(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["lagjax", *ARGS, "--out", "one", "--json", "-"])
    with pytest.raises(SystemExit) as alone:  # in this process
        main()
    assert alone.value.code == 0
    first, second = both(tmp_path, "--out", "two", "--json", "-")
    assert first[2] == second[2] == 0, first[1] + second[1]
    assert json.loads(first[0]) == json.loads(capsys.readouterr().out)  # nothing but the rows on stdout
    assert second[0] == ""
    for name in ("sweep.nc", "table.txt", "priority.png"):
        assert (tmp_path / "two" / name).read_bytes() == (tmp_path / "one" / name).read_bytes(), name
    refused = both(tmp_path, "--out", "two", "--seed", "1")
    assert [code for *_, code in refused] == [2, 2]
    assert all("seed is 0 there and 1 here" in err for _, err, _ in refused)


def test_shares_cover_the_replicas():
    for total, processes in ((9, 2), (1, 2), (10, 3), (4, 4)):
        bounds = [share(total, i, processes) for i in range(processes)]
        assert [x for first, last in bounds for x in range(first, last)] == list(range(total))


def test_where_to_join_is_checked():
    for text in ("", "nowhere", "127.0.0.1:1,2", "host:1,x,2"):
        try:
            join(text)
        except InputError as error:
            assert "HOST:PORT,NUMBER,COUNT" in str(error)
        else:
            raise AssertionError(text)
