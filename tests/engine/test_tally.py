"""Counting: bitmaps, one by one and NumPy agree, whatever is not counted."""

import jax.numpy as jnp
import numpy as np
import pytest

from lagjax.models import tally

V, S, B = 5, 11, 6


def slots_of(rng, k, lanes, events, slots=S, dtype=np.uint8):
    """Different slots within an arrival; an arrival in four takes nobody."""
    drawn = np.argsort(rng.random((events, slots, *lanes, B)), axis=1)[:, :k].astype(dtype)
    lost = rng.random((events, 1, *lanes, B)) < 0.25
    return np.where(lost, np.iinfo(dtype).max, drawn).astype(dtype)


def plain(counts, task_type, slots):
    counts = counts.copy()
    many = counts.reshape(-1, *counts.shape[-3:])
    lanes = slots.reshape(*slots.shape[:2], -1, B)
    for e, j, p, b in np.ndindex(lanes.shape):
        v, s = task_type[e, b], lanes[e, j, p, b]
        if v < counts.shape[-3] and s < counts.shape[-2]:
            many[p, v, s, b] += 1
    return counts


@pytest.mark.parametrize("widest", [0, 10**6], ids=["one-by-one", "bitmap"])
@pytest.mark.parametrize("k", [1, 3])
def test_counts_equal_a_plain_loop(widest, k, monkeypatch):
    rng = np.random.default_rng(k)
    monkeypatch.setattr(tally, "WIDEST_BITMAP", widest)
    events = 96
    task_type = rng.integers(0, V + 1, (events, B)).astype(np.uint8)  # V: not counted
    slots = (slots_of(rng, k, (), events), None, slots_of(rng, k, (3,), events, dtype=np.uint16))
    served = (
        rng.integers(0, 9, (V, S, B), dtype=np.int32),
        None,
        rng.integers(0, 9, (3, V, S, B), dtype=np.int32),
    )
    arrived = rng.integers(0, 9, (V, B), dtype=np.int32)

    def device(x):
        return tuple(None if a is None else jnp.asarray(a) for a in x)

    new_arrived, new_served = tally.tally(jnp.asarray(arrived), device(served), jnp.asarray(task_type), device(slots))
    assert new_arrived.dtype == new_served[0].dtype == jnp.int32
    np.testing.assert_array_equal(new_arrived, arrived + (task_type[..., None] == np.arange(V)).sum(axis=0).T)
    assert new_served[1] is None
    for g in (0, 2):
        np.testing.assert_array_equal(new_served[g], plain(served[g], task_type, slots[g]))


def test_every_arrival_of_a_block_counts_once():
    """Replica b meets type 0 at arrival b alone."""
    task_type = np.full((64, 64), 1, np.uint8)
    task_type[np.arange(64), np.arange(64)] = 0
    slots = np.zeros((64, 1, 64), np.uint8)
    arrived, served = jnp.zeros((1, 64), jnp.int32), jnp.zeros((1, 1, 64), jnp.int32)
    arrived, (served,) = tally.tally(arrived, (served,), jnp.asarray(task_type), (jnp.asarray(slots),))
    assert np.all(np.asarray(arrived) == 1)
    assert np.all(np.asarray(served) == 1)


@pytest.mark.parametrize("events", [32, 224, 256, 288, 480, 1024])
def test_counts_of_one_cell_do_not_overflow_in_a_long_block(events):
    """All arrivals of one type, all by one server."""
    arrived, served = jnp.ones((2, 3), jnp.int32), jnp.ones((2, 5, 3), jnp.int32)
    task_type, slots = jnp.ones((events, 3), jnp.uint8), jnp.full((events, 1, 3), 4, jnp.uint8)
    arrived, (served,) = tally.tally(arrived, (served,), task_type, (slots,))
    expected = np.ones((2, 5), int)
    expected[1, 4] += events
    np.testing.assert_array_equal(served, np.broadcast_to(expected[..., None], (2, 5, 3)))
    np.testing.assert_array_equal(arrived, [[1] * 3, [1 + events] * 3])


def test_wide_tables_are_counted_one_by_one(monkeypatch):
    called = []
    for name in ("_by_bitmap", "_one_by_one"):
        monkeypatch.setattr(tally, name, lambda c, *_, name=name: called.append(name) or c)
    for types in (tally.WIDEST_BITMAP // 8, tally.WIDEST_BITMAP // 8 + 1):
        called.clear()
        tally.tally(
            jnp.zeros((types, 2), jnp.int32), (jnp.zeros((types, 8, 2), jnp.int32),),
            jnp.zeros((32, 2), jnp.uint16), (jnp.zeros((32, 1, 2), jnp.uint8),),
        )  # fmt: skip
        assert set(called) == {"_by_bitmap" if types * 8 <= tally.WIDEST_BITMAP else "_one_by_one"}
