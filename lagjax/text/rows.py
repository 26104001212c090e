"""From the lines of a file to rows of fields, under one reading."""

from __future__ import annotations

import csv
from collections.abc import Iterator

from lagjax.errors import InputError
from lagjax.text.files import Content
from lagjax.text.reading import Reading

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
