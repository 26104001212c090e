"""Strings that users give: names, which go into files and pictures, and paths, in which ~ is a home."""

from __future__ import annotations

import os
from pathlib import Path

from lagjax.errors import InputError

LONGEST_NAME = 100


def printable(field: str, name: str) -> str:
    """Returns a name that every file and picture can hold.

    Raises:
      InputError: it has line breaks, control characters or bytes that are no text, or more than 100 characters.
    """
    if any(0xD800 <= ord(letter) < 0xE000 for letter in name):
        raise InputError(f"{field} has the name {name!r}, which is no text in UTF-8; rename the file, or give a name")
    if not name.isprintable():
        raise InputError(f"{field} has the name {name!r}; names hold no line breaks, tabs or control characters")
    if len(name) > LONGEST_NAME:
        raise InputError(f"{field} has a name of {len(name)} characters ({name[:20]}...); use at most {LONGEST_NAME}")
    return name


def expanded(path: str | os.PathLike[str]) -> Path:
    """Returns a path as given, with a leading ~ or ~NAME in place of a home.

    Raises:
      InputError: there is no such user, or no home.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise InputError(f"{path}: there is no such home; write the path out, or ./~ for a file of that name") from None
