"""Opening people's files: every fault becomes one `InputError` line naming the file and the place in it."""

from __future__ import annotations

import contextlib
import csv
import os
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from lagjax.errors import InputError

_SHOWN = 40


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Returns `path` as a `Path`.

    Raises:
      InputError: nothing is there, or it is a directory.
    """
    path = Path(path)
    if not exists(path):
        raise InputError(f"{path}: no such file; check the path")
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the file inside it")
    return path


def exists(path: str | os.PathLike[str]) -> bool:
    """Whether something is there that can be looked at (nothing is behind a closed folder)."""
    try:
        return Path(path).exists()
    except OSError:
        return False


def shown(text: str) -> str:
    """Returns text found in a file, quoted on one line and cut to a readable length."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


def parse_number(text: str) -> float:
    """Returns the number that a field holds; ValueError if none (digits joined by '_' are not a number)."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def is_number(text: str) -> bool:
    """Whether a field reads as a number (nan and inf do: they are refused later, as values)."""
    try:
        parse_number(text)
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def open_text(path: Path) -> Iterator[TextIO]:
    """Opens UTF-8 text, with or without a byte-order mark and with any line ends."""
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            yield file
    except UnicodeDecodeError:
        line = _first_undecodable_line(path)
        raise InputError(f"{path}, line {line}: is not UTF-8 text; save the file as UTF-8") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None


def csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    """Yields (line on which the row starts, its fields) for every row that is not blank."""
    with open_text(path) as file:
        reader = csv.reader(file, strict=True, skipinitialspace=True)
        line = 1
        try:
            for row in reader:
                if len(row) > 1 or (row and row[0].strip()):
                    yield line, row
                line = reader.line_num + 1
        except csv.Error as error:
            raise InputError(f"{path}, line {line}: is not well-formed csv ({error}); check its quotes") from None


def _first_undecodable_line(path: Path) -> int:
    with open(path, "rb") as file:
        for line, raw in enumerate(file, start=1):
            try:
                raw.decode("utf-8")
            except UnicodeDecodeError:
                return line
    return line
