"""Where a command's results go: stdout, a JSON file, a folder."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from lagjax.cli.options import RunOptions
from lagjax.cli.terminal import note, say
from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.runs.folder import INSIDE

MOST_NAMED = 3  # figures that a warning names
ELSEWHERE = ("out", "json_file", *(field.name for field in dataclasses.fields(RunOptions)))


_asked: dict[str, Any] = {}


def remember(arguments: Mapping[str, Any]) -> None:
    """Keeps what a command was asked for, for its JSON; where and how it runs and what it writes are no part of that."""
    _asked.clear()
    _asked.update({name: value for name, value in arguments.items() if name not in ELSEWHERE})


def show(study, data, folder: Path | None, json_file: str | None, remedy: str) -> None:
    """Prints the table of a study that has run, says what a reader should know of it, and where its files are.

    Args:
      study: a `lagjax.studies.study.Study`. data: its Dataset.
      folder: where it has left its files, or None. json_file: as in `give`.
      remedy: how to mend figures that are not stationary.
    """
    from lagjax.studies.study import TABLE

    found = study.rows(data)
    for line in study.notes(data):
        note(f"note: {line}")
    warn_of_start(study.moving(found), remedy)
    give(study.name, study.table(data), json_file, lambda: {"rows": found}, data)
    if folder is not None:
        note(f"written: {folder}/ ({study.file}, {TABLE} and pictures)")


def give(command: str, text: str, json_file: str | None, content: Callable[[], dict], data=None) -> None:
    """Prints a text and writes JSON if asked, with the versions and what was asked for; with "-" only the JSON is printed.

    Args:
      command: its name. text: for people.
      json_file: a file, - for stdout, or None.
      content: makes what programs read.
      data: the Dataset, if there is one, whose seed, selection and device are said too.
    """
    if json_file:
        from lagjax.runs.files import write_bytes

        page = json_page(command, content, data)
        if json_file == "-":
            say(page)
            return
        write_bytes(json_file, f"{page}\n".encode())
    if text:
        say(text)


def json_page(command: str, content: Callable[[], dict], data=None) -> str:
    """The JSON of a command; see `give`."""
    from lagjax.studies.dataset import versions

    head: dict = {"command": command}
    if data is not None:
        head |= {"seed": int(data.attrs["seed"]), **{key: data.attrs[key] for key in ("selection", "device")}}
    head |= {"versions": versions(), "configuration": _asked}
    return json.dumps(head | content(), indent=1, default=str)


def places(
    out: Path | None,
    json_file: str | None,
    *,
    default: Path | None = None,
    writes: Sequence[str] = (),
    reads: Sequence[tuple[str, Path]] = (),
) -> tuple[Path | None, str | None]:
    """Returns the folder and the JSON file that a command writes, checked before any work.

    Args:
      out: the folder asked for; json_file: the file asked for, or - for stdout. ~ is a home in both.
      default: the folder where neither is asked for.
      writes: names of the files in the folder.
      reads: options of the files that the command reads, and the files.

    Raises:
      InputError: a place that cannot be written, or a file that is read and would be written.
    """
    folder = expanded(out) if out is not None else (None if json_file else default)
    if json_file and json_file != "-":
        json_file = str(expanded(json_file))
    check_writable(folder, json_file)
    targets = [("--json", Path(json_file))] if json_file and json_file != "-" else []
    if folder is not None:
        targets += [("--out", folder / name) for name in writes]
        targets += [("--out", path) for path in _within(folder / INSIDE)]
    check_not_read(targets, reads)
    return folder, json_file


def check_not_read(writes: Iterable[tuple[str, Path]], reads: Sequence[tuple[str, Path]]) -> None:
    """Refuses to write a file that is read, by whatever name: the file itself, a link to it, or another name of it.

    Args:
      writes, reads: options, and the files that they name.

    Raises:
      InputError: such a file.
    """
    known: dict = {}
    for option, path in reads:
        known.setdefault(_identity(path), (option, path))
    known.pop(None, None)
    for option, path in writes if known else ():
        found = known.get(_identity(path))
        if found is not None:
            raise InputError(
                f"{option} would write {path}, which is the file that is read as {found[1]} ({found[0]}); name another place"
            )


def _identity(path):
    """What tells files apart, whatever they are called; None where there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return (found.st_dev, found.st_ino) if stat.S_ISREG(found.st_mode) else None


def _within(folder):
    """Files of an earlier run, which this one may replace."""
    return (path for path in folder.rglob("*") if path.is_file()) if folder.is_dir() else ()


def warn_of_start(figures: Sequence[str], remedy: str) -> None:
    """Says in one line which figures are not stationary, if any, and how to mend that."""
    from lagjax.stats import NOT_STATIONARY

    if figures:
        more = f" and {len(figures) - MOST_NAMED} more" if len(figures) > MOST_NAMED else ""
        named = "; ".join(figures[:MOST_NAMED]) + more
        note(f"warning: {NOT_STATIONARY}: {named}; what is left of the start may decide them; {remedy}")


def check_writable(folder, json_file):
    """Refuses, before any work, places that cannot be written, and leaves nothing behind."""
    if json_file == "":
        raise InputError("--json has no name; give a file, or - for stdout")
    if json_file and json_file != "-" and Path(json_file).is_dir():
        raise InputError(f"--json {json_file} is a folder; name a file in it")
    targets = {"--out": folder, "--json": Path(json_file).absolute().parent if json_file and json_file != "-" else None}
    for option, target in targets.items():
        if target is None:
            continue
        existing = target.absolute()
        try:
            while not existing.exists():
                existing = existing.parent
            tempfile.TemporaryFile(dir=existing).close()
        except OSError as error:
            raise InputError(
                f"{option}: cannot write in '{existing}' ({error.strerror}); choose another place"
            ) from None
