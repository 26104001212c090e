"""Batches that fit: a budget in bytes, stated or measured, and half the batch when memory runs out all the same."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from lagjax.errors import InputError

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
SHARE = 0.5  # of what is free, by default: the host holds results too, and others may run


def parse_bytes(text: str) -> int:
    """Reads "4GiB", "500 MB" or "2g".

    Raises:
      InputError: the text is no such size.
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?\s*", text.lower())
    if found is None or found[2] not in _UNITS or float(found[1]) == 0:
        raise InputError(f"--memory '{text}' is no size; write 4GiB or 500MB")
    return int(float(found[1]) * _UNITS[found[2]])


def free_bytes(devices) -> int | None:
    """Memory that may be used on all of these JAX devices together, measured; None where nothing says."""
    with suppress(Exception):  # not every platform tells
        stats = [device.memory_stats() for device in devices]
        if all(stats):
            return int(SHARE * sum(s["bytes_limit"] - s["bytes_in_use"] for s in stats))
    free = [value for value in (_available(), _container()) if value is not None]
    return int(SHARE * min(free)) if free else None


def _available():
    with suppress(OSError, ValueError):
        found = re.search(r"^MemAvailable:\s+([0-9]+) kB", Path("/proc/meminfo").read_text(), re.MULTILINE)
        return int(found[1]) * 1024 if found else None
    with suppress(OSError, ValueError, AttributeError):
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return None


def _container():
    with suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text())
        return max(0, limit - int(Path("/sys/fs/cgroup/memory.current").read_text()))
    return None


def out_of_memory(error: Exception) -> bool:
    """Whether an error says that an array found no room."""
    return isinstance(error, MemoryError) or (isinstance(error, RuntimeError) and "RESOURCE_EXHAUSTED" in str(error))


def pieces(
    first: int, last: int, most: int, run: Callable[[int, int], object], group: int = 1, opening: int = 0
) -> Iterator[object]:
    """Yields run(start, count) for consecutive pieces of the range, with at most `most` in one.

    Pieces are multiples of `group` where they can be, and the first one has `opening`, if that is given. After an out-of-memory
    error the piece is half as large, and so are those after it.

    Raises:
      MemoryError: a single one found no room.
    """
    most, start = max(1, most), first
    while start < last:
        count = opening or min(most, last - start)
        if not opening and group < count < last - start:
            count -= count % group
        opening = 0
        try:
            done = run(start, count)
        except Exception as error:
            if not out_of_memory(error):
                raise
            if count == 1:
                raise MemoryError(f"not even one replica fits ({str(error)[:200]})") from error
            most = (count + 1) // 2
            continue
        yield done
        start += count
