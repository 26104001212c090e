"""What was computed lately, as far as it fits: programs are solved once though many places ask for them."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TypeVar

import numpy as np

_Value = TypeVar("_Value")


class Memo:
    """The values used last, up to a number of bytes: `functools.lru_cache` counts entries, of 200 bytes to 48 MB here."""

    def __init__(self, most_bytes: int) -> None:
        self._kept: OrderedDict = OrderedDict()
        self._room = most_bytes

    def get(self, key: Hashable, compute: Callable[[], _Value], size: Callable[[_Value], int]) -> _Value:
        """The value kept under a key, or computed; `size` tells its bytes."""
        if key in self._kept:
            self._kept.move_to_end(key)
            return self._kept[key][0]
        value = compute()
        self._kept[key] = value, size(value)
        self._room -= size(value)
        while self._room < 0 and len(self._kept) > 1:
            self._room += self._kept.popitem(last=False)[1][1]
        return value


def fingerprint(*parts: object) -> bytes:
    """A digest of arrays and plain values."""
    found = hashlib.blake2b(digest_size=16)
    for part in parts:
        if isinstance(part, np.ndarray):
            found.update(f"{part.shape}{part.dtype}".encode())
            found.update(np.ascontiguousarray(part).data)
        else:
            found.update(repr(part).encode())
    return found.digest()
