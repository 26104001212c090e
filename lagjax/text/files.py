"""Opening people's text files: every fault becomes one `InputError` line naming the file and the place in it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

from lagjax.errors import InputError
from lagjax.given import expanded

_SHOWN = 40


def existing_file(path: str | os.PathLike[str]) -> Path:
    """Returns `path` as a `Path`, ~ expanded.

    Raises:
      InputError: nothing is there, or it is a directory.
    """
    path = expanded(path)
    if not os.path.exists(path):  # False, too, for what is behind a closed folder
        raise InputError(f"{path}: no such file; check the path")
    if path.is_dir():
        raise InputError(f"{path}: is a directory; give the file inside it")
    return path


def shown(text: str) -> str:
    """Returns text found in a file, quoted on one line and cut to a readable length."""
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "...")


@dataclasses.dataclass(frozen=True)
class Content:
    """A text file that can be opened again and again, a pipe included; get one from `content_of`.

    Attributes:
      path: its name, for messages.
      encoding: the codec that its byte-order mark names; UTF-8 without one.
      separator: what a first line `sep=;`, as spreadsheets write it, names; None without such a line.
      held: all its bytes, where it can be read only once; None for a file.
    """

    path: Path
    encoding: str
    separator: str | None
    held: bytes | None

    @contextlib.contextmanager
    def opened(self) -> Iterator[TextIO]:
        """Opens the text with its line ends as they are.

        Raises:
          InputError: bytes that are no text; the line is named.
        """
        with self._bytes() as raw, io.TextIOWrapper(raw, encoding=self.encoding, newline="") as file:
            try:
                yield file
            except UnicodeDecodeError:
                raise self._undecodable() from None

    def has_commas(self) -> bool:
        """Whether a comma is in it anywhere; a character that contains the comma's byte may pass for one."""
        with self._bytes() as raw:
            return any(b"," in piece for piece in iter(lambda: raw.read(1 << 20), b""))

    def _bytes(self):
        return self.path.open("rb") if self.held is None else io.BytesIO(self.held)

    def _undecodable(self):
        with self._bytes() as raw:
            data = raw.read()
        line = 1
        try:
            data.decode(self.encoding)
        except UnicodeDecodeError as error:
            line += data[: error.start].decode(self.encoding, errors="ignore").count("\n")
        name = "UTF-16" if self.encoding == "utf-16" else "UTF-8"
        return InputError(f"{self.path}, line {line}: is not {name} text; save the file as UTF-8")


def content_of(path: str | os.PathLike[str]) -> Content:
    """Looks at the start of a text file.

    Raises:
      InputError: no such file, a directory, a closed or a packed file.
    """
    path = existing_file(path)
    try:
        held = None if path.is_file() else path.read_bytes()
        if held is None:
            with open(path, "rb") as file:
                head = file.read(64)
        else:
            head = held[:64]
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror}); check its permissions") from None
    if head.startswith(b"PK\x03\x04"):
        raise InputError(f"{path}: is a packed file, such as a spreadsheet, not text; export it as csv")
    encoding = "utf-16" if head.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig"
    declared = re.match(r"sep=(.)[ \t]*[\r\n]", head[: len(head) // 2 * 2].decode(encoding, errors="ignore"))
    return Content(path, encoding, declared[1] if declared else None, held)
