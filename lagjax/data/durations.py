"""Reading observed service times, such as review times in days, from one column of a text file."""

from __future__ import annotations

import functools
import itertools
import os
import shlex
from array import array
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lagjax.data.prepare import whole
from lagjax.errors import InputError
from lagjax.text import UNKNOWN, Reading, existing_file, read_delimited, shown

_NO_VALUE = UNKNOWN | {"inf", "infinity"}
_SEPARATORS = frozenset(",;\t")
_LINES_SHOWN = 5
_COLUMNS_SHOWN = 3


def read_durations(
    path: str | os.PathLike[str], column: str | None = None, *, shortest: int | None = None,
    note: Callable[[str], None] | None = None,
) -> np.ndarray:  # fmt: skip
    """Reads positive times in the unit of the file; `lagjax.durations.from_sample` rounds them to steps.

    A first line of words only is a header. A first line with any number in it is data. Fields are separated by
    commas, semicolons or tabs; a decimal comma is read where no comma separates (see `read_delimited`).

    Args:
      path: one row per observation.
      column: name in the header, or number counted from 1; needed if there are several columns.
      shortest: take every time from 0 up to below this many steps as this many, 1 or more; by default a time of
        0 is refused.
      note: called with a line for each thing that users should see: how the file was read if not the plainest
        way, and how many times `shortest` raised.

    Returns:
      (n,) float64 times in the order of the file, exactly as there but for those that `shortest` raised.

    Raises:
      InputError: no rows, several columns and none chosen (the message lists them), an unknown column, rows
        of unequal length, a time that is no finite number above 0, or a file that reads in two ways.
    """
    if shortest is not None:
        shortest = whole("shortest", shortest, least=1)
    path = existing_file(path)
    found, notes = read_delimited(path, functools.partial(_parse, path, column))
    if found.at is None:
        raise _which_column(path, found)
    times = np.array(found.times, dtype=np.float64)
    _refuse_no_time(path, found, times, shortest)
    if shortest is not None and (short := times < shortest).any():
        notes = (*notes, f"{path}: {short.sum()} of {short.size} times raised to {shortest}, the shortest in steps")
        times = np.maximum(times, shortest)
    if note is not None:
        for line in notes:
            note(line)
    return times


class _Column(NamedTuple):
    """One column of a file of times.

    Attributes:
      header: the names, None without a header.
      width: number of columns.
      at: which one was chosen, from 0; None if there are several and none was.
      numeric: which columns hold numbers only, with points or commas, where none was chosen.
      lines, times: line and number of each row, of any sign, where one was.
    """

    header: tuple[str, ...] | None
    width: int
    at: int | None
    numeric: tuple[int, ...]
    lines: tuple[int, ...]
    times: array


def _parse(path: Path, column: str | None, rows: Iterator[tuple[int, list[str]]], reading: Reading) -> _Column:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: is empty; expected one time per line")
    width = len(first[1])
    header = _header(first[1], reading)
    if header and width == 1 and reading.commas and _SEPARATORS & set(header[0]):
        raise InputError(f"{path}, line {first[0]}: names several columns; separate the fields below it alike")
    at = _chosen(path, header, width, column)
    numeric = set(range(width))
    lines: list[int] = []
    times = array("d")
    for line, row in rows if header else itertools.chain([first], rows):
        if len(row) != width:
            raise InputError(
                f"{path}, line {line}: has {len(row)} fields, but line {first[0]} has {width}; mend the line"
            )
        if at is None:
            numeric = {i for i in numeric if reading.could_be_number(row[i])}
            continue
        try:
            times.append(reading.number(row[at]))
        except ValueError:
            raise _no_time(path, f"line {line}: field {at + 1} is {shown(row[at])}", reading.hint(row[at])) from None
        lines.append(line)
    if at is not None and not times:
        raise InputError(f"{path}: has a header but no times; expected one time per line below it")
    return _Column(header, width, at, tuple(sorted(numeric)) if at is None else (), tuple(lines), times)


def _header(fields, reading):
    names = tuple(field.strip() for field in fields)
    return names if any(names) and all(not name or _is_name(name, reading) for name in names) else None


def _is_name(text, reading):
    if reading.is_number(text) or text.lower() in _NO_VALUE:
        return False
    return text[0] not in "0123456789+-." and any(char.isalpha() for char in text)


def _chosen(path, header, width, column):
    if column is None:
        return 0 if width == 1 else None
    column = str(column).strip()
    matches = [i for i, name in enumerate(header or ()) if name == column]
    if len(matches) == 1:
        return matches[0]
    names = _names(header, range(width)) if header else f"1 to {width}"
    if len(matches) > 1:
        raise InputError(f"{path}: {len(matches)} columns are named {column!r} ({names}); choose one by its number")
    if column.isdecimal() and len(column) < 10 and 1 <= int(column) <= width:
        return int(column) - 1
    kind = "columns" if header else "columns and no header"
    raise InputError(f"{path}: has no column {column!r}; its {kind}: {names}; choose one by name or number")


def _names(header, columns):
    return ", ".join(f"{i + 1} {header[i]!r}" for i in columns)


def _which_column(path, found):
    names = _names(found.header, range(found.width)) if found.header else f"1 to {found.width}"
    fault = f"{path}: has {found.width} columns ({names}); say which one holds the times, by name or number"
    if not found.numeric:
        return InputError(f"{fault} (none holds numbers only)")
    calls = [_call(found.header, i) for i in found.numeric[:_COLUMNS_SHOWN]]
    options = " or ".join(f"`--column {shlex.quote(call)}`" for call in calls)
    return InputError(f"{fault}: {options} (in a service law sample:FILE:{calls[0]})")


def _call(header, i):
    """How to name a column: by its name where only it has it and a terminal can show it, else by its number."""
    name = header[i] if header else ""
    return name if name and name.isprintable() and header.count(name) == 1 else str(i + 1)


def _no_time(path, where, hint=""):
    return InputError(
        f"{path}, {where}; times are finite numbers above 0 (leave out an observation that has none){hint}"
    )


def _refuse_no_time(path, found, times, shortest):
    bad = np.flatnonzero(~np.isfinite(times) | (times < 0))
    if bad.size:
        i = bad[0]
        raise _no_time(path, f"line {found.lines[i]}: field {found.at + 1} is '{times[i]:g}'")
    zero = np.flatnonzero(times == 0)
    if not zero.size or shortest is not None:
        return
    where = ", ".join(str(found.lines[i]) for i in zero[:_LINES_SHOWN])
    where = f"line {where}" if zero.size == 1 else f"lines {where}"
    if zero.size > _LINES_SHOWN:
        where += f" and {zero.size - _LINES_SHOWN} more"
    raise InputError(
        f"{path}, {where}: field {found.at + 1} is '0' ({zero.size} of {times.size}); times are finite numbers above 0: "
        "pass shortest=1 (`--shortest 1`) to take times below 1 step as 1 step, or leave these out"
    )
