"""What all studies have in common: how they run, what they leave in a folder, and where a command's study is found."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import xarray as xr

from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.runs.execute import execute
from lagjax.runs.files import clear_leftovers, write_bytes
from lagjax.runs.folder import file_name
from lagjax.runs.job import Job
from lagjax.runs.progress import Status
from lagjax.runs.record import Record
from lagjax.runs.running import Running
from lagjax.studies.dataset import save, versions

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from lagjax.studies.page import Section

NAMES = (
    "sweep",
    "converge",
    "route",
    "compat",
    "partial",
    "exact",
)  # commands, each with a module show_NAME that has its STUDY
TABLE = "table.txt"
MOST_LETTERS = 240  # bytes of a picture's name; file systems allow 255


class Study(NamedTuple):
    """How a study's Dataset is shown.

    Attributes:
      name: of its command, and of its file.
      rows: one dict of plain values for each cell and policy.
      table: the text that the command prints.
      pictures: figures by the name of their file, without its ending.
      lead: a sentence that says what was simulated.
      sections: parts of the report.
      moving: names of the figures, of rows, that are not stationary.
      notes: lines that a reader should know, such as figures without an interval.
    """

    name: str
    rows: Callable[[xr.Dataset], list[dict]]
    table: Callable[[xr.Dataset], str]
    pictures: Callable[[xr.Dataset], Mapping[str, Figure]]
    lead: Callable[[xr.Dataset], str]
    sections: Callable[[xr.Dataset], Iterable[Section]]
    moving: Callable[[Sequence[dict]], list[str]]
    notes: Callable[[xr.Dataset], list[str]] = lambda data: []

    @property
    def file(self) -> str:
        """Name of the file with its Dataset."""
        return f"{self.name}.nc"


def study_of(name: str) -> Study:
    """Returns the study of a command, loading what it needs.

    Raises:
      KeyError: no study has that name.
    """
    if name not in NAMES:
        raise KeyError(name)
    return import_module(f"lagjax.studies.show_{name}").STUDY


def study_in(folder: Path) -> Study | None:
    """Returns the study whose results a folder holds, or None."""
    found = [name for name in NAMES if (folder / f"{name}.nc").is_file()]
    return study_of(found[0]) if found else None


def conduct(
    name: str,
    jobs: Sequence[Job],
    configuration: dict,
    assemble: Callable[[Sequence[Record]], xr.Dataset],
    *,
    out: str | Path | None,
    running: Running | None,
    progress: Callable[[int, int], object] | None = None,
    done: Callable[[Status], tuple[float, float]] = lambda status: (status.done, status.work),
) -> xr.Dataset:
    """Runs the cells of a study and assembles its Dataset; with a folder, leaves there what the command leaves.

    Args:
      name: of the study.
      jobs: its cells.
      configuration: all that determines the results, readable.
      assemble: from the records of all jobs, in order, to the Dataset.
      out, running: the folder (instead of the one that `running` names), and how to run.
      progress: called again and again with what `done` reads from a status: what is done, and all there is.
    """
    running = running or Running()
    if out is not None:
        running = running._replace(out=Path(out))
    if progress is not None:
        running = running._replace(views=(*running.views, lambda status: progress(*map(int, done(status)))))
    data = assemble(execute(jobs, {"command": name, **configuration, "versions": versions()}, running))
    if running.out is not None and running.team.process == 0:
        keep(study_of(name), data, running.out)
    return data


def keep(study: Study, data: xr.Dataset, folder: str | Path) -> None:
    """Writes the Dataset, the table and the pictures of a study.

    Raises:
      InputError: the folder cannot be written.
    """
    from lagjax.plots.pictures import keep_picture

    folder = expanded(folder)
    clear_leftovers(folder)
    for name, figure in study.pictures(data).items():
        plain = Path(name).name == name and len(os.fsencode(name)) < MOST_LETTERS
        keep_picture(figure, folder / f"{name if plain else file_name(name)}.png")
    write_bytes(folder / TABLE, (study.table(data) + "\n").encode())
    save(data, folder / study.file)


def named_apart(what: str, names: Sequence[str]) -> None:
    """Raises InputError where two of several things share a name."""
    if len(set(names)) < len(names):
        raise InputError(f"{what} share a name ({', '.join(names)}); rename one")
