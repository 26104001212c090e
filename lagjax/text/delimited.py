"""Finding out how a delimited file is meant: the one reading under which its whole content makes sense."""

from __future__ import annotations

import contextlib
import csv
import itertools
import os
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from lagjax.errors import InputError
from lagjax.text.files import Content, content_of, shown
from lagjax.text.reading import WITH_COMMAS, Comments, Reading, Row, rows_of, split

T = TypeVar("T")
_SAMPLE = 200
_CUT = re.compile(r"[;\t] *[-+]?[0-9.]*$")


def read_delimited(
    path: str | os.PathLike[str], parse: Callable[[Iterator[Row], Reading], T],
    readings: tuple[Reading, ...] = WITH_COMMAS, *, width: int | None = None, trailing_comments: bool = False,
) -> tuple[T, tuple[str, ...]]:  # fmt: skip
    """Reads a file under the one reading that its own parser accepts.

    Every reading is tried on the first rows, and those that pass on the whole file. If two pass with different
    content the file is refused and both are named; if none passes, the fault shown is that of the reading that
    splits most rows alike. Commas that would split every row between digits behind a semicolon or tab (a;0,8)
    separate nothing. A first line `sep=;` leaves only that separator, and in a file named .tsv tabs go before all
    others. Blank lines hold nothing; a line that begins with # is a comment, unless it would do as data.

    Args:
      path: a file or a pipe; UTF-8, or UTF-16 with a byte-order mark.
      parse: from rows (line, fields) and the reading to the content; raises InputError naming the line that it cannot take, and
        takes the first rows of every file that it takes. Contents are compared by `==`, arrays by their bytes.
      readings: what may be tried, the plainest first.
      width: how many fields a row has, where the layout says so.
      trailing_comments: whether a # anywhere ends its line, for files in which no field can hold one.

    Returns:
      The content, and no or one line that says how it was read if that is not the plainest way.

    Raises:
      InputError: the file cannot be read, or in two ways; the line names the file, the line and the way out.
    """
    content = content_of(path)
    found = _Tried(content, parse, trailing_comments)
    groups = _groups(content, readings)
    passed = next(filter(None, map(found.passing, groups)), None)
    if passed is None:
        sensible = [reading for group in groups for reading in group if not found.cuts_numbers(reading)]
        passed = [max(sensible, key=lambda reading: _agreement(found.rows(reading), reading, width))]
    whole = {reading: found.attempt(reading) for reading in passed}
    good = {reading: kept for reading, kept in whole.items() if not isinstance(kept, InputError)}
    if not good:
        raise next(fault for fault in whole.values() if isinstance(fault, InputError))
    unlike = _unlike(good)
    if len(unlike) > 1:
        raise _two_ways(content, {reading: found.rows(reading, None) for reading in unlike})
    reading = unlike[0]
    value, comments = good[reading]
    start = found.rows(reading, 1)
    _refuse_data_in_comments(content, reading, parse, start, comments)
    return value, _note(content, reading, groups[0][0], bool(start) and len(start[0][1]) > 1, comments)


class _Tried(Generic[T]):
    """What a file gives under one reading or another."""

    def __init__(self, content: Content, parse: Callable[[Iterator[Row], Reading], T], trailing: bool):
        self._content, self._parse, self._trailing = content, parse, trailing

    def passing(self, readings: Sequence[Reading]) -> list[Reading]:
        """Returns the readings under which the parser takes the first rows."""
        return [
            reading
            for reading in readings
            if not self.cuts_numbers(reading) and not isinstance(self.attempt(reading, _SAMPLE), InputError)
        ]

    def cuts_numbers(self, reading: Reading) -> bool:
        """Whether commas split every row between digits, behind a semicolon or tab: a;0,8 is not a;0 and 8."""
        if reading.delimiter != "," or self._content.separator == ",":
            return False
        rows = self.rows(reading)
        return bool(rows) and all(
            any(_CUT.search(one) and other[:1].isdecimal() for one, other in itertools.pairwise(fields))
            for _, fields in rows
        )

    def attempt(self, reading: Reading, limit: int | None = None) -> tuple[T, Comments] | InputError:
        """Returns what the parser makes of the first `limit` rows and the comments among them, or its fault."""
        comments = Comments()
        rows = rows_of(self._content, reading, comments, trailing=self._trailing)
        try:
            return self._parse(itertools.islice(rows, limit), reading), comments
        except InputError as fault:
            if comments and not self.rows(reading, 1):
                return InputError(
                    f"{self._content.path}, line {comments[0][0]}: begins with #, as a comment does, and all other lines do "
                    "too; put first fields that begin so in quotes"
                )
            return fault

    def rows(self, reading: Reading, limit: int | None = _SAMPLE) -> list[Row]:
        """Returns the first rows, up to a fault in them."""
        found = []
        with contextlib.suppress(InputError):
            for row in itertools.islice(rows_of(self._content, reading, Comments(), trailing=self._trailing), limit):
                found.append(row)
        return found


def _groups(content, readings):
    """The readings in groups of equal right, the first first; a declared separator leaves only its own."""
    if not content.has_commas():  # then it does not matter what they mean in numbers
        readings = tuple(reading for reading in readings if not reading.commas)
    declared = content.separator
    if declared is not None:
        left = tuple(reading for reading in readings if reading.delimiter == declared)
        if not left:
            raise InputError(
                f"{content.path}, line 1: sep={shown(declared)} is no separator that is read here; use commas"
            )
        return (left,)
    tabs = tuple(reading for reading in readings if reading.delimiter == "\t")
    if not tabs or content.path.suffix.lower() != ".tsv":
        return (readings,)
    return tabs, tuple(reading for reading in readings if reading not in tabs)


def _agreement(rows, reading, width):
    """How well a reading splits the rows: how many are as wide as they should be, how wide, how many numbers."""
    widths = [len(fields) for _, fields in rows]
    wanted = width or (widths[0] if widths else 1)
    alike = widths.count(wanted)
    numbers = sum(reading.is_number(field) for _, fields in rows for field in fields)
    return alike if wanted > 1 else 0, wanted, alike, numbers


def _unlike(good):
    """The first reading of each content."""
    first: list[Reading] = []
    for reading, (value, _) in good.items():
        if all(_comparable(value) != _comparable(good[other][0]) for other in first):
            first.append(reading)
    return first


def _comparable(value):
    if isinstance(value, tuple):
        return tuple(map(_comparable, value))
    return value.tobytes() if hasattr(value, "tobytes") else value


def _two_ways(content: Content, rows: dict[Reading, list[Row]]) -> InputError:
    """Names the first row that two readings take differently."""
    for each in zip(*rows.values(), strict=False):
        ways: dict[str, str] = {}
        for reading, (_, fields) in zip(rows, each, strict=True):
            seen = " | ".join(f"{reading.number(f):g}" if reading.is_number(f) else shown(f) for f in fields)
            ways.setdefault(seen, reading.describe(len(fields) > 1))
        if len(ways) > 1:
            named = ", or ".join(f"{seen} ({how})" for seen, how in ways.items())
            mend = "write numbers with a decimal point and no other marks"
            if len({reading.delimiter for reading in rows}) > 1:
                mend = f"add a header line that names the columns, or {mend}"
            return InputError(f"{content.path}, line {each[0][0]}: can be read as {named}; {mend}")
    return InputError(f"{content.path}: can be read in several ways; add a header line that names the columns")


def _refuse_data_in_comments(content, reading, parse, start, comments):
    for line, text in comments:
        if text.lstrip()[1:2].strip() and _is_data(parse, reading, start, text):
            raise InputError(
                f"{content.path}, line {line}: begins with # but would do as data; write '# ' and the rest to leave "
                "it out, or put its first field in quotes to keep it"
            )


def _is_data(parse, reading, start, text):
    try:
        fields = next(iter(split([text], reading)))
        parse(iter([*start, (0, fields)]), reading)
    except (InputError, csv.Error, StopIteration):
        return False
    return True


def _note(content, reading, plainest, several, comments):
    said = []
    if content.encoding == "utf-16":
        said.append("as UTF-16")
    how = reading.describe(several)
    if reading.commas or (several and reading.delimiter != plainest.delimiter):
        said.append(how)
    if comments:
        many = "1 comment" if len(comments) == 1 else f"{len(comments)} comments"
        said.append(f"without {many} (line {comments[0][0]}{' on' if len(comments) > 1 else ''})")
    return (f"{content.path} is read {', '.join(said)}",) if said else ()
