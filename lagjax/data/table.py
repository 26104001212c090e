"""The table of match scores that every reader returns and every preparation step takes."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np

from lagjax.text import UNKNOWN, Reading


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreTable:
    """Match scores of papers and reviewers, complete and checked; get one from `read_scores`.

    Attributes:
      scores: (papers, reviewers) float64, finite and not negative, as in the file unless `notes` says otherwise.
      papers: names of the rows, distinct.
      reviewers: names of the columns, distinct.
      source: the file that the scores were read from.
      notes: one line for each thing that users should see: how the file was read if not the plainest way, and
        each change made since (gaps filled, conflicts zeroed, draws, rescaling).
    """

    scores: np.ndarray
    papers: tuple[str, ...]
    reviewers: tuple[str, ...]
    source: Path
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class RawScores:
    """What a reader found in a file, before the caller's choices on gaps, signs and conflicts are applied.

    Attributes:
      scores: (papers, reviewers) float64; NaN where the file has no score, else finite and of any sign.
      papers, reviewers: names of the rows and columns.
      place: from a row and a column of `scores` to where the file has it, for messages ('line 3'); '' where the file has nothing.
      conflicts: (papers, reviewers) bool, True where the file declares a conflict; None if it declares none.
      gap: what a missing score looks like in this file, for messages.
      notes: how the file was read, if not the plainest way.
    """

    scores: np.ndarray
    papers: tuple[str, ...]
    reviewers: tuple[str, ...]
    place: Callable[[int, int], str]
    conflicts: np.ndarray | None = None
    gap: str = "no score"
    notes: tuple[str, ...] = ()


def numbered(kind: str, count: int) -> tuple[str, ...]:
    """Returns the names 'kind 0', 'kind 1', ... for formats that carry no names."""
    return tuple(f"{kind} {i}" for i in range(count))


def score_in(text: str, reading: Reading) -> float:
    """Returns the score that a field holds, of any sign; NaN where it says that none is known (empty, nan, NA, ...).

    Raises:
      ValueError: anything else, infinity included.
    """
    try:
        score = reading.number(text)
    except ValueError:
        if text.strip().lower() in UNKNOWN:
            return math.nan
        raise
    if math.isinf(score):
        raise ValueError(text)
    return score
