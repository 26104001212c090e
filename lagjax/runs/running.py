"""How a study runs, and what becomes of a job that fails."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from lagjax.errors import InputError
from lagjax.lp import SolverError
from lagjax.runs.job import Job, Watch
from lagjax.runs.progress import View
from lagjax.runs.record import Record
from lagjax.runs.team import ALONE, Team

ATTEMPTS = 2  # a job that fails so often is given up
HOPELESS = (InputError, SolverError)  # what fails the same way every time


class Running(NamedTuple):
    """How to run; nothing here changes a result.

    Attributes:
      out: folder that keeps finished jobs, or None.
      fresh: forgets what the folder holds.
      memory: bytes that arrays may take together, or None for what is free.
      workers: that many local Dask workers, one core or GPU each; None for this process.
      scheduler: address of a Dask scheduler instead; patience: seconds to wait for its answer.
      team: processes that do each job together.
      views: what shows progress.
      warn: called with lines about files that were found damaged.
      command: how the user started it, for the manifest.
      unit: what work is counted in.
    """

    out: Path | None = None
    fresh: bool = False
    memory: int | None = None
    workers: int | None = None
    scheduler: str | None = None
    patience: float = 10.0
    team: Team = ALONE
    views: Sequence[View] = ()
    warn: Callable[[str], Any] = lambda line: None
    command: Sequence[str] = ()
    unit: str = "arrivals"


class Failure(NamedTuple):
    """Why a job was given up."""

    said: str


def attempted(job: Job, watch: Watch, attempts: int) -> Record | Failure:
    """Runs a job until it succeeds, at most so often; bad input is bad input every time, and alone in memory it is raised."""
    said = ""
    for _ in range(attempts):
        try:
            return job.run(watch)
        except HOPELESS as error:
            if attempts == 1:
                raise
            return Failure(str(error))
        except Exception as error:
            if attempts == 1:
                raise
            said = f"{type(error).__name__}: {error}"
    return Failure(" ".join(said.split())[:500])
