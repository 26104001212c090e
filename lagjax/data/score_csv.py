"""Scores as delimited text: `paper,reviewer,score` lines, as conference systems export them, or a table with names."""

from __future__ import annotations

import functools
import itertools
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from lagjax.data.cells import Cells, as_table
from lagjax.data.table import RawScores, score_in
from lagjax.data.wide import parse_wide
from lagjax.errors import InputError
from lagjax.text import Reading, read_delimited, shown

COLUMNS = ("paper", "reviewer", "score")
_NAMES_SHOWN = 6


def read_csv(path: Path) -> RawScores:
    """Reads `paper,reviewer,score` lines; papers and reviewers keep the order of their first appearance.

    A first line that names the columns paper, reviewer and score (any case) is a header and may order them
    freely; without one the order is paper, reviewer, score. A column without a name, as data frames write
    their row numbers, is left out with a note. A header that begins with paper, or with nothing, and goes on
    with reviewers makes a table: a row of scores for each paper. Spaces around fields are dropped.

    Raises:
      InputError: a line without its fields, an unnamed paper or reviewer, a score that is no finite number, a pair given twice, a
        header with other names, no scores, more than 200 million cells, or a file that reads in two ways.
    """
    cells, notes = read_delimited(path, functools.partial(_parse, path))
    return as_table(path, cells, notes)


class _Layout(NamedTuple):
    """Where paper, reviewer and score stand among how many fields, and whether a header says so."""

    paper: int = 0
    reviewer: int = 1
    score: int = 2
    width: int = 3
    header: bool = False


def _parse(path: Path, rows: Iterator[tuple[int, list[str]]], reading: Reading) -> Cells:
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: is empty; expected lines of {','.join(COLUMNS)}")
    if _heads_a_table(first[1], reading):
        return parse_wide(path, first, rows, reading)
    return _parse_long(path, _layout(path, *first, reading), first, rows, reading)


def _heads_a_table(row, reading):
    names = _names(row)
    if len(row) < 2 or names[0] not in ("paper", "") or set(COLUMNS[1:]) & set(names):
        return False
    return len(row) != 3 or not reading.is_number(row[2]) or all(map(reading.is_number, row[1:]))


def _layout(path, line, row, reading) -> _Layout:
    names = _names(row)
    if all(names.count(column) == 1 for column in COLUMNS):
        others = [name for name in row if name.strip() and name.strip().lower() not in COLUMNS]
        if others:
            raise InputError(
                f"{path}, line {line}: has a column {shown(others[0])} beside {', '.join(COLUMNS)}; leave it out"
            )
        paper, reviewer, score = map(names.index, COLUMNS)
        return _Layout(paper, reviewer, score, len(row), True)
    if len(row) > 3 and not any(map(reading.could_be_number, row)):
        shorter = ", ".join(map(shown, row[:_NAMES_SHOWN])) + (", ..." if len(row) > _NAMES_SHOWN else "")
        raise InputError(
            f"{path}, line {line}: names the columns {shorter}; call three of them {', '.join(COLUMNS)} and leave the "
            "others out, or call the first one paper if the others are reviewers"
        )
    if len(row) != 3:
        raise _wrong_width(path, line, row, 3)
    try:
        score_in(row[2], reading)
    except ValueError:
        if row[2].strip()[0] in "0123456789+-.":
            raise _bad_score(path, line, 2, row[2], reading) from None
        raise InputError(
            f"{path}, line {line}: field 3 is {shown(row[2])}, neither a score nor part of the header "
            f"{','.join(COLUMNS)}; if {', '.join(map(shown, row))} name the columns, call them {', '.join(COLUMNS)} "
            f"(in the order they have), else mend the number"
        ) from None
    return _Layout()


def _names(row):
    return [field.strip().lower() for field in row]


def _parse_long(path, layout, first, rows, reading):
    papers: dict[str, int] = {}
    reviewers: dict[str, int] = {}
    paper_codes, reviewer_codes, lines, scores = array("i"), array("i"), array("i"), array("d")
    for line, row in rows if layout.header else itertools.chain([first], rows):
        if len(row) != layout.width:
            raise _wrong_width(path, line, row, layout.width)
        paper, reviewer = row[layout.paper].strip(), row[layout.reviewer].strip()
        text = row[layout.score]
        try:
            score = score_in(text, reading)
        except ValueError:
            raise _bad_score(path, line, layout.score, text, reading) from None
        if not paper or not reviewer:
            kind, at = ("reviewer", layout.reviewer) if paper else ("paper", layout.paper)
            raise InputError(f"{path}, line {line}: field {at + 1} (the {kind}) is empty; name it")
        paper_codes.append(papers.setdefault(paper, len(papers)))
        reviewer_codes.append(reviewers.setdefault(reviewer, len(reviewers)))
        lines.append(line)
        scores.append(score)
    if not scores:
        raise InputError(f"{path}: has a header but no scores; expected lines of {','.join(COLUMNS)} below it")
    notes = (f"{path} has a column without a name, which is left out",) if layout.width > 3 else ()
    return Cells(tuple(papers), tuple(reviewers), paper_codes, reviewer_codes, lines, scores, notes)


def _bad_score(path, line, at, text, reading):
    return InputError(
        f"{path}, line {line}: field {at + 1} (the score) is {shown(text)}; scores are finite numbers (nan or nothing "
        f"where there is none){reading.hint(text)}"
    )


def _wrong_width(path, line, row, width):
    mend = "mend the line"
    if len(row) == 1:
        mend = "separate them with commas, semicolons or tabs"
    elif len(row) == width + 1 and all(part.strip().isdecimal() for part in row[-2:]):
        mend = f"write a decimal point, {row[-2].strip()}.{row[-1].strip()}, or semicolons between fields"
    many = "1 field" if len(row) == 1 else f"{len(row)} fields"
    return InputError(f"{path}, line {line}: has {many}; expected {width} ({', '.join(COLUMNS)}), so {mend}")
