"""The table of match scores that every reader returns and every preparation step takes."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class ScoreTable:
    """Match scores of papers and reviewers, complete and checked; get one from `read_scores`.

    Attributes:
      scores: (papers, reviewers) float64, finite and not negative, as in the file (no rounding or rescaling).
      papers: names of the rows, distinct.
      reviewers: names of the columns, distinct.
      source: the file that the scores were read from.
      notes: one line for each change made since (gaps filled, conflicts zeroed, draws, rescaling), for users
        to see.
    """

    scores: np.ndarray
    papers: tuple[str, ...]
    reviewers: tuple[str, ...]
    source: Path
    notes: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, eq=False)
class RawScores:
    """What a reader found in a file, before the caller's choices on gaps and conflicts are applied.

    Attributes:
      scores: (papers, reviewers) float64; NaN where the file has no score, else finite and not negative.
      papers, reviewers: names of the rows and columns.
      conflicts: (papers, reviewers) bool, True where the file declares a conflict; None if it declares none.
      gap: what a missing score looks like in this format, for messages.
    """

    scores: np.ndarray
    papers: tuple[str, ...]
    reviewers: tuple[str, ...]
    conflicts: np.ndarray | None = None
    gap: str = "no score"


def numbered(kind: str, count: int) -> tuple[str, ...]:
    """Returns the names 'kind 0', 'kind 1', ... for formats that carry no names."""
    return tuple(f"{kind} {i}" for i in range(count))
