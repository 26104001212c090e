"""Reading a file of match scores, whatever its format, into one complete table."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from lagjax.data.choices import chosen, settle
from lagjax.data.score_arrays import ORIENTATIONS, read_npy, read_npz
from lagjax.data.score_csv import read_csv
from lagjax.data.score_text import read_text
from lagjax.data.table import RawScores, ScoreTable
from lagjax.errors import InputError
from lagjax.text import existing_file

READERS: dict[str, Callable[[Path], RawScores]] = {
    ".csv": read_csv, ".tsv": read_csv, ".txt": read_csv, ".in": read_text,
}  # fmt: skip
MATRICES = {".npy": read_npy, ".npz": read_npz}  # which do not say, or not always, whether their rows are papers


def read_scores(
    path: str | os.PathLike[str], *, orientation: str | None = None, missing: str | float = "refuse",
    conflicts: str = "refuse", normalise: bool = False,
) -> ScoreTable:  # fmt: skip
    """Reads match scores of papers and reviewers; the ending of the name says the format.

    | ending | layout | rows are |
    |---|---|---|
    | .csv, .tsv, .txt | `paper,reviewer,score` lines, header optional, or a table with names | named by the ids |
    | .npy | one 2-d matrix | what `orientation` says; refused without it |
    | .npz | `similarity_matrix` (-1 = empty document), `mask_matrix` (1 = conflict) | reviewers, or stated |
    | .in | a line 'papers reviewers', then one row per paper | papers |

    Text may have commas, semicolons or tabs between fields (blanks in .in), decimal commas where the separator
    is no comma, and comments after #; see `lagjax.text.read_delimited`. Scores are kept exactly as in the
    file. Nothing is changed silently: what a choice below changed is in the `notes` of the result.

    The choices apply in this order, whatever the format: known scores are rescaled (`normalise`), conflicts are
    scored (`conflicts`), the rest is filled (`missing`). So neither a filled gap nor a conflict scored 0 moves the
    scale, and both keep the number asked for. Scores below 0 that remain are refused.

    Args:
      path: the file.
      orientation: 'papers-by-reviewers' or 'reviewers-by-papers', for matrices.
      missing: what to do with a pair that has no score (no line, an empty field, nan, or -1 in an .npz): 'refuse',
        or a number, 0 or more, to score it; with `normalise` a number from 0 to 1.
      conflicts: what to do with a pair that the file declares a conflict. No score forbids a match: a policy
        that always uses free servers makes a pair scored 0 its last choice, and takes it when nothing else
        is free. So the default is to 'refuse' a file that declares conflicts; 'zero' scores them 0, which is
        NOT a ban; 'ignore' keeps their scores. A conflict scored 0 does not count as missing.
      normalise: whether to rescale the known scores linearly to reach from 0 to 1, which takes any finite
        scores, negative ones too. Conflicts take part only with 'ignore'.

    Returns:
      A `ScoreTable` with scores (papers, reviewers).

    Raises:
      InputError: a file or an option that cannot be used; the line names the file, the place, what was found
        there and how to mend it.
    """
    if orientation is not None and orientation not in ORIENTATIONS:
        raise InputError(f"orientation is {orientation!r}; give '{ORIENTATIONS[0]}' or '{ORIENTATIONS[1]}'")
    choices = chosen(missing=missing, conflicts=conflicts, normalise=normalise)
    source = existing_file(path)
    return settle(source, _read_raw(source, orientation), choices)


def _read_raw(path: Path, orientation: str | None) -> RawScores:
    suffix = path.suffix.lower()
    if suffix in MATRICES:
        return MATRICES[suffix](path, orientation)
    if suffix not in READERS:
        raise InputError(f"{path}: cannot tell its format by {suffix!r}; name it .csv, .tsv, .npy, .npz or .in")
    if orientation == ORIENTATIONS[1]:
        raise InputError(
            f"{path}: orientation is '{orientation}', but a {suffix} file says itself which are the papers; leave "
            "orientation out, or mend the file"
        )
    return READERS[suffix](path)
