"""Service laws written as one line of text, as on a command line."""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from lagjax.data.durations import read_durations
from lagjax.durations import deterministic, from_sample, geometric
from lagjax.errors import InputError
from lagjax.text import parse_number

FORMS = "geometric:MEAN, deterministic:STEPS or sample:FILE[:COLUMN]"
_LONGEST = 1_000_000


def parse_service(spec: str, *, shortest: int | None = None, note: Callable[[str], None] | None = None) -> np.ndarray:
    """Returns the law that `spec` writes, as P(D = 1), P(D = 2), ... (see `lagjax.durations`).

    Forms: 'geometric:20' (mean 20 steps), 'deterministic:43' (43 steps), 'sample:times.csv' or
    'sample:times.csv:days' (the observed times of that file and column, each rounded to the nearest whole
    step and at least 1). A colon that belongs to the name of an existing file is read as such. `shortest` and
    `note` are those of `read_durations`.

    Raises:
      InputError: another form, a number that the law cannot take, a file that cannot be used, or `shortest` with
        a law that is no sample.
    """
    form, colon, rest = str(spec).strip().partition(":")
    rest = rest.strip()
    if form not in ("geometric", "deterministic", "sample") or not colon or not rest:
        raise InputError(f"service is {spec!r}; write it as {FORMS}")
    if form == "sample":
        return from_sample_file(*_file_and_column(rest), shortest=shortest, note=note)
    if shortest is not None:
        raise InputError(f"shortest is {shortest!r} but service {spec!r} is no sample of observed times; leave it out")
    try:
        number = parse_number(rest)
    except ValueError:
        raise InputError(f"service {spec!r}: {rest!r} is not a number; write it as {FORMS}") from None
    if not 1 <= number <= _LONGEST:
        raise InputError(f"service {spec!r}: durations are between 1 and {_LONGEST} steps; mend the number")
    if form == "deterministic" and number % 1:
        raise InputError(f"service {spec!r}: takes a whole number of steps; round it")
    try:
        return geometric(number) if form == "geometric" else deterministic(int(number))
    except InputError as error:
        raise InputError(f"service {spec!r}: {error}") from None


def from_sample_file(
    path, column: str | None = None, *, shortest: int | None = None, note: Callable[[str], None] | None = None
) -> np.ndarray:
    """Returns the law of the times observed in a file, each rounded to the nearest whole step, at least 1.

    Raises:
      InputError: see `read_durations`, or times beyond a million steps.
    """
    times = read_durations(path, column, shortest=shortest, note=note)
    try:
        return from_sample(times)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def _file_and_column(rest):
    if os.path.exists(rest) or ":" not in rest:
        return rest, None
    file, _, column = rest.rpartition(":")
    if not file or not column.strip():
        raise InputError(f"service 'sample:{rest}' lacks a file or a column; write it as {FORMS}")
    return file, column
