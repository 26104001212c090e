"""Jobs that cost nothing, for tests of what runs them; also a script that kills itself at every file operation in turn."""

from __future__ import annotations

import functools
import os
import signal
import sys
from pathlib import Path

import numpy as np

from lagjax.runs.execute import execute
from lagjax.runs.job import Job
from lagjax.runs.record import Record, digest, pack
from lagjax.runs.running import Running

CONFIGURATION = {"command": "toys", "seed": 3}


def toy(name, watch, steps=4):
    """Sums steps one by one, keeping each in the checkpoint; the result says nothing about interruptions."""
    kept = watch.checkpoint.load()
    done, total = (0, 0.0) if kept is None else (kept.head["done"], float(kept.arrays["total"]))
    assert kept is None or 0 < done < steps
    while done < steps:
        watch.progress(done)
        total += float(sum(name.encode())) / (1 + done)
        done += 1
        if done < steps:
            state = Record({"done": done}, {"total": np.array(total)})
            watch.checkpoint.save(lambda state=state: state, now=True)
    return Record({"name": name}, {"total": np.array(total), "table": np.arange(6.0).reshape(2, 3) * total})


def jobs(names=("a", "b", "c"), run=toy):
    return [Job(name, "toy", 4.0, functools.partial(run, name)) for name in names]


def final(records):
    """What a study would write in the end."""
    return digest(*(pack(record).hex() for record in records))


def killing_at(operation):
    """Kills this process at the file operation of that number, before it is carried out."""
    left = operation

    def counted(original):
        def instead(*args, **kwargs):
            nonlocal left
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return original(*args, **kwargs)

        return instead

    for name in ("fsync", "replace", "chmod", "unlink", "mkdir", "open"):
        setattr(os, name, counted(getattr(os, name)))
    Path.write_bytes = half_written(Path.write_bytes, counted(lambda: None))


def half_written(original, maybe_die):
    """A file is open, and half of it written, when the process may die."""

    def instead(path, data):
        with open(path, "wb") as file:
            file.write(data[: len(data) // 2])
            file.flush()
            maybe_die()
            file.write(data[len(data) // 2 :])
        return len(data)

    return instead


def main(out):
    """Kills at operation 1, 2, ... of one folder until a run comes through; prints how many died and the final digest."""
    deaths, warnings = 0, []
    while True:
        child = os.fork()
        if child == 0:
            killing_at(1 + deaths % 23)
            execute(jobs(), CONFIGURATION, Running(out=Path(out), warn=lambda line: print("warned", line, flush=True)))
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == 0:
            break
        assert os.WIFSIGNALED(status), status
        deaths += 1
        assert deaths < 500
    print(deaths, final(execute(jobs(), CONFIGURATION, Running(out=Path(out), warn=warnings.append))), len(warnings))


if __name__ == "__main__":
    main(sys.argv[1])
