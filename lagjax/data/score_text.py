"""Scores as plain text (`.in`): the first line says 'papers reviewers', then one row of scores per paper."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from lagjax.data.files import open_text, parse_number, shown
from lagjax.data.table import RawScores, numbered
from lagjax.errors import InputError


def read_text(path: Path) -> RawScores:
    """Reads a table whose header line states its size; papers and reviewers are numbered in file order.

    Raises:
      InputError: no header of two positive whole numbers, rows that contradict it, or a score that is not a
        finite number of 0 or more.
    """
    size: tuple[int, int] | None = None
    rows: list[np.ndarray] = []
    with open_text(path) as file:
        for line, text in enumerate(file, start=1):
            fields = text.split()
            if not fields:
                continue
            if size is None:
                size = _size(path, line, fields)
                continue
            papers, reviewers = size
            if len(rows) == papers:
                raise InputError(
                    f"{path}, line {line}: is row {papers + 1}, but the header says {papers} papers; mend the header"
                )
            rows.append(_row(path, line, fields, papers, reviewers))
    if size is None:
        raise InputError(f"{path}: is empty; expected a line 'papers reviewers', then one row per paper")
    papers, reviewers = size
    if len(rows) < papers:
        raise InputError(
            f"{path}: has {len(rows)} rows of scores, but the header says {papers} papers; mend the header, "
            "or get the file again if it was cut short"
        )
    return RawScores(np.stack(rows), numbered("paper", papers), numbered("reviewer", reviewers))


def _size(path, line, fields):
    if len(fields) != 2 or not all(f.isdecimal() and len(f) < 10 and int(f) > 0 for f in fields):
        raise InputError(
            f"{path}, line {line}: is {shown(' '.join(fields))}; expected the number of papers and of "
            "reviewers, as in '613 201'"
        )
    return int(fields[0]), int(fields[1])


def _row(path, line, fields, papers, reviewers):
    if len(fields) != reviewers:
        found = f"has {len(fields)} scores, but the header says {reviewers} reviewers"
        mend = "mend the header or the row"
        if len(fields) == papers:
            mend = "papers come first, so swap its two numbers if each row is a paper, else transpose the rows"
        raise InputError(f"{path}, line {line}: {found}; {mend}")
    row = np.empty(reviewers)
    for at, field in enumerate(fields):
        try:
            row[at] = score = parse_number(field)
        except ValueError:
            score = -1.0
        if not 0 <= score < math.inf:
            raise InputError(
                f"{path}, line {line}: field {at + 1} is {shown(field)}; scores are finite numbers, 0 or more"
            )
    return row
