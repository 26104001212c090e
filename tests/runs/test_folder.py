"""The folder of a run: goes on, refuses, reports, and never depends on a clock."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from toys import CONFIGURATION, final, jobs, toy

from lagjax.errors import InputError, RunError
from lagjax.runs import folder as folders
from lagjax.runs.execute import execute
from lagjax.runs.folder import differences, open_folder
from lagjax.runs.running import Running

WANTED = final(execute(jobs(), CONFIGURATION, Running()))


def run(out, configuration=CONFIGURATION, run=toy, **how):
    return execute(jobs(run=run), configuration, Running(out=out, **how))


def never(name, watch):
    raise AssertionError("a finished job ran again")


def test_finished_jobs_do_not_run_again(tmp_path):
    assert final(run(tmp_path)) == WANTED
    assert final(run(tmp_path, run=never)) == WANTED
    assert {p.name for p in (tmp_path / "run").iterdir()} == {
        "manifest.json",
        "cells",
        "checkpoints",
        "lock",
        "log.txt",
    }
    assert not list((tmp_path / "run" / "checkpoints").iterdir())


def test_killed_at_every_file_operation_nothing_is_lost(tmp_path):
    """SIGKILL before the first, second, ... write, flush and rename of one folder, some 40 times; then it comes through."""
    script = Path(__file__).with_name("toys.py")
    done = subprocess.run(
        [sys.executable, script, tmp_path], capture_output=True, text=True, timeout=1200, env=os.environ
    )
    assert done.returncode == 0, done.stderr
    *warned, last = done.stdout.splitlines()
    deaths, digest, warnings = last.split()
    assert int(deaths) >= 30
    assert (digest, warnings) == (WANTED, "0")
    assert not [line for line in warned if "damaged" in line]  # nothing half written was ever in place
    assert not list(tmp_path.rglob("*.unfinished-*"))


@pytest.mark.parametrize("damage", ["cut", "altered", "emptied", "swapped"])
def test_a_damaged_cell_is_reported_and_computed_again(tmp_path, damage):
    run(tmp_path)
    first, second, _ = sorted((tmp_path / "run" / "cells").iterdir())
    whole = first.read_bytes()
    first.write_bytes(
        {"cut": whole[:-9], "altered": whole[:-9] + b"!" + whole[-8:], "emptied": b"", "swapped": second.read_bytes()}[damage]
    )  # fmt: skip
    said = []
    assert final(run(tmp_path, warn=said.append)) == WANTED
    assert len(said) == 1 and str(first) in said[0] and "runs again" in said[0]
    assert first.read_bytes() == whole


def test_a_damaged_manifest_is_written_again_and_cells_are_kept(tmp_path):
    run(tmp_path)
    manifest = tmp_path / "run" / "manifest.json"
    whole = manifest.read_bytes()
    for damaged in (whole[:40], whole.replace(b'"seed": 3', b'"seed": 4'), b"[]"):
        manifest.write_bytes(damaged)
        said = []
        assert final(run(tmp_path, run=never, warn=said.append)) == WANTED
        assert len(said) == 1 and "manifest" in said[0]
        assert manifest.read_bytes() == whole


def test_another_configuration_is_refused_with_the_difference_named(tmp_path):
    run(tmp_path)
    with pytest.raises(InputError, match=r"seed is 3 there and 4 here.*--out.*--fresh"):
        run(tmp_path, {**CONFIGURATION, "seed": 4}, run=never)
    assert final(run(tmp_path, run=never)) == WANTED
    run(tmp_path, {**CONFIGURATION, "seed": 4}, fresh=True)
    with pytest.raises(InputError, match="seed is 4 there and 3 here"):
        run(tmp_path)


def test_differences_in_words():
    there = {"a": 1, "deep": {"x": [1], "y": 2}, "gone": 0}
    here = {"a": 1, "deep": {"x": [1, 2], "y": 2}, "new": None}
    assert differences(there, here) == [
        "deep.x is [1] there and [1, 2] here", 'gone is 0 there and "absent" here', 'new is "absent" there and null here',
    ]  # fmt: skip
    many = differences({}, {str(i): i for i in range(9)})
    assert len(many) == 4 and many[-1] == "and more"


def test_the_second_driver_is_refused(tmp_path):
    with open_folder(tmp_path, CONFIGURATION, warn=print):
        with pytest.raises(InputError, match=f"another lagjax writes here .process {os.getpid()} on "):
            run(tmp_path)
        assert json.loads((tmp_path / "run" / "manifest.json").read_text())["configuration"] == CONFIGURATION
    assert final(run(tmp_path)) == WANTED  # what a dead process left behind keeps nobody out


def test_a_checkpoint_of_another_run_is_no_start(tmp_path):
    def interrupted(name, watch):
        watch.checkpoint.save(lambda: toy(name, watch), now=True)
        raise KeyboardInterrupt

    other = {**CONFIGURATION, "seed": 4}
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, other, run=interrupted)
    (kept,) = (tmp_path / "run" / "checkpoints").iterdir()
    data = kept.read_bytes()
    (tmp_path / "run" / "manifest.json").unlink()
    kept.write_bytes(data)
    assert final(run(tmp_path)) == WANTED


def test_a_clock_that_jumps_changes_nothing(tmp_path, monkeypatch):
    """Backwards, forwards, to the epoch: what is kept and what comes out are the same, though checkpoints may be fewer."""
    clock = iter(range(10**9))

    def jumping():
        return [1e9, -5.0, 0.0, 4e9, 17.25][next(clock) % 5]

    monkeypatch.setattr(time, "time", jumping)
    monkeypatch.setattr(time, "monotonic", jumping)
    for i in range(3):
        out = tmp_path / str(i)
        assert final(run(out)) == final(run(out, run=never)) == WANTED


def test_a_job_that_fails_twice_is_reported_and_the_rest_finish(tmp_path):
    tries = []

    def faulty(name, watch):
        tries.append(name)
        if name == "b" or (name == "c" and tries.count("c") == 1):
            raise RuntimeError("cosmic\nray")
        return toy(name, watch)

    with pytest.raises(RunError, match=r"1 of 3 cells failed: b: RuntimeError: cosmic ray"):
        run(tmp_path, run=faulty)
    assert tries == ["a", "b", "b", "c", "c"]
    tries.clear()
    assert final(run(tmp_path, run=lambda name, watch: tries.append(name) or toy(name, watch))) == WANTED
    assert tries == ["b"]


def test_a_full_disk_stops_the_run_and_loses_nothing(tmp_path, monkeypatch):
    original = Path.write_bytes

    def full(path, data):
        if ".cell" in path.name and "b-" in path.name:
            original(path, data[: len(data) // 2])
            raise OSError(28, "No space left on device")
        return original(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(InputError, match="No space left"):
        run(tmp_path)
    monkeypatch.undo()
    assert len(list((tmp_path / "run" / "cells").iterdir())) == 1
    assert final(run(tmp_path)) == WANTED


def test_a_checkpoint_that_cannot_be_written_costs_the_checkpoint_only(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "write_bytes", lambda path, data: fail(path, data))
    original = Path.write_bytes

    def fail(path, data):
        if path.suffix == ".checkpoint":
            raise InputError("no room")
        path.parent.mkdir(exist_ok=True)
        original(path, data)

    assert final(run(tmp_path)) == WANTED
