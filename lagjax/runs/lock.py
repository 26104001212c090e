"""One driver to a folder: a lock that the system drops when its process ends, however it ends.

Not filelock: before version 4 a try that fails empties the file (measured with 3.20), and so loses who holds it; and where a file
system has no locks it falls back to a file that a killed process leaves behind, which then locks everybody out.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from lagjax.errors import InputError


@contextmanager
def only_driver(path: Path) -> Iterator[None]:
    """Holds the lock file while inside. No clock and no process number decides who may enter, so none can be stale.

    Raises:
      InputError: another process holds it, or it cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); choose a writable folder with --out") from None
    try:
        if not _take(handle):
            held = os.pread(handle, 200, 0).decode(errors="replace") if hasattr(os, "pread") else ""
            raise InputError(
                f"{path.parent.parent}: another lagjax writes here ({held or 'unknown'}); wait for it, or name another "
                "folder with --out"
            )
        os.truncate(handle, 0)
        os.write(handle, f"process {os.getpid()} on {socket.gethostname()}".encode())
        yield
    finally:
        os.close(handle)  # which drops the lock


def _take(handle):
    if os.name == "nt":
        import msvcrt

        try:
            msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        except OSError:
            return False
        return True
    import fcntl

    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
