"""The options that several commands share, each in one place: the same words mean the same everywhere."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, get_type_hints

import typer

SHOWN = ("auto", "bar", "lines", "none")

Scores = Annotated[
    Path | None,
    typer.Option(
        help="Score file (.csv or .tsv with paper,reviewer,score; .npy; .npz; .in) instead of gallery instances."
    ),
]
Durations = Annotated[
    Path | None, typer.Option(help="Text file of observed service times, in steps; goes with --scores.")
]
Column = Annotated[str | None, typer.Option(help="Column of --durations, by name or number from 1.")]
Service = Annotated[
    str | None,
    typer.Option(
        help="Service law instead of --durations: geometric:MEAN, deterministic:STEPS or sample:FILE[:COLUMN]."
    ),
]
Shortest = Annotated[
    int | None,
    typer.Option(help="Take observed times below this many steps as this many; times of 0 are refused by default."),
]
PerTask = Annotated[int | None, typer.Option(help="Servers per task, k; goes with --scores. [default: 1]")]
SamplePapers = Annotated[int | None, typer.Option(help="Draw this many papers (task types) at random from --scores.")]
SampleReviewers = Annotated[
    int | None, typer.Option(help="Draw this many reviewers (servers) at random from --scores.")
]
Orientation = Annotated[
    str | None, typer.Option(help="papers-by-reviewers or reviewers-by-papers, where the file does not say.")
]
Missing = Annotated[
    str | None, typer.Option(help="Score of pairs that --scores lacks, after --normalise; refused by default.")
]
Conflicts = Annotated[
    str | None, typer.Option(help="Pairs in conflict: refuse, zero (score 0) or ignore. [default: refuse]")
]
Normalise = Annotated[bool, typer.Option("--normalise", help="Rescale the known scores of the whole file to [0, 1].")]
Selection = Annotated[str, typer.Option(help="Which LP optimum makes the policies: canonical, vertex or interior.")]

Kiid = Annotated[
    str,
    typer.Option(help="The reference line OPT(KIID): always, never, or auto: not where it costs more than the rest."),
]


Workers = Annotated[
    int | None,
    typer.Option(help="Local Dask workers, one core or GPU each; 0 for as many as there are. [default: no workers]"),
]
Scheduler = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="Dask scheduler whose workers run the cells, as tcp://host:8786.")
]
Processes = Annotated[
    str | None,
    typer.Option(
        metavar="WHERE",
        help="This process is one of many that share every cell: auto (Slurm and others) or HOST:PORT,NUMBER,COUNT.",
    ),
]
Memory = Annotated[
    str | None,
    typer.Option(help="Most memory for arrays, as 4GiB; batches are cut to fit. [default: half of what is free]"),
]
Shown = Annotated[
    str, typer.Option("--progress", help="bar, lines, none, or auto: a bar on a terminal and nothing in a pipe.")
]
Cache = Annotated[
    bool,
    typer.Option("--cache/--no-cache", help="Keep compiled programs in the user's cache folder for the next run."),
]
Fresh = Annotated[bool, typer.Option("--fresh", help="Forget what the folder holds of an earlier run.")]


Seed = Annotated[int, typer.Option(help="Seed of all randomness.")]
Replicas = Annotated[int, typer.Option(help="Independent replicas.")]
Json = Annotated[str | None, typer.Option("--json", metavar="FILE", help="Write JSON to FILE, or to stdout with -.")]


def out_option(folder: Path, holds: str):
    """`--out` of a command that by default writes to a folder of that name."""
    return typer.Option(help=f"Folder for {holds}. [default: {folder}, unless --json is given]")


@dataclasses.dataclass(frozen=True)
class FileOptions:
    """The options that describe an instance in files, as given."""

    scores: Scores = None
    durations: Durations = None
    column: Column = None
    service: Service = None
    shortest: Shortest = None
    per_task: PerTask = None
    sample_papers: SamplePapers = None
    sample_reviewers: SampleReviewers = None
    orientation: Orientation = None
    missing: Missing = None
    conflicts: Conflicts = None
    normalise: Normalise = False


NO_FILES = FileOptions()


@dataclasses.dataclass(frozen=True)
class StartOptions:
    """How a command starts and what it shows; no result depends on it."""

    progress: Shown = "auto"
    cache: Cache = True


@dataclasses.dataclass(frozen=True)
class RunOptions(StartOptions):
    """Where and how a study runs; no result depends on it either."""

    workers: Workers = None
    scheduler: Scheduler = None
    processes: Processes = None
    memory: Memory = None
    fresh: Fresh = False


AS_USUAL = RunOptions()
AT_ONCE = StartOptions()


def takes(name: str, kind: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a command the options of a dataclass, such as `FileOptions`, in the place of one parameter."""
    fields = dataclasses.fields(kind)
    hints = get_type_hints(kind, include_extras=True)
    options = [
        inspect.Parameter(f.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=f.default, annotation=hints[f.name])
        for f in fields
    ]

    def decorate(command):
        given = inspect.signature(command, eval_str=True)
        parameters = [p for own in given.parameters.values() for p in (options if own.name == name else [own])]

        @functools.wraps(command)
        def with_options(**arguments):
            return command(**{name: kind(**{f.name: arguments.pop(f.name) for f in fields})}, **arguments)

        # What typer reads: the parameters as they are on the command line.
        with_options.__signature__ = given.replace(parameters=parameters)  # type: ignore[attr-defined]
        with_options.__annotations__ = {p.name: p.annotation for p in parameters}
        return with_options

    return decorate
