"""Scores as NumPy files: a bare `.npy` matrix, or an `.npz` with `similarity_matrix` and `mask_matrix`."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np

from lagjax.data.table import RawScores, numbered
from lagjax.errors import InputError

ORIENTATIONS = ("papers-by-reviewers", "reviewers-by-papers")


def read_npy(path: Path, orientation: str | None) -> RawScores:
    """Reads a bare 2-d matrix, whose orientation only the caller can know.

    Raises:
      InputError: no orientation, or not a readable 2-d matrix of numbers (nan where a score is unknown).
    """
    if orientation is None:
        raise InputError(
            f"{path}: a bare matrix does not say whether its rows are papers; pass orientation="
            f"'{ORIENTATIONS[0]}' or '{ORIENTATIONS[1]}' (`--orientation {ORIENTATIONS[0]}`)"
        )
    with _opened(path) as found:
        if not isinstance(found, np.ndarray):
            raise InputError(f"{path}: is an archive of arrays, not one matrix; name it .npz")
        matrix = _checked(path, "the matrix", found)
    _refuse_infinite(path, "matrix", matrix)
    return _oriented("matrix", matrix, None, orientation, gap="nan")


def read_npz(path: Path, orientation: str | None) -> RawScores:
    """Reads `similarity_matrix` and, if it is there, `mask_matrix` (1 = conflict), both reviewers x papers.

    This is the layout of the public `iclr2018.npz` and `preflib*.npz`. A similarity of -1 marks an empty
    document: the score is missing, as nan is. Other keys, such as pickled dictionaries of names, are never opened
    (nothing is ever unpickled), so papers and reviewers are numbered. `orientation` overrides reviewers x
    papers for files made otherwise.

    Raises:
      InputError: no `similarity_matrix`, unreadable or non-numeric arrays, a mask of another shape or with entries other than 0
        and 1, an infinite score, or -1 beside other negative scores, which leaves open whether it marks an empty document.
    """
    with _opened(path) as found:
        if isinstance(found, np.ndarray):
            raise InputError(f"{path}: is one bare array, not an archive; name it .npy")
        if "similarity_matrix" not in found:
            keys = ", ".join(found) or "none"
            raise InputError(f"{path}: has no key 'similarity_matrix' (its keys: {keys}); save the scores under it")
        scores = _checked(path, "similarity_matrix", _member(path, found, "similarity_matrix"))
        mask = None
        if "mask_matrix" in found:
            mask = _checked(path, "mask_matrix", _member(path, found, "mask_matrix"))
    if mask is not None and mask.shape != scores.shape:
        hint = "; it looks transposed" if mask.shape == scores.shape[::-1] else ""
        raise InputError(
            f"{path}: mask_matrix is {mask.shape} but similarity_matrix is {scores.shape}{hint}; give both one shape"
        )
    if mask is not None:
        odd = np.argwhere((mask != 0) & (mask != 1))
        if odd.size:
            raise InputError(
                f"{path}: mask_matrix{_at(odd[0])} is {mask[tuple(odd[0])]:g}; entries are 1 (conflict) or 0"
            )
    _refuse_infinite(path, "similarity_matrix", scores)
    empty = scores == -1
    if empty.any() and ((scores < 0) & ~empty).any():
        raise InputError(
            f"{path}: similarity_matrix{_at(np.argwhere(empty)[0])} is -1, which marks an empty document in this layout or "
            "is a score, as others are negative too; save the unknown ones as nan and the matrix alone as .npy"
        )
    gap = "-1, an empty document" if empty.any() else "nan"
    scores = np.where(empty, np.nan, scores)
    return _oriented("similarity_matrix", scores, mask, orientation or ORIENTATIONS[1], gap)


@contextlib.contextmanager
def _opened(path):
    """Gives what `np.load` finds; the file is opened here because `np.load` leaves a damaged one open."""
    with contextlib.ExitStack() as stack:
        try:
            file = stack.enter_context(open(path, "rb"))
            found = np.load(file, allow_pickle=False)
        except Exception as error:  # damage raises nearly anything, from EOFError to MemoryError
            raise _unreadable(path, "", error) from None
        yield found


def _member(path, archive, key):
    try:
        found = archive[key]
    except Exception as error:
        raise _unreadable(path, f"key '{key}' ", error) from None
    if not isinstance(found, np.ndarray):
        raise _unreadable(path, f"key '{key}' ", ValueError())
    return found


def _unreadable(path, what, error):
    if "Object arrays" in str(error):
        return InputError(f"{path}: {what}holds Python objects, not numbers; save numbers (astype(float))")
    if isinstance(error, PermissionError):
        return InputError(f"{path}: cannot be read ({error.strerror}); check its permissions")
    return InputError(f"{path}: {what}is not readable as {path.suffix} (cut short or damaged?); save it again")


def _checked(path, what, array):
    if array.dtype.kind not in "biuf":
        raise InputError(f"{path}: {what} holds {array.dtype}, not real numbers; save numbers (astype(float))")
    if array.ndim != 2 or array.size == 0:
        raise InputError(f"{path}: {what} has shape {array.shape}; expected 2 non-empty dimensions")
    with np.errstate(over="ignore"):  # what overflows is infinite, and refused as such
        return np.asarray(array, dtype=np.float64)


def _refuse_infinite(path, what, scores):
    bad = np.argwhere(np.isinf(scores))
    if bad.size:
        raise InputError(
            f"{path}: {what}{_at(bad[0])} is {scores[tuple(bad[0])]:g} (one of {len(bad)} such entries); "
            "scores are finite numbers (nan where there is none), so replace them"
        )


def _at(index):
    return f"[{index[0]}, {index[1]}]"


def _oriented(what, scores, mask, orientation, gap):
    turned = orientation == ORIENTATIONS[1]
    if turned:
        scores, mask = scores.T, None if mask is None else mask.T
    scores = np.ascontiguousarray(scores)
    papers, reviewers = scores.shape
    conflicts = None if mask is None else np.ascontiguousarray(mask == 1)

    def place(paper, reviewer):
        return what + _at((reviewer, paper) if turned else (paper, reviewer))

    return RawScores(scores, numbered("paper", papers), numbered("reviewer", reviewers), place, conflicts, gap)
