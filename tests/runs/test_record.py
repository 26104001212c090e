"""Records: equal bytes for equal content, and nothing that was cut or altered is read as data."""

import numpy as np
import pytest

from lagjax.runs.record import Damaged, Record, digest, pack, unpack

WHOLE = Record(
    {"text": "ρ ≤ 1", "none": None, "list": [1, 2.5, "x"], "nested": {"a": True}},
    {"b": np.arange(6, dtype=np.int64).reshape(2, 3).T, "empty": np.zeros((0, 4)), "u": np.array(7, np.uint8)},
)


def test_what_goes_in_comes_out():
    found = unpack(pack(WHOLE))
    assert found.head == WHOLE.head and list(found.head) == list(WHOLE.head)  # in order: files are made from it
    assert list(found.arrays) == list(WHOLE.arrays)
    for name, array in WHOLE.arrays.items():
        assert found.arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(found.arrays[name], array)
    assert pack(found) == pack(WHOLE)


def test_every_cut_is_noticed():
    data = pack(WHOLE)
    for length in range(len(data)):
        with pytest.raises(Damaged):
            unpack(data[:length])
    with pytest.raises(Damaged):
        unpack(data + b"\0")


def test_every_altered_byte_is_noticed():
    data = pack(WHOLE)
    for place in range(len(data)):
        with pytest.raises(Damaged):
            unpack(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])


def test_digests_tell_apart_what_differs():
    values = [1, 1.5, "1", None, [1], {"a": 1}, np.ones(2), np.ones(2, np.float32), np.ones((1, 2)), np.zeros(2)]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(1, "a") != digest("a", 1)
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
