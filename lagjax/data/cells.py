"""From scored pairs in any order to a table of scores."""

from __future__ import annotations

import math
from array import array
from pathlib import Path
from typing import NamedTuple

import numpy as np

from lagjax.data.table import RawScores
from lagjax.errors import InputError
from lagjax.text import shown

MAX_CELLS = 200_000_000


class Cells(NamedTuple):
    """Scored pairs as a file has them, one entry a pair.

    Attributes:
      papers, reviewers: names, in the order of their first appearance.
      paper, reviewer: int codes of the pair's names.
      lines: line of the file on which the pair stands.
      scores: NaN where the pair is there but its score is unknown.
      notes: what a user should know of how the pairs were found.
    """

    papers: tuple[str, ...]
    reviewers: tuple[str, ...]
    paper: array
    reviewer: array
    lines: array
    scores: array
    notes: tuple[str, ...] = ()


def as_table(path: Path, cells: Cells, notes: tuple[str, ...]) -> RawScores:
    """Returns the table of the pairs, NaN for those that have no score.

    Raises:
      InputError: a pair that comes twice, or more than 200 million papers times reviewers.
    """
    shape = len(cells.papers), len(cells.reviewers)
    if math.prod(shape) > MAX_CELLS:
        raise InputError(
            f"{path}: {shape[0]} papers x {shape[1]} reviewers make {math.prod(shape)} pairs (it has "
            f"{len(cells.scores)} scores); at most {MAX_CELLS} are read, so cut the file down"
        )
    at = np.frombuffer(cells.paper, dtype=np.intc).astype(np.int64) * shape[1]
    at += np.frombuffer(cells.reviewer, dtype=np.intc)
    _refuse_repeats(path, at, cells)
    scores = np.frombuffer(cells.scores, dtype=np.float64)
    table = np.full(shape, np.nan)
    table.ravel()[at] = scores

    def place(paper, reviewer):
        found = np.flatnonzero(at == paper * shape[1] + reviewer)
        return f"line {cells.lines[found[0]]}" if found.size else ""

    return RawScores(
        table, cells.papers, cells.reviewers, place, gap=_gap(cells, scores, table.size), notes=notes + cells.notes
    )


def _gap(cells, scores, pairs):
    unknown = np.flatnonzero(np.isnan(scores))
    if not unknown.size:
        return "no line"
    blank = f"no number, the first on line {cells.lines[unknown[0]]}"
    return blank if len(scores) == pairs else f"{unknown.size} with {blank}; {pairs - len(scores)} with no line"


def _refuse_repeats(path, at, cells):
    order = np.argsort(at, kind="stable")
    ordered = at[order]
    repeats = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    if repeats.size:
        again = repeats[np.argmin(order[repeats])]
        paper, reviewer = divmod(int(ordered[again]), len(cells.reviewers))
        raise InputError(
            f"{path}, line {cells.lines[order[again]]}: paper {shown(cells.papers[paper])}, reviewer "
            f"{shown(cells.reviewers[reviewer])} was already scored on line {cells.lines[order[again - 1]]}; "
            "keep one of the two"
        )
