"""A record: plain values and arrays as the bytes of an npz with JSON in it, sealed by a checksum.

The bytes are a plain npz that `numpy.load` opens, with the SHA-256 of all before it as the comment of the archive: the checks of
zip itself miss what is altered between its members, and 32 bits are few.
"""

from __future__ import annotations

import hashlib
import io
import json
from typing import Any, NamedTuple

import numpy as np

_DIGEST = 64  # hexadecimal digits of SHA-256
_HEAD = "head.json"  # its member


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
    archive = io.BytesIO()
    held: dict[str, Any] = {name: np.asarray(array, order="C") for name, array in record.arrays.items()}
    held[_HEAD] = np.array(json.dumps(record.head, allow_nan=False))
    np.savez(archive, **held)
    body = archive.getvalue()[:-2] + _DIGEST.to_bytes(2, "little")  # the last two bytes: the length of the comment
    return body + hashlib.sha256(body).hexdigest().encode()


def unpack(data: bytes) -> Record:
    """Reads what `pack` made.

    Raises:
      Damaged: the bytes were cut or altered, or are something else, such as a record of an earlier version.
    """
    if data.startswith(b"lagjax record "):
        raise Damaged("an earlier version of lagjax wrote it")
    if data[-_DIGEST:] != hashlib.sha256(data[:-_DIGEST]).hexdigest().encode():
        raise Damaged(f"its checksum does not fit ({len(data)} bytes)")
    with np.load(io.BytesIO(data), allow_pickle=False) as held:
        arrays = {name: held[name] for name in held.files}
    return Record(json.loads(str(arrays.pop(_HEAD))), arrays)


def digest(*values) -> str:
    """A hash of plain values and arrays; equal on every machine."""
    found = hashlib.sha256()
    for value in values:
        if isinstance(value, np.ndarray):
            found.update(f"{value.dtype.str}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        else:
            found.update(json.dumps(value, sort_keys=True).encode() + b"\n")
    return found.hexdigest()
