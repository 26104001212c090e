"""The options that say where and how a study runs; no result depends on them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lagjax.cli.options import SHOWN, RunOptions, StartOptions
from lagjax.cli.solving import shown_as, solving_line
from lagjax.cli.terminal import bars, note, use_all_cores
from lagjax.errors import InputError, Interrupted


def check_shown(progress: str) -> None:
    """Raises InputError where `--progress` names none of `SHOWN`."""
    if progress not in SHOWN:
        raise InputError(f"--progress is '{progress}'; choose from {', '.join(SHOWN)}")


def start(options: StartOptions, cores: bool = True) -> None:
    """Checks the options and starts JAX on all cores, if it is to compute on them."""
    check_shown(options.progress)
    _keep_compiled(options)
    if cores:
        use_all_cores()


def _keep_compiled(options):
    if options.cache:
        from lagjax.engine.compiled import keep_compiled

        keep_compiled(warn=lambda line: note(f"note: {line}"))


def begin(options: RunOptions) -> None:
    """Checks the options and starts JAX the way that they ask for."""
    check_shown(options.progress)
    ways = [f"--{name}" for name in ("workers", "scheduler", "processes") if getattr(options, name) is not None]
    if len(ways) > 1:
        raise InputError(f"{' and '.join(ways)} are both given; choose one")
    if options.workers is not None and options.workers < 0:
        raise InputError(f"--workers is {options.workers}; give a whole number, 0 or more")
    if options.memory is not None:
        from lagjax.runs.memory import parse_bytes

        parse_bytes(options.memory)
    if options.scheduler is not None and not re.fullmatch(r"(\w+://)?[^\s/]+:\d+", options.scheduler):
        raise InputError(f"--scheduler is '{options.scheduler}'; write its address as tcp://HOST:PORT")
    _keep_compiled(options)
    if options.workers is not None or options.scheduler is not None:
        import jax

        from lagjax.runs.cluster import check_installed

        check_installed()
        jax.config.update("jax_platforms", "cpu")  # accelerators belong to the workers
        return
    use_all_cores(start=options.processes is None)
    if options.processes is not None:
        from lagjax.runs.team import join

        join(options.processes)


@contextmanager
def running(options: RunOptions, folder: Path | None, what: str, unit: str) -> Iterator:
    """Yields the `Running` that the options describe, with progress shown; says how to go on where it is interrupted."""
    from lagjax.runs.cluster import local_workers
    from lagjax.runs.memory import parse_bytes
    from lagjax.runs.progress import lines
    from lagjax.runs.running import Running
    from lagjax.runs.team import ALONE, joined

    shown = shown_as(options.progress)
    team = ALONE if options.processes is None else joined()
    views = [lines(note, unit)] if shown == "lines" else []
    with bars(what, unit, shown == "bar") as view, solving_line("none" if team.process else shown, place=2):
        try:
            yield Running(
                out=folder,
                fresh=options.fresh,
                memory=None if options.memory is None else parse_bytes(options.memory),
                workers=local_workers() if options.workers == 0 else options.workers,
                scheduler=options.scheduler,
                team=team,
                views=[*views, view],
                warn=lambda line: note(f"note: {line}"),
                command=["lagjax", *sys.argv[1:]],
                unit=unit,
            )
        except KeyboardInterrupt:
            if folder is not None:
                raise Interrupted(
                    f"interrupted; what is finished is kept in {folder}{os.sep}, the same command goes on from there"
                ) from None
            raise
