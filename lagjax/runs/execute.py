"""Executes the jobs of a study: in this process, over a team or over Dask; finished ones are kept, failures are told apart."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress

from lagjax.engine.fork import check_not_forked
from lagjax.errors import RunError
from lagjax.given import expanded
from lagjax.runs.cluster import over_dask
from lagjax.runs.folder import INSIDE, Folder, find_folder, open_folder
from lagjax.runs.job import NOWHERE, Job, Watch
from lagjax.runs.progress import Meter, lines
from lagjax.runs.record import Record, digest
from lagjax.runs.running import ATTEMPTS, Failure, Running, attempted
from lagjax.runs.solving import saying


def execute(jobs: Sequence[Job], configuration: dict, running: Running) -> list[Record]:
    """Runs the jobs that the folder does not have, and returns the results of all in order.

    Args:
      jobs: with different names.
      configuration: all that determines their results, readable; see `open_folder`.
      running: how.

    Raises:
      InputError: the folder cannot be used; see `open_folder`.
      RunError: jobs failed twice; all others are finished and kept. Or this process was forked after JAX had started.
    """
    if running.out is not None:
        running = running._replace(out=expanded(running.out))
    check_not_forked()
    team = running.team
    results: dict[str, Record] = {}
    failures: dict[str, str] = {}
    with ExitStack() as stack:
        folder: Folder | None = None

        def enter():
            nonlocal folder
            if running.out is not None:
                folder = stack.enter_context(
                    open_folder(
                        running.out, configuration, command=running.command, fresh=running.fresh, warn=running.warn
                    )
                )
                found = {job.name: folder.read(job, running.warn) for job in jobs}
                results.update({name: record for name, record in found.items() if record is not None})
            return [job.name for job in jobs if job.name not in results]

        pending = set(team.lead(enter))
        for job in jobs if team.processes > 1 else ():
            if job.name not in pending:  # only process 0 has read it
                mine = results.get(job.name)
                results[job.name] = team.gather(functools.partial(lambda record: record or Record({}, {}), mine))[0]
        if team.process != 0 and running.out is not None:
            folder = find_folder(running.out / INSIDE, digest(configuration))
        views = list(running.views) if team.process == 0 else []
        if folder is not None and team.process == 0 and pending:
            views.append(lines(_appended(folder.path / "log.txt"), running.unit))
        meter = Meter(jobs, views)
        for job in jobs:
            if job.name not in pending:
                meter.kept(job.name)
        for job, outcome in _outcomes([job for job in jobs if job.name in pending], folder, running, meter):
            if isinstance(outcome, Failure):
                if running.out is None:
                    raise RunError(f"{job.name}: {outcome.said}")
                failures[job.name] = outcome.said
                meter.failed(job.name, outcome.said)
                continue
            if folder is not None:
                team.lead(functools.partial(folder.keep, job, outcome))
            results[job.name] = outcome
            meter.finished(job.name)
    if failures:
        raise RunError(
            f"{len(failures)} of {len(jobs)} cells failed: {'; '.join(f'{n}: {said}' for n, said in failures.items())}. The "
            f"others are kept in {running.out}; the same command tries these again"
        )
    return [results[job.name] for job in jobs]


def _outcomes(jobs, folder, running, meter) -> Iterator[tuple[Job, Record | Failure]]:
    if not jobs:
        return iter(())
    if running.workers is None and running.scheduler is None:
        return _one_by_one(jobs, folder, running, meter)
    return over_dask(jobs, folder, running, meter)


def _one_by_one(jobs, folder, running, meter):
    team = running.team
    for job in jobs:
        meter.started(job.name)
        watch = Watch(
            progress=functools.partial(meter.moved, job.name),
            checkpoint=NOWHERE if folder is None else folder.checkpoint(job, team.process, team.processes),
            memory=running.memory, process=team.process, processes=team.processes, gather=team.gather,
        )  # fmt: skip
        with saying(functools.partial(meter.solving, job.name)):
            outcome = attempted(job, watch, 1 if running.out is None else ATTEMPTS)
        yield job, outcome


def _appended(path):
    """Writes lines at the end of a log; a full disk costs the log, not the run."""

    def write(line):
        with suppress(OSError), path.open("a", encoding="utf-8") as log:
            log.write(line + "\n")

    return write
