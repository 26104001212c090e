"""The owner's choices on what a score alone does not say: gaps, conflicts, and scores below 0."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

import numpy as np

from lagjax.data.prepare import unit_scale
from lagjax.data.table import RawScores, ScoreTable
from lagjax.errors import InputError

CONFLICTS = ("refuse", "zero", "ignore")


@dataclasses.dataclass(frozen=True)
class Choices:
    """What to do with gaps (a number, or None to refuse them), with conflicts, and whether to rescale."""

    fill: float | None
    conflicts: str
    normalise: bool


def chosen(*, missing: str | float, conflicts: str, normalise: bool) -> Choices:
    """Returns the checked choices of `read_scores`.

    Raises:
      InputError: a choice that does not exist, or a fill off the scale of normalised scores.
    """
    if conflicts not in CONFLICTS:
        raise InputError(f"conflicts is {conflicts!r}; give one of {', '.join(CONFLICTS)}")
    fill = _fill_value(missing)
    if fill is not None and normalise and fill > 1:
        raise InputError(
            f"missing is {missing!r}, but it is filled in after normalise, on the scale from 0 to 1; give 0 to 1"
        )
    return Choices(fill, conflicts, normalise)


def _fill_value(missing) -> float | None:
    if missing == "refuse":
        return None
    try:
        value = math.nan if isinstance(missing, bool) else float(missing)
    except (TypeError, ValueError):
        value = math.nan
    if not 0 <= value < math.inf:
        raise InputError(f"missing is {missing!r}; give 'refuse' or a finite number, 0 or more")
    return value


def settle(source: Path, raw: RawScores, choices: Choices) -> ScoreTable:
    """Applies the choices in their order: rescale what is known, score conflicts, fill gaps.

    Raises:
      InputError: something is left that a choice must settle; the one line names all of it, and the options.
    """
    declared = np.zeros(raw.scores.shape, bool) if raw.conflicts is None else raw.conflicts
    zeroed = declared if choices.conflicts == "zero" else np.zeros_like(declared)
    gaps = np.isnan(raw.scores) & ~zeroed
    known = ~gaps & ~zeroed
    _refuse_unsettled(source, raw, choices, declared, gaps, known)
    scores, notes = raw.scores, list(raw.notes)
    if choices.normalise:
        scores, line = unit_scale(scores, scores[known], str(source))
        notes.append(line)
    if declared.any():
        scores = np.where(zeroed, 0.0, scores)
        kept = choices.conflicts == "ignore"
        what = "ignored: their scores are kept" if kept else "scored 0: the last choice, not a ban"
        notes.append(f"{declared.sum()} conflicts {what}")
    if choices.fill is not None and gaps.any():
        scores = np.where(gaps, choices.fill, scores)
        notes.append(f"{gaps.sum()} missing scores ({raw.gap}) set to {choices.fill:g}")
    return ScoreTable(scores, raw.papers, raw.reviewers, source, tuple(notes))


def _refuse_unsettled(source, raw, choices, declared, gaps, known):
    """Names everything that is open, and the options that settle all of it in one go."""
    left = []  # what was found, the first of it, what would settle it, as an argument and as an option
    if declared.any() and choices.conflicts == "refuse":
        mend = "score conflicts 0 ('ignore' keeps their scores)"
        first = f", the first {_pair(raw, declared)}, and no score can forbid a match"
        left.append((f"declares {declared.sum()} conflicts", first, mend, "conflicts='zero'", "--conflicts zero"))
    negative = known & (raw.scores < 0)
    if negative.any() and not choices.normalise:
        low, high = raw.scores[known].min(), raw.scores[known].max()
        found = f"{negative.sum()} of {known.sum()} scores are negative (first: {_place(raw, negative)})"
        first = f", the first {raw.scores[negative][0]:g} of {_pair(raw, negative)}"
        if low == high:
            raise InputError(f"{source}: {found}{first}; all are {low:g}, so give scores of 0 or more")
        left.append((found, first, f"rescale [{low:g}, {high:g}] to [0, 1]", "normalise=True", "--normalise"))
    if gaps.any() and choices.fill is None:
        found = f"{gaps.sum()} of {gaps.size} scores are missing ({raw.gap})"
        place = f" ({_place(raw, gaps)})" if _place(raw, gaps) else ""
        left.append(
            (found, f", the first {_pair(raw, gaps)}{place}", "score missing ones 0", "missing=0", "--missing 0")
        )
    if left:
        founds, firsts, mends, arguments, options = zip(*left, strict=True)
        found = founds[0] + firsts[0] if len(left) == 1 else ", ".join(founds)
        raise InputError(
            f"{source}: {found}; pass {', '.join(arguments)} (`{' '.join(options)}`) to {' and '.join(mends)}"
        )


def _pair(raw, where):
    paper, reviewer = np.argwhere(where)[0]
    return f"paper {raw.papers[paper]!r}, reviewer {raw.reviewers[reviewer]!r}"


def _place(raw, where):
    return raw.place(*map(int, np.argwhere(where)[0]))
