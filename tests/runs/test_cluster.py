"""Dask: killed workers' jobs run again elsewhere, what fails twice is told, and one clear line where Dask is not there."""

import functools
import os
import signal
import sys
import time
from pathlib import Path

import pytest
from toys import CONFIGURATION, final, jobs, toy

from lagjax.errors import InputError, RunError
from lagjax.lp.watching import solving
from lagjax.runs import cluster
from lagjax.runs import solving as speaking
from lagjax.runs.execute import execute
from lagjax.runs.job import Job
from lagjax.runs.running import Running

NAMES = tuple("abcdefgh")
WANTED = final(execute(jobs(NAMES), CONFIGURATION, Running()))


def troubled(folder, name, watch):
    """A job that goes through `toy` in the end: one kills two workers, one fails once, and one solves a long program."""
    tries = len(list(Path(folder).glob(f"{name}.*")))
    (Path(folder) / f"{name}.{tries}").touch()
    if tries < {"e": 2}.get(name, 0):
        os.kill(os.getpid(), signal.SIGKILL)
    if (name == "c" and tries == 0) or name == "hopeless":
        raise RuntimeError(f"try {tries}")
    if name == "h":
        speaking.PATIENCE = 0.01
        with solving("P"):
            time.sleep(1)
    return toy(name, watch)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_killed_workers_and_failures(tmp_path, monkeypatch):
    """Two SIGKILLs of workers and three errors: what can finish does, each once, with the same bytes as anywhere."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *sys.path]))
    marks = tmp_path / "marks"
    marks.mkdir()
    run = functools.partial(troubled, str(marks))
    listed = [Job(n, "toy", 4.0, functools.partial(run, n)) for n in (*NAMES[:4], "hopeless", *NAMES[4:])]
    seen = []
    how = Running(out=tmp_path / "out", workers=2, views=[seen.append])
    with pytest.raises(RunError, match=r"1 of 9 cells failed: hopeless: RuntimeError: try 1\. The others are kept"):
        execute(listed, CONFIGURATION, how)
    ended = [status.job.name for status in seen if status.event == "finished"]
    assert sorted(ended) == sorted(NAMES)
    assert {(s.job.name, s.said.split(":")[0]) for s in seen if s.event == "solving"} == {("h", "P")}
    tries = {name: len(list(marks.glob(f"{name}.*"))) for name in (*NAMES, "hopeless")}
    assert (tries["b"], tries["e"], tries["c"], tries["hopeless"]) == (1, 3, 2, 2)
    assert {p.name for p in (tmp_path / "out").iterdir()} == {"run"}
    assert not [p for p in (tmp_path / "out" / "run").iterdir() if p.name.startswith("workers-")]
    kept = execute(jobs(NAMES), CONFIGURATION, how._replace(workers=None))  # all of them found, or made the same here
    assert final(kept) == WANTED
    assert [status.event for status in seen[-len(NAMES) :]] == ["kept"] * len(NAMES)


def test_no_scheduler_there(tmp_path):
    with pytest.raises(InputError, match=r"--scheduler tcp://127.0.0.1:9: no Dask scheduler answers"):
        execute(jobs(), CONFIGURATION, Running(scheduler="tcp://127.0.0.1:9", patience=1))


def test_no_dask_there(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"pip install 'lagjax\[cluster\]'"):
        cluster.check_installed()


def test_local_workers_share_cores_and_gpus(monkeypatch):
    monkeypatch.setattr(cluster, "_settled", [])
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3,GPU-abc")
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    assert cluster.gpus() == ["3", "GPU-abc"]
    assert cluster.local_workers() == 2
    cluster.settle(1)  # not a local worker: nothing moves
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "3,GPU-abc"
    monkeypatch.setenv("LAGJAX_LOCAL_WORKER", "1")
    cluster.settle("named by somebody else")
    cluster.settle(3)
    assert os.environ["CUDA_VISIBLE_DEVICES"] == "GPU-abc"
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    assert cluster.gpus() == []
