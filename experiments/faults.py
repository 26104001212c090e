"""What studies survive: kills of the driver and of workers, full disks, read-only folders, a second driver, damage, clocks.

python experiments/faults.py [--kills 50] [--study-kills 10] [--worker-kills 12] [--seed 0]    (POSIX; 20 minutes on two cores)

A sweep has them all. Then every study is killed again and again, first with all the memory it likes and then with less and less:
the sweep, a convergence study with a policy that is searched for, and those of the three sister systems.

Every fault is followed by the same command until it comes through; then the final files must have the bytes of an undisturbed
run. Commands run in forks of this process, which has imported everything and started nothing, and find compiled what the first
of them compiled, so that a kill costs little.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import matplotlib.figure
import scipy.optimize
import xarray  # noqa: F401

import lagjax.cli.app
import lagjax.plots
import lagjax.studies.convergence
import lagjax.studies.load_sweep
from lagjax.runs import folder as folders
from lagjax.studies.study import NAMES, study_of

SWEEP = ("sweep", "priority", "--loads", "0.5,0.6,0.7", "--policies", "lag", "--replicas", "16", "--steps", "600000")
SCORES = "scores.csv"  # of a system so small that its best policy is soon found
PAIRS = "paper,reviewer,score\na,x,1.0\na,y,0.4\na,z,0.2\nb,x,0.3\nb,y,1.0\nb,z,0.1\n"
STUDIES = {  # a command for each, and how much memory its starts have, one after another
    "sweep": (SWEEP, ("1GB", "40kB", "10kB", "5kB")),
    "converge": (
        (
            "converge", "--scores", SCORES, "--service", "geometric:4", "--load", "0.4", "--copies", "1,4", "--policies",
            "lag,tuned", "--replicas", "64", "--steps", "3000",
        ),
        ("1GB", "8kB", "4kB", "1kB"),
    ),
    "route": (
        (
            "route", "--servers", "1,2", "--room", "3,4", "--rates", "1.0,0.8", "--arrivals", "1.5,3", "--policies", "rb,sq",
            "--jobs", "100000", "--replicas", "16",
        ),
        ("1GB", "40kB", "10kB", "4kB"),
    ),
    "compat": (
        (
            "compat", "--servers", "20,40", "--graph", "regular", "--degree", "4", "--load", "0.9", "--replicas", "256",
            "--horizon", "1", "--time", "400",
        ),
        ("1GB", "200kB", "100kB"),
    ),
    "partial": (
        (
            "partial", "--model", "finite", "--rates", "0.1,0.2,0.3", "--capacity", "3", "--policies", "whittle,random,jsq",
            "--horizon", "20000", "--replicas", "16",
        ),
        ("1GB", "100kB", "40kB", "20kB"),
    ),
}  # fmt: skip
CHECKS = []


class Ended(NamedTuple):
    """How a command ended: its exit code (negative: the signal), and what it wrote to stderr."""

    code: int
    err: str


def start(args, log: Path, prepare: Callable[[], object] = lambda: None) -> int:
    """Starts a command in a fork; checkpoints are written after every chunk."""
    sys.stdout.flush()
    child = os.fork()
    if child:
        return child
    try:
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        folders.LEAST_PAUSE, folders.MOST_COST = 0.0, 1e9
        prepare()
        sys.argv = ["lagjax", *map(str, args)]
        lagjax.cli.app.main()
    except SystemExit as stop:
        os._exit(stop.code or 0)
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(70)


def wait(child: int, log: Path) -> Ended:
    """Waits for a command."""
    _, status = os.waitpid(child, 0)
    return Ended(os.waitstatus_to_exitcode(status), log.read_text(errors="replace"))


def run(args, log, prepare=lambda: None) -> Ended:
    """Runs a command to its end."""
    return wait(start(args, log, prepare), log)


def final(out: Path) -> dict[str, str]:
    """Digests of the files that a user gets; what belongs to the run aside."""
    return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(out.iterdir()) if p.is_file()}


def check(what: str, holds: bool, said: object = "") -> None:
    """Notes one outcome."""
    CHECKS.append(holds)
    print(f"{'ok  ' if holds else 'FAIL'} {what}{'' if holds else f': {said}'}", flush=True)


def children(process: int) -> list[int]:
    """All processes that descend from one."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(entry.parent.name)] = int(entry.read_text().rsplit(")", 1)[1].split()[1])
        except OSError:
            continue
    found = [process]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found[1:]


def drivers(work, wanted, seconds, kills, chance, command=SWEEP, budgets=()) -> None:
    """SIGKILL at random moments; the same command again until it comes through, in one folder after another.

    With budgets every start of a folder has the next one, and all that follow have the last.
    """
    died = folder = starts = 0
    log, whole = work / "log", False
    while died < kills or not whole:
        out = work / f"{command[0]}-{folder}"
        memory = ("--memory", budgets[min(starts, len(budgets) - 1)]) if budgets else ()
        starts += 1
        child = start([*command, *memory, "--out", out], log)
        if died < kills:
            time.sleep(chance.uniform(0, seconds))
            os.kill(child, signal.SIGKILL)
        ended = wait(child, log)
        died += ended.code == -signal.SIGKILL
        whole = ended.code == 0
        if whole:
            folder, starts = folder + 1, 0
            same = final(out) == wanted and not list(out.rglob("*.unfinished-*"))
            check(f"{command[0]}: folder {folder} after {died} kills of the driver in all", same, final(out))
        elif ended.code != -signal.SIGKILL:
            check("a killed run goes on", False, ended)
            return


def studies(work, kills, chance) -> None:
    """Every study: undisturbed, then killed, with memory that shrinks from start to start."""
    (work / SCORES).write_text(PAIRS)
    for name, (words, budgets) in STUDIES.items():
        command = [work / word if word == SCORES else word for word in words]
        seconds = []
        for place in ("warm", "whole"):  # the first one compiles
            begun = time.monotonic()
            ended = run([*command, "--out", work / f"{name}-{place}"], work / "log")
            seconds.append(time.monotonic() - begun)
            check(f"{name}: undisturbed, in {seconds[-1]:.1f} s", ended.code == 0, ended)
        wanted = final(work / f"{name}-whole")
        same = wanted == final(work / f"{name}-warm")
        check(f"{name}: a table, a Dataset and pictures, the same twice", same and len(wanted) >= 3, wanted)
        drivers(work, wanted, seconds[-1], kills, chance, command, budgets)


def workers(work, wanted, kills, chance) -> None:
    """SIGKILL of random Dask workers at random moments while the driver lives, and of the driver with its workers."""
    died = folder = 0
    log = work / "log"
    while died < kills:
        out = work / f"workers-{folder}"
        folder += 1
        child = start([*SWEEP, "--out", out, "--workers", "2"], log)
        first = died
        while os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
            time.sleep(chance.uniform(1, 6))
            alive = [p for p in children(child) if b"spawn_main" in _command(p)]
            if alive and died < min(kills, first + 4):
                try:
                    os.kill(chance.choice(alive), signal.SIGKILL)
                    died += 1
                except ProcessLookupError:
                    pass
            if died >= kills or died >= first + 4:
                break
        ended = wait(child, log)
        check(f"{died} kills of workers in all", ended.code == 0 and final(out) == wanted, ended)
        if ended.code != 0:
            return


def _command(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes()
    except OSError:
        return b""


def read_only(work, wanted) -> None:
    """A folder that may not be written, as a user who is not root."""
    out, log = work / "read-only", work / "log"
    out.mkdir()
    out.chmod(0o555)
    work.chmod(0o755)

    def as_nobody():
        if os.getuid() == 0:
            os.setgid(65534)
            os.setuid(65534)

    ended = run([*SWEEP, "--out", out], log, as_nobody)
    refused = ended.code == 2 and "cannot write" in ended.err and not list(out.iterdir())
    check("a read-only folder is refused in one line, nothing written", refused and ended.err.count("\n") == 1, ended)
    out.chmod(0o755)
    ended = run([*SWEEP, "--out", out], log)
    check("... and used once it is writable", ended.code == 0 and final(out) == wanted, ended)


def full_disk(work, wanted, rooms=(1500, 3500, 20000)) -> None:
    """No room for a cell, for a checkpoint, for the last file: first by a limit on files, then on a small disk."""
    log = work / "log"
    for room in rooms:
        out = work / f"full-{room}"

        def limited(room=room):
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

        ended = run([*SWEEP, "--out", out], log, limited)
        check(
            f"files of at most {room} bytes end the run in one line",
            ended.code == 2 and "cannot be written" in ended.err,
            ended,
        )
        check("... nothing half written is left", not list(out.rglob("*.unfinished-*")), list(out.rglob("*")))
        ended = run([*SWEEP, "--out", out], log)
        check("... and with room it goes on", ended.code == 0 and final(out) == wanted, ended)
    disk = work / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=64k tmpfs {disk} 2>/dev/null") != 0:
        print("     (no disk of its own: mounting is not allowed here)")
        return
    try:
        ended = run([*SWEEP, "--out", disk / "out"], log)
        check("a full disk ends the run in one line", ended.code == 2 and "No space left" in ended.err, ended)
        os.system(f"mount -o remount,size=10m {disk}")
        ended = run([*SWEEP, "--out", disk / "out"], log)
        check("... and with room it goes on", ended.code == 0 and final(disk / "out") == wanted, ended)
    finally:
        os.system(f"umount {disk}")


def two_drivers(work, wanted) -> None:
    """A second command on a folder that is being written."""
    out, log, other = work / "two", work / "log", work / "other"
    child = start([*SWEEP, "--out", out], log)
    while not (out / "run" / "manifest.json").exists():
        time.sleep(0.01)
    second = run([*SWEEP, "--out", out], other)
    check("a second driver is refused", second.code == 2 and "another lagjax writes here" in second.err, second)
    check("... and the first one finishes", wait(child, log).code == 0 and final(out) == wanted)


def damage(work, wanted, chance) -> None:
    """Cells that were cut or altered, a manifest that was."""
    out, log = work / "damaged", work / "log"
    run([*SWEEP, "--out", out], log)
    damaged = [*sorted((out / "run" / "cells").iterdir()), out / "run" / "manifest.json"]
    for path in damaged:
        data = bytearray(path.read_bytes())
        place = chance.randrange(len(data))
        if chance.random() < 0.5:
            del data[place:]
        else:
            data[place] ^= 4
        path.write_bytes(bytes(data))
    (out / "sweep.nc").unlink()
    ended = run([*SWEEP, "--out", out], log)
    told = all(str(path) in ended.err for path in damaged)
    check(f"{len(damaged)} damaged files are named and mended", told and final(out) == wanted, ended)


def clocks(work, wanted, chance) -> None:
    """Clocks that jump by up to ten years at every look, back and forth."""
    out, log = work / "clock", work / "log"

    def jumping():
        for name in ("time", "monotonic"):
            setattr(time, name, lambda: chance.uniform(-3e8, 3e8))

    ended = run([*SWEEP, "--out", out], log, jumping)
    check("a clock that jumps", ended.code == 0 and final(out) == wanted, ended)


def interrupts(work, wanted, seconds) -> None:
    """Ctrl-C: exit code 130 and a line that says how to go on."""
    out, log = work / "interrupted", work / "log"
    child = start([*SWEEP, "--out", out], log)
    while not list(out.glob("run/cells/*.cell")):
        time.sleep(0.005)
    os.kill(child, signal.SIGINT)
    ended = wait(child, log)
    check(
        "Ctrl-C says how to go on",
        ended.code in (0, 130) and (ended.code == 0 or "same command goes on" in ended.err),
        ended,
    )
    ended = run([*SWEEP, "--out", out], log)
    check("... and it does", ended.code == 0 and final(out) == wanted, ended)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, number in (("kills", 50), ("study-kills", 10), ("worker-kills", 12), ("seed", 0)):
        parser.add_argument(f"--{name}", type=int, default=number)
    given = parser.parse_args()
    chance = random.Random(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        jax.config.update("jax_compilation_cache_dir", str(work / "programs"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        first = run([*SWEEP, "--out", work / "first"], work / "log")
        check("the first run", first.code == 0, first)
        begun = time.monotonic()
        ended = run([*SWEEP, "--out", work / "whole"], work / "log")
        seconds = time.monotonic() - begun
        wanted = final(work / "whole")
        same = wanted == final(work / "first")
        check(f"undisturbed, in {seconds:.1f} s", ended.code == 0 and same and len(wanted) == 3, ended)
        two_drivers(work, wanted)
        interrupts(work, wanted, seconds)
        damage(work, wanted, chance)
        clocks(work, wanted, chance)
        read_only(work, wanted)
        full_disk(work, wanted, *([(20000,)] if given.kills < 10 else []))
        drivers(work, wanted, seconds, given.kills, chance)
        if given.study_kills:
            studies(work, given.study_kills, chance)
        if given.worker_kills:
            workers(work, wanted, given.worker_kills, chance)
    print(f"{sum(CHECKS)} of {len(CHECKS)} checks hold")
    return 0 if all(CHECKS) else 1


if __name__ == "__main__":
    assert matplotlib.figure and scipy.optimize and all(map(study_of, NAMES))  # with what they import
    sys.exit(main())
