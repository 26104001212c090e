"""Scores as plain text (`.in`): the first line says 'papers reviewers', then one row of scores per paper."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from lagjax.data.table import RawScores, numbered, score_in
from lagjax.errors import InputError
from lagjax.text import BLANKS, Reading, read_delimited, shown


def read_text(path: Path) -> RawScores:
    """Reads a table whose header line states its size; papers and reviewers are numbered in file order.

    Raises:
      InputError: no header of two positive whole numbers, rows that contradict it, or a score that is no finite number.
    """
    (size, lines, rows), notes = read_delimited(path, functools.partial(_parse, path), BLANKS)
    papers, reviewers = size
    if len(lines) < papers:
        raise InputError(
            f"{path}: has {len(lines)} rows of scores, but the header says {papers} papers; mend the header, "
            "or get the file again if it was cut short"
        )
    scores = np.stack(rows)
    names = numbered("paper", papers), numbered("reviewer", reviewers)
    return RawScores(scores, *names, lambda paper, _: f"line {lines[paper]}", gap="nan", notes=notes)


def _parse(path: Path, rows: Iterator[tuple[int, list[str]]], reading: Reading):
    """Returns (papers, reviewers), and each row's line and scores."""
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: is empty; expected a line 'papers reviewers', then one row per paper")
    papers, reviewers = _size(path, *first)
    lines: list[int] = []
    scores: list[np.ndarray] = []
    for line, fields in rows:
        if len(lines) == papers:
            raise InputError(
                f"{path}, line {line}: is row {papers + 1}, but the header says {papers} papers; mend the header"
            )
        lines.append(line)
        scores.append(_row(path, line, fields, papers, reviewers, reading))
    return (papers, reviewers), tuple(lines), tuple(scores)


def _size(path, line, fields):
    if len(fields) != 2 or not all(f.isdecimal() and len(f) < 10 and int(f) > 0 for f in fields):
        raise InputError(
            f"{path}, line {line}: is {shown(' '.join(fields))}; expected the number of papers and of "
            "reviewers, as in '613 201'"
        )
    return int(fields[0]), int(fields[1])


def _row(path, line, fields, papers, reviewers, reading):
    if len(fields) != reviewers:
        found = f"has {len(fields)} scores, but the header says {reviewers} reviewers"
        mend = "mend the header or the row"
        if len(fields) == papers:
            mend = "papers come first, so swap its two numbers if each row is a paper, else transpose the rows"
        raise InputError(f"{path}, line {line}: {found}; {mend}")
    row = np.empty(reviewers)
    for at, field in enumerate(fields):
        try:
            row[at] = score_in(field, reading)
        except ValueError:
            raise InputError(
                f"{path}, line {line}: field {at + 1} is {shown(field)}; scores are finite numbers{reading.hint(field)}"
            ) from None
    return row
