"""Cutting a table of scores down and rescaling it.

The paper (section 5.2) normalises the match scores to [0, 1] and subsamples them:
`subsample(read_scores(path, normalise=True), ...)`. The other order rescales the sample alone, so that every sample reaches 0
and 1. Each function works on the table that it is given.
"""

from __future__ import annotations

import dataclasses
import math
import operator

import numpy as np

from lagjax.data.table import ScoreTable
from lagjax.errors import InputError


def subsample(table: ScoreTable, papers: int | None = None, reviewers: int | None = None, seed: int = 0) -> ScoreTable:
    """Draws papers and reviewers uniformly without replacement, keeping the order of the file.

    Papers and reviewers have streams of their own, named and derived from the seed: the papers drawn do not depend on how many
    reviewers are drawn, nor the other way round. With one seed, a smaller draw is part of a larger one.

    Args:
      table: what to draw from.
      papers, reviewers: how many to draw, between 1 and all; None keeps all.
      seed: whole number, 0 or more.

    Raises:
      InputError: a number that cannot be drawn, or a bad seed.
    """
    start = whole("seed", seed, least=0)
    rows = _drawn(table, "papers", len(table.papers), papers, start)
    columns = _drawn(table, "reviewers", len(table.reviewers), reviewers, start)
    notes = []
    if papers is not None:
        notes.append(f"{len(rows)} of {len(table.papers)} papers drawn with seed {start}")
    if reviewers is not None:
        notes.append(f"{len(columns)} of {len(table.reviewers)} reviewers drawn with seed {start}")
    return dataclasses.replace(
        table, scores=table.scores[np.ix_(rows, columns)], papers=tuple(table.papers[i] for i in rows),
        reviewers=tuple(table.reviewers[i] for i in columns), notes=(*table.notes, *notes),
    )  # fmt: skip


def normalise(table: ScoreTable) -> ScoreTable:
    """Returns the table with its scores rescaled linearly to reach from 0 to 1 (min-max over this table).

    Every score of the table takes part, filled gaps and conflicts scored 0 too, for a table no longer tells
    them apart; `read_scores(..., normalise=True)` rescales the known scores and fills the rest afterwards.

    Raises:
      InputError: all scores are equal, so that no rescaling exists.
    """
    scores, line = unit_scale(table.scores, table.scores, str(table.source))
    return dataclasses.replace(table, scores=scores, notes=(*table.notes, line))


def unit_scale(scores: np.ndarray, known: np.ndarray, source: str) -> tuple[np.ndarray, str]:
    """Returns the scores rescaled linearly so that the `known` ones reach from 0 to 1, and a line that says so.

    Raises:
      InputError: the known scores are all equal, there are none, or their spread is no finite number.
    """
    if not known.size:
        raise InputError(f"{source}: no score is known, so no scale to [0, 1] exists")
    low, high = float(known.min()), float(known.max())
    if low == high:
        raise InputError(f"{source}: all scores are {low:g}, so no scale to [0, 1] exists; keep them so")
    if math.isinf(high - low):
        raise InputError(f"{source}: scores from {low:g} to {high:g} are too far apart to rescale; divide them first")
    return (scores - low) / (high - low), f"scores rescaled from [{low:g}, {high:g}] to [0, 1]"


def _drawn(table, kind, available, wanted, seed):
    if wanted is None:
        return np.arange(available)
    count = whole(kind, wanted, least=1)
    if count > available:
        raise InputError(
            f"{table.source}: cannot draw {count} {kind}, it has {available}; ask for {available} or fewer"
        )
    stream = np.random.SeedSequence(seed, spawn_key=tuple(kind.encode()))
    ranks = np.random.Generator(np.random.PCG64(stream)).random(available)
    return np.sort(np.argsort(ranks, kind="stable")[:count])


def whole(field: str, value, least: int) -> int:
    """Returns `value` as an int.

    Raises:
      InputError: it is no whole number, or below `least`.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = least - 1
    if number < least or isinstance(value, bool):
        raise InputError(f"{field} is {value!r}; give a whole number, {least} or more")
    return number
