"""Reading observed service times, such as review times in days, from one column of a csv file."""

from __future__ import annotations

import itertools
import math
import os

import numpy as np

from lagjax.data.files import csv_rows, existing_file, is_number, parse_number, shown
from lagjax.errors import InputError

_NO_VALUE = {"na", "n/a", "nan", "null", "none", "inf", "infinity"}


def read_durations(path: str | os.PathLike[str], column: str | None = None) -> np.ndarray:
    """Reads positive times in the unit of the file; `lagjax.durations.from_sample` rounds them to steps.

    A first line of words only is a header. A first line with any number in it is data.

    Args:
      path: a csv file, one row per observation.
      column: name in the header, or number counted from 1; needed if there are several columns.

    Returns:
      (n,) float64 times, exactly as in the file and in its order.

    Raises:
      InputError: no rows, several columns and none chosen (the message lists them), an unknown column, rows
        of unequal length, or a time that is not a positive finite number.
    """
    path = existing_file(path)
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: is empty; expected one time per line")
    width = len(first[1])
    header = _header(first[1])
    at = _column(path, header, width, column)
    times: list[float] = []
    for line, row in rows if header else itertools.chain([first], rows):
        if len(row) != width:
            raise InputError(
                f"{path}, line {line}: has {len(row)} fields, but line {first[0]} has {width}; mend the line"
            )
        try:
            time = parse_number(row[at])
        except ValueError:
            time = math.nan
        if not 0 < time < math.inf:
            raise InputError(
                f"{path}, line {line}: field {at + 1} is {shown(row[at])}; times are finite numbers above 0 "
                "(leave out an observation that has none)"
            )
        times.append(time)
    if not times:
        raise InputError(f"{path}: has a header but no times; expected one time per line below it")
    return np.array(times, dtype=np.float64)


def _header(fields):
    names = [field.strip() for field in fields]
    return names if any(names) and all(not name or _is_name(name) for name in names) else None


def _is_name(text):
    if is_number(text) or text.lower() in _NO_VALUE:
        return False
    return text[0] not in "0123456789+-." and any(char.isalpha() for char in text)


def _column(path, header, width, column):
    names = f"1 to {width}"
    if header:
        names = ", ".join(f"{i} {name!r}" for i, name in enumerate(header, start=1))
    if column is None:
        if width == 1:
            return 0
        raise InputError(f"{path}: has {width} columns ({names}); say which one holds the times, by name or number")
    column = str(column).strip()
    matches = [i for i, name in enumerate(header or []) if name == column]
    if len(matches) == 1:
        return matches[0]
    if len(matches) > 1:
        raise InputError(f"{path}: {len(matches)} columns are named {column!r} ({names}); choose one by its number")
    if column.isdecimal() and len(column) < 10 and 1 <= int(column) <= width:
        return int(column) - 1
    kind = "columns" if header else "columns and no header"
    raise InputError(f"{path}: has no column {column!r}; its {kind}: {names}; choose one by name or number")
