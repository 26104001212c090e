"""A record: plain values and arrays as bytes, with a checksum; what was cut or altered is never read as data."""

from __future__ import annotations

import hashlib
import json
from typing import NamedTuple

import numpy as np

_MAGIC = b"lagjax record 2\n"
_DIGEST = 64  # hexadecimal digits of SHA-256


class Damaged(ValueError):
    """Bytes that are no whole record."""


class Record(NamedTuple):
    """Attributes:
    head: plain values, as JSON has them.
    arrays: by name, numbers of any kind.
    """

    head: dict
    arrays: dict[str, np.ndarray]


def pack(record: Record) -> bytes:
    """Returns the record as bytes; equal records, in equal order, give equal bytes."""
    arrays = {name: np.ascontiguousarray(array) for name, array in record.arrays.items()}
    layout = [[name, array.dtype.str, list(np.shape(record.arrays[name]))] for name, array in arrays.items()]
    head = json.dumps([record.head, layout], allow_nan=False).encode() + b"\n"
    body = b"".join([head, *(array.tobytes() for array in arrays.values())])
    return _MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body


def unpack(data: bytes) -> Record:
    """Reads what `pack` made.

    Raises:
      Damaged: the bytes were cut or altered, or are something else.
    """
    start = len(_MAGIC) + _DIGEST + 1
    body = data[start:]
    if data[: len(_MAGIC)] != _MAGIC:
        raise Damaged("it does not begin as a record")
    if data[len(_MAGIC) : start] != hashlib.sha256(body).hexdigest().encode() + b"\n":
        raise Damaged(f"its checksum does not fit ({len(data)} bytes)")
    at = body.index(b"\n") + 1
    head, layout = json.loads(body[:at])
    arrays = {}
    for name, kind, shape in layout:
        dtype = np.dtype(kind)
        count = int(np.prod(shape, dtype=np.int64))
        arrays[name] = np.frombuffer(body, dtype, count, at).reshape(shape)
        at += count * dtype.itemsize
    return Record(head, arrays)


def digest(*values) -> str:
    """A hash of plain values and arrays; equal on every machine."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            found.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        else:
            found.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    return found.hexdigest()
