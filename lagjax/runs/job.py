"""A job: one cell of a study as a task that can be run again, anywhere, with the same result; and what it is given."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from lagjax.runs.record import Record


class Checkpoint(Protocol):
    """Where an unfinished job keeps how far it came."""

    def load(self) -> Record | None:
        """What was kept last, or None."""

    def save(self, make: Callable[[], Record], now: bool = False) -> None:
        """Keeps `make()` if enough time has gone by since the last one, or at once."""


class _Nowhere:
    def load(self):
        return None

    def save(self, make, now=False):
        pass


NOWHERE = _Nowhere()


def alone(work: Callable[[], Record]) -> list[Record]:
    """What a job's share gives where there is one process."""
    return [work()]


class Watch(NamedTuple):
    """What a running job is given; nothing in it changes its result.

    Attributes:
      progress: called with the work done so far.
      checkpoint: where the job keeps how far it came.
      memory: bytes that its arrays may take together, or None for what the device has.
      process, processes: which share of the job this process does, of how many.
      gather: does this process's share and returns those of all, in order.
    """

    progress: Callable[[float], object] = lambda done: None
    checkpoint: Checkpoint = NOWHERE
    memory: int | None = None
    process: int = 0
    processes: int = 1
    gather: Callable[[Callable[[], Record]], list[Record]] = alone

    def within(self, behind: float, total: float) -> Watch:
        """The watch of a part of a job whose work is 1: progress is in units of which `total` are in all and `behind` done."""
        return self._replace(progress=lambda done: self.progress((behind + done) / total))


class Job(NamedTuple):
    """One cell.

    Attributes:
      name: what messages and files call it; different for every job of a study.
      kind: jobs of one kind share a compiled program.
      work: how much there is to do, in the units of `Watch.progress`.
      run: from a `Watch` to the result; a pure function of what it is bound to, picklable.
    """

    name: str
    kind: str
    work: float
    run: Callable[[Watch], Record]


def share(total: int, process: int, processes: int) -> tuple[int, int]:
    """The part of `total` things, first and last, that falls to one process."""
    bounds = np.linspace(0, total, processes + 1).round().astype(int)
    return int(bounds[process]), int(bounds[process + 1])
