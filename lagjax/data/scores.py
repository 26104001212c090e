"""Reading a file of match scores, whatever its format, into one complete table."""

from __future__ import annotations

import math
import os

import numpy as np

from lagjax.data.files import existing_file
from lagjax.data.score_arrays import ORIENTATIONS, read_npy, read_npz
from lagjax.data.score_csv import read_csv
from lagjax.data.score_text import read_text
from lagjax.data.table import RawScores, ScoreTable
from lagjax.errors import InputError

CONFLICTS = ("refuse", "zero", "ignore")


def read_scores(
    path: str | os.PathLike[str],
    *,
    orientation: str | None = None,
    missing: str | float = "refuse",
    conflicts: str = "refuse",
) -> ScoreTable:
    """Reads match scores of papers and reviewers; the ending of the name says the format.

    | ending | layout | rows are |
    |---|---|---|
    | .csv | `paper,reviewer,score` lines, header optional | named by the ids |
    | .npy | one 2-d matrix | what `orientation` says; refused without it |
    | .npz | `similarity_matrix` (-1 = empty document), `mask_matrix` (1 = conflict) | reviewers, or stated |
    | .in | a line 'papers reviewers', then one row per paper | papers |

    Scores are kept exactly as in the file. Nothing is changed silently: what a choice below changed is in the
    `notes` of the result.

    Args:
      path: the file.
      orientation: 'papers-by-reviewers' or 'reviewers-by-papers', for matrices.
      missing: what to do with a pair that has no score (no csv line, or -1 in an .npz): 'refuse', or a
        number, 0 or more, to score it.
      conflicts: what to do with a pair that the file declares a conflict. No score forbids a match: a policy
        that always uses free servers makes a pair scored 0 its last choice, and takes it when nothing else
        is free. So the default is to 'refuse' a file that declares conflicts; 'zero' scores them 0, which is
        NOT a ban; 'ignore' keeps their scores. A conflict scored 0 does not count as missing.

    Returns:
      A `ScoreTable` with scores (papers, reviewers).

    Raises:
      InputError: a file or an option that cannot be used; the line names the file, the place, what was found
        there and how to mend it.
    """
    if orientation is not None and orientation not in ORIENTATIONS:
        raise InputError(f"orientation is {orientation!r}; give '{ORIENTATIONS[0]}' or '{ORIENTATIONS[1]}'")
    if conflicts not in CONFLICTS:
        raise InputError(f"conflicts is {conflicts!r}; give one of {', '.join(CONFLICTS)}")
    fill = _fill_value(missing)
    source = existing_file(path)
    raw = _read_raw(source, orientation)
    scores, notes = raw.scores, []
    if raw.conflicts is not None and raw.conflicts.any():
        scores, note = _settle_conflicts(source, raw, conflicts)
        notes.append(note)
    gaps = np.isnan(scores)
    if gaps.any():
        if fill is None:
            raise _missing_pairs(source, raw, gaps)
        scores = np.where(gaps, fill, scores)
        notes.append(f"{gaps.sum()} missing scores ({raw.gap}) set to {fill:g}")
    return ScoreTable(scores, raw.papers, raw.reviewers, source, tuple(notes))


def _read_raw(path, orientation) -> RawScores:
    match path.suffix.lower():
        case ".npy":
            return read_npy(path, orientation)
        case ".npz":
            return read_npz(path, orientation)
        case ".csv" | ".in" as suffix:
            if orientation == ORIENTATIONS[1]:
                raise InputError(
                    f"{path}: orientation is '{orientation}', but a {suffix} file says itself which are the "
                    "papers; leave orientation out, or mend the file"
                )
            return read_csv(path) if suffix == ".csv" else read_text(path)
        case suffix:
            raise InputError(f"{path}: cannot tell its format by {suffix!r}; name it .csv, .npy, .npz or .in")


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


def _settle_conflicts(path, raw, choice):
    many = int(raw.conflicts.sum())
    if choice == "refuse":
        raise InputError(
            f"{path}: declares {many} conflicts, the first {_pair(raw, raw.conflicts)}, and no score can "
            "forbid a match; pass conflicts='zero' (`--conflicts zero`) to score them 0, or 'ignore' to keep "
            "their scores"
        )
    if choice == "ignore":
        return raw.scores, f"{many} conflicts ignored: their scores are kept"
    return np.where(raw.conflicts, 0.0, raw.scores), f"{many} conflicts scored 0: the last choice, not a ban"


def _missing_pairs(path, raw, gaps):
    return InputError(
        f"{path}: {int(gaps.sum())} of {gaps.size} scores are missing ({raw.gap}), the first "
        f"{_pair(raw, gaps)}; add them, or pass missing=0 (`--missing 0`) to score them 0"
    )


def _pair(raw, where):
    paper, reviewer = np.argwhere(where)[0]
    return f"paper {raw.papers[paper]!r}, reviewer {raw.reviewers[reviewer]!r}"
