"""How the characters of a file make rows, fields and numbers."""

from __future__ import annotations

import csv
import dataclasses
import re
from collections.abc import Callable, Iterator

from lagjax.errors import InputError
from lagjax.text.files import Content

UNKNOWN = frozenset({"", "na", "n/a", "nan", "null", "none"})
"""What people write, in any case, where a number is not known."""

_NAMES = {",": "commas", ";": "semicolons", "\t": "tabs", " ": "blanks"}
_GROUPED = re.compile(r"[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?")


@dataclasses.dataclass(frozen=True)
class Reading:
    """One way to read a file.

    Attributes:
      delimiter: what stands between fields: a comma, a semicolon, a tab, or a blank for any run of blanks and tabs.
      commas: what a comma inside a number is: "" (not allowed), "decimal" (0,8 is 0.8, and points are not
        allowed) or "thousands" (1,234.5 is 1234.5).
    """

    delimiter: str
    commas: str = ""

    @property
    def number(self) -> Callable[[str], float]:
        """The function from a field to its number; it raises ValueError where there is none (inf and nan pass)."""
        return _PARSERS[self.commas]

    def is_number(self, text: str) -> bool:
        """Whether a field reads as a number."""
        return _is(self.number, text)

    def could_be_number(self, text: str) -> bool:
        """Whether a field reads as a number here or with commas in numbers meant otherwise."""
        return any(_is(parse, text) for parse in _PARSERS.values())

    def describe(self, several: bool = True) -> str:
        """Says the reading in words; without `several` fields on a line nothing stands between them."""
        parts = [f"{_NAMES[self.delimiter]} between fields"] if several else []
        if self.commas:
            parts.append("decimal commas" if self.commas == "decimal" else "commas between thousands")
        return "with " + " and ".join(parts) if parts else "as it stands"

    def hint(self, text: str) -> str:
        """Returns what to say of a field that is no number here but would be under another decimal mark, or ''."""
        if self.commas == "decimal" and _is(parse_number, text):
            return " (others here have decimal commas)"
        if self.commas != "decimal" and _is(_decimal_comma, text):
            return " (a decimal comma is read where semicolons or tabs stand between fields and no number has a point)"
        return ""


_COMMAS = ("", "decimal", "thousands")
BLANKS = tuple(Reading(" ", commas) for commas in _COMMAS)
"""Every reading of a file whose fields are separated by blanks, the plain one first."""
WITH_COMMAS = (Reading(","), *(Reading(delimiter, commas) for delimiter in ";\t" for commas in _COMMAS))
"""Every reading of a file whose fields are not separated by blanks, the plain one first."""


def parse_number(text: str) -> float:
    """Returns the number that a field holds; ValueError if none (digits joined by '_' are not a number)."""
    if "_" in text:
        raise ValueError(text)
    return float(text)


def _decimal_comma(text):
    whole, comma, after = text.partition(",")
    if "." in text or (comma and not after[:1].isdecimal()):
        raise ValueError(text)
    return parse_number(f"{whole}.{after}" if comma else text)


def _grouped(text):
    return parse_number(text.replace(",", "") if _GROUPED.fullmatch(text.strip()) else text)


def _is(parse, text):
    try:
        parse(text)
    except ValueError:
        return False
    return True


_PARSERS = {"": parse_number, "decimal": _decimal_comma, "thousands": _grouped}


Row = tuple[int, list[str]]
"""The line on which a row starts, counted from 1, and its fields."""


class Comments(list[tuple[int, str]]):
    """The lines that were left out as comments: number and text."""


def rows_of(content: Content, reading: Reading, comments: Comments, *, trailing: bool = False) -> Iterator[Row]:
    """Yields every row that is not blank; a line that begins with # is a comment and goes to `comments`.

    A # inside a quoted field begins no comment, and with `trailing` a # anywhere else ends its line.

    Raises:
      InputError: bytes that are no text, or quotes that do not close; the line is named.
    """
    with content.opened() as file:
        lines = _Lines(content, file, comments, trailing)
        try:
            for row in split(lines, reading):
                if len(row) > 1 or (row and row[0].strip()):
                    yield lines.start, row
                lines.start = 0
        except csv.Error as error:
            where = f"{content.path}, line {lines.start}"
            raise InputError(f"{where}: is not well-formed csv ({error}); check its quotes") from None


def split(lines, reading: Reading) -> Iterator[list[str]]:
    """Yields the fields of each row; only quoted fields reach over several lines."""
    if reading.delimiter == " ":
        return (text.split() for text in lines)
    return csv.reader(lines, delimiter=reading.delimiter, strict=True, skipinitialspace=True)


class _Lines:
    """The lines that make rows; `start` is the line on which the row at hand began, 0 between rows."""

    def __init__(self, content, file, comments, trailing):
        self._content, self._file, self._comments, self._trailing = content, file, comments, trailing
        self._number, self.start = 0, 0

    def __iter__(self):
        return self

    def __next__(self):
        for text in self._file:
            self._number += 1
            if "\0" in text:
                raise InputError(
                    f"{self._content.path}, line {self._number}: holds NUL characters, as UTF-16 without a byte-order "
                    "mark does; save the file as UTF-8"
                )
            if self.start == 0:
                if text.lstrip().startswith("#"):
                    self._comments.append((self._number, text))
                    continue
                if self._number == 1 and self._content.separator is not None:
                    continue
                self.start = self._number
            return text.split("#")[0] if self._trailing else text
        raise StopIteration
