"""How far a run is: per job and overall, with the rate and the time left; views show it as bars or as lines."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from lagjax.runs.job import Job

SETTLE = 0.5  # seconds before a rate is believed


class Status(NamedTuple):
    """What happened last, and where the run stands.

    Attributes:
      event: "kept" (found finished in the folder), "started", "moved", "solving" (a linear program that takes long), "solved",
        "finished" or "failed".
      job: the job it happened to, of which `share` (0 to 1) is done; `seconds` since it started, or 0.
      ended, jobs: jobs done and in all; done, work: the same in units of work.
      rate: work per second of this process's time, or None; left: seconds to go at that rate, or None.
      said: an error, or how far a linear program is, in words.
    """

    event: str
    job: Job
    share: float
    seconds: float
    ended: int
    jobs: int
    done: float
    work: float
    rate: float | None
    left: float | None
    said: str = ""


View = Callable[[Status], object]


class Meter:
    """Adds up what the jobs say and tells the views. Times are differences of a clock that nobody can set."""

    def __init__(self, jobs: Sequence[Job], views: Sequence[View]):
        self._jobs = {job.name: job for job in jobs}
        self._views = views
        self._done: dict[str, float] = {}
        self._began: dict[str, float] = {}
        self._ended: set[str] = set()
        self._start = time.monotonic()
        self._before = 0.0  # work found done: no part of the rate

    def kept(self, name: str) -> None:
        """A job was found finished."""
        self._before += self._jobs[name].work
        self._end("kept", name)

    def started(self, name: str) -> None:
        """A job begins."""
        self._began[name] = time.monotonic()
        self._tell("started", name)

    def moved(self, name: str, done: float) -> None:
        """A job has done so much of its work; the first call says what it had done before this run."""
        if name in self._ended:
            return
        if name not in self._done:
            self._before += done
        self._done[name] = min(done, self._jobs[name].work)
        self._tell("moved", name)

    def solving(self, name: str, said: str) -> None:
        """A job solves a linear program that takes long, and is so far; "" when it is solved."""
        if name not in self._ended:
            self._tell("solving" if said else "solved", name, said)

    def finished(self, name: str) -> None:
        """A job is done."""
        self._end("finished", name)

    def failed(self, name: str, said: str) -> None:
        """A job is given up."""
        self._end("failed", name, said)

    def _end(self, event, name, said=""):
        self._done[name] = self._jobs[name].work
        self._ended.add(name)
        self._tell(event, name, said)

    def _tell(self, event, name, said=""):
        job, now = self._jobs[name], time.monotonic()
        done, work = sum(self._done.values()), sum(job.work for job in self._jobs.values())
        elapsed, fresh = now - self._start, done - self._before
        rate = fresh / elapsed if elapsed > SETTLE and fresh > 0 else None
        left = None if rate is None else (work - done) / rate
        status = Status(
            event, job, self._done.get(name, 0.0) / job.work, now - self._began.get(name, now), len(self._ended),
            len(self._jobs), done, work, rate, left, said,
        )  # fmt: skip
        for view in self._views:
            view(status)


def lines(write: Callable[[str], object], unit: str, every: float = 30.0) -> View:
    """A view of plain lines: one for every job that ends, one for every linear program that takes long, and one every so many
    seconds within long ones."""
    last, solving = time.monotonic(), set()

    def view(status):
        nonlocal last
        now = time.monotonic()
        fresh = status.event == "solving" and status.job.name not in solving
        if status.event == "solving":
            solving.add(status.job.name)
        else:
            solving.discard(status.job.name)
        if status.event in ("started", "solved"):
            return
        if status.event in ("moved", "solving") and not fresh and now - last < every:
            return
        last = now
        write(describe(status, unit))

    return view


def describe(status: Status, unit: str) -> str:
    """One line: which job, how far it and the run are, the rate, the time left."""
    what = {
        "kept": "found finished",
        "finished": f"done in {duration(status.seconds)}",
        "failed": f"failed: {status.said}",
        "solving": f"solving {status.said}",
    }.get(status.event, f"{100 * status.share:.0f}%")
    parts = [f"[{status.ended}/{status.jobs} cells, {100 * status.done / status.work:.0f}%] {status.job.name}: {what}"]
    if status.rate is not None and status.event not in ("kept", "solving"):
        parts.append(f"{quantity(status.rate)} {unit}/s")
        if status.ended < status.jobs and status.left is not None:
            parts.append(f"{duration(status.left)} left")
    return ", ".join(parts)


def quantity(value: float) -> str:
    """A number with three digits and a prefix."""
    place = 0
    while value >= 999.5 and place < 3:
        value, place = value / 1000, place + 1
    return f"{value:.3g}" + ("", " k", " M", " G")[place]


def duration(seconds: float) -> str:
    """A time in words."""
    if seconds < 99.5:
        return f"{seconds:.2g} s" if seconds < 9.95 else f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
