"""Files that are whole or absent, whenever the process or the machine stops."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from lagjax.errors import InputError
from lagjax.given import expanded

_MARK = ".unfinished-"
_KEPT = 40  # letters of a name that its unfinished file has too: file systems allow 255 bytes


def write_whole(path, write: Callable[[str], object]) -> None:
    """Calls `write(temporary)` beside `path`, flushes and renames, so that no reader ever sees half a file.

    Raises:
      InputError: the file cannot be written.
    """
    try:
        path = expanded(path).resolve()
        if path.exists() and not path.is_file():  # a device or a pipe is written to, never replaced
            write(path)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(
            prefix=f".{path.name[:_KEPT]}{_MARK}", suffix=path.suffix[-_KEPT:], dir=path.parent
        )
        os.close(handle)
        try:
            write(temporary)
            os.chmod(temporary, 0o644)
            _flush(temporary)
            os.replace(temporary, path)
            _flush(path.parent)
        finally:
            Path(temporary).unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror or error}); choose a writable place") from None


def write_bytes(path, data: bytes) -> None:
    """Writes a whole file; see `write_whole`."""
    write_whole(path, lambda temporary: Path(temporary).write_bytes(data))


def clear_leftovers(folder: Path) -> None:
    """Removes what processes that were killed while writing left behind."""
    for path in folder.glob(f".*{_MARK}*"):
        with suppress(OSError):
            path.unlink()


def _flush(path):
    """Brings a file, or the names in a folder, to the disk."""
    if os.name == "nt" and Path(path).is_dir():
        return  # Windows has no such call
    handle = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
