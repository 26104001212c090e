"""Scores as `paper,reviewer,score` lines, the layout in which conference systems export affinities."""

from __future__ import annotations

import itertools
import math
from array import array
from pathlib import Path

import numpy as np

from lagjax.data.files import csv_rows, is_number, parse_number, shown
from lagjax.data.table import RawScores
from lagjax.errors import InputError

COLUMNS = ("paper", "reviewer", "score")
MAX_CELLS = 200_000_000


def read_csv(path: Path) -> RawScores:
    """Reads `paper,reviewer,score` lines; papers and reviewers keep the order of their first appearance.

    A first line that names the columns paper, reviewer and score (any case) is a header and may order them
    freely; without one the order is paper, reviewer, score. Spaces around fields are dropped.

    Raises:
      InputError: a line without three fields, an unnamed paper or reviewer, a score that is not a finite
        number of 0 or more, a pair given twice, a header with other names, no scores, or more than 200
        million cells.
    """
    rows = csv_rows(path)
    first = next(rows, None)
    if first is None:
        raise InputError(f"{path}: is empty; expected lines of {','.join(COLUMNS)}")
    header = _header(path, *first)
    paper_at, reviewer_at, score_at = header or (0, 1, 2)
    papers: dict[str, int] = {}
    reviewers: dict[str, int] = {}
    paper_codes, reviewer_codes, lines, scores = array("i"), array("i"), array("i"), array("d")
    for line, row in rows if header else itertools.chain([first], rows):
        if len(row) != 3:
            raise _wrong_width(path, line, row)
        paper, reviewer = row[paper_at].strip(), row[reviewer_at].strip()
        try:
            score = parse_number(row[score_at])
        except ValueError:
            raise _bad_score(path, line, score_at, row[score_at]) from None
        if not 0 <= score < math.inf:
            raise _bad_score(path, line, score_at, row[score_at])
        if not paper or not reviewer:
            kind, at = ("reviewer", reviewer_at) if paper else ("paper", paper_at)
            raise InputError(f"{path}, line {line}: field {at + 1} (the {kind}) is empty; name it")
        paper_codes.append(papers.setdefault(paper, len(papers)))
        reviewer_codes.append(reviewers.setdefault(reviewer, len(reviewers)))
        lines.append(line)
        scores.append(score)
    if not scores:
        raise InputError(f"{path}: has a header but no scores; expected lines of {','.join(COLUMNS)} below it")

    names = tuple(papers), tuple(reviewers)
    shape = len(papers), len(reviewers)
    if math.prod(shape) > MAX_CELLS:
        raise InputError(
            f"{path}: {shape[0]} papers x {shape[1]} reviewers make {math.prod(shape)} pairs (it has "
            f"{len(scores)} scores); at most {MAX_CELLS} are read, so cut the file down"
        )
    cells = np.frombuffer(paper_codes, dtype=np.intc).astype(np.int64) * shape[1]
    cells += np.frombuffer(reviewer_codes, dtype=np.intc)
    _refuse_repeats(path, cells, lines, *names)
    table = np.full(shape, np.nan)
    table.ravel()[cells] = np.frombuffer(scores, dtype=np.float64)
    return RawScores(table, *names, gap="no line")


def _header(path, line, row):
    """Returns where paper, reviewer and score stand, or None if the first line is not a header."""
    if len(row) != 3:
        raise _wrong_width(path, line, row)
    if is_number(row[2]):
        return None
    names = [field.strip().lower() for field in row]
    if sorted(names) != sorted(COLUMNS):
        raise InputError(
            f"{path}, line {line}: field 3 is {shown(row[2])}, neither a score nor part of a header; mend "
            f"the number, or name the columns {', '.join(COLUMNS)} (in the order they have)"
        )
    return tuple(names.index(name) for name in COLUMNS)


def _wrong_width(path, line, row):
    separator = next((mark for mark in (";", "\t") if len(row) == 1 and mark in row[0]), None)
    mend = f"separate them with commas, not {separator!r}" if separator else "mend the line"
    many = "1 field" if len(row) == 1 else f"{len(row)} fields"
    return InputError(f"{path}, line {line}: has {many}; expected 3 ({', '.join(COLUMNS)}), so {mend}")


def _bad_score(path, line, at, text):
    return InputError(
        f"{path}, line {line}: field {at + 1} (the score) is {shown(text)}; scores are finite numbers, 0 or "
        "more (leave the line out if there is no score)"
    )


def _refuse_repeats(path, cells, lines, papers, reviewers):
    order = np.argsort(cells, kind="stable")
    ordered = cells[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    if repeats.size:
        at = repeats[np.argmin(order[repeats])]
        paper, reviewer = divmod(int(ordered[at]), len(reviewers))
        raise InputError(
            f"{path}, line {lines[order[at]]}: paper {shown(papers[paper])}, reviewer "
            f"{shown(reviewers[reviewer])} was already scored on line {lines[order[at - 1]]}; "
            "keep one of the two"
        )
