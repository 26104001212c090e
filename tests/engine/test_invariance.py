"""A replica's counts depend on the instance, its policy, window and seed, bit for bit: nothing else."""

import dataclasses

import jax
import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine.devices import place_replicas
from lagjax.engine.run import simulate

FIELDS = ("served", "arrived", "blocked")
WINDOW = {"arrivals": 500, "warmup": 77, "seed": 3}


@pytest.fixture(scope="module")
def instance():
    return system(3, 6, 2, 9, seed=5)


@pytest.fixture(scope="module")
def policies(instance):
    """Two of every kind."""
    again = [dataclasses.replace(p, name=f"{p.name} 2") for p in every_kind(instance, seed=1)]
    return every_kind(instance, seed=0) + again


@pytest.fixture(scope="module")
def reference(instance, policies):
    counts = simulate(instance, policies, replicas=6, **WINDOW)
    assert counts.served.shape == (8, 3, 6, 6)
    assert all(np.any(counts.blocked, axis=0))
    return counts


def check_equal(found, expected, replicas=slice(None), policies=slice(None)):
    np.testing.assert_array_equal(found.served, expected.served[policies][..., replicas])
    for field in FIELDS[1:]:
        np.testing.assert_array_equal(getattr(found, field), getattr(expected, field)[..., replicas])


CUTS = {
    "one replica": {"replicas": 1},
    "block 32": {"block": 32},
    "one block a call": {"block": 32, "chunk": 1},
    "chunk 2": {"chunk": 2},
    "one device": {"devices": 1},
}


@pytest.mark.parametrize("cut", CUTS)
def test_however_the_work_is_cut(cut, instance, policies, reference):
    how = {"replicas": 6, **CUTS[cut]}
    if "devices" in how:
        how["devices"] = jax.local_devices()[: how["devices"]]
    found = simulate(instance, policies, **WINDOW, **how)
    check_equal(found, reference, replicas=slice(how["replicas"]))


def test_more_replicas_change_nothing(instance, policies, reference):
    more = simulate(instance, policies, replicas=10, **WINDOW)
    check_equal(reference, more, replicas=slice(6))


@pytest.mark.parametrize("chosen", [[0], [1], [2], [3], [6, 3, 2, 1, 0, 7]], ids=str)
def test_whatever_runs_beside(chosen, instance, policies, reference):
    found = simulate(instance, [policies[p] for p in chosen], replicas=6, **WINDOW)
    check_equal(found, reference, policies=chosen)


def test_windows_add_up(instance, policies, reference):
    """[0, 77) + [77, 300) + [300, 577): what is not counted is simulated all the same."""
    first, second, third, whole = (
        simulate(instance, policies, replicas=6, seed=3, warmup=start, arrivals=end - start)
        for start, end in ((0, 77), (77, 300), (300, 577), (0, 577))
    )
    for field in FIELDS:
        parts = [getattr(part, field) for part in (first, second, third)]
        np.testing.assert_array_equal(sum(parts), getattr(whole, field))
        np.testing.assert_array_equal(parts[1] + parts[2], getattr(reference, field))
    assert (first.arrivals, second.arrivals, whole.arrivals) == (77, 223, 577)


def test_progress_changes_nothing_and_counts_all(instance, policies, reference):
    calls = []
    found = simulate(instance, policies, replicas=6, block=32, chunk=7, progress=calls.append, **WINDOW)
    check_equal(found, reference)
    blocks = [7, 7, 5]  # 577 arrivals in blocks of 32
    assert calls == [n * 32 * 6 * 8 for n in blocks]


def test_replicas_and_seeds_differ(instance, policies, reference):
    other = simulate(instance, policies, replicas=6, **{**WINDOW, "seed": 4})
    high = simulate(instance, policies, replicas=6, **{**WINDOW, "seed": 3 + 2**32})
    seen = set()
    for counts in (reference, other, high):
        for p in range(8):
            seen.update((p, counts.served[p, ..., b].tobytes()) for b in range(6))
        arrived = {counts.arrived[:, b].tobytes() + counts.blocked[:, b].tobytes() for b in range(6)}
        assert len(arrived) == 6
    assert len(seen) == 3 * 8 * 6


def test_ties_do_not_touch_arrivals(instance, policies, reference):
    """Common random numbers: a policy without chance meets the same tasks as those that draw."""
    alone = simulate(instance, policies[:1], replicas=6, **WINDOW)
    np.testing.assert_array_equal(alone.arrived, reference.arrived)
    even = reference.served[1]
    assert np.any(even != reference.served[0])


def test_replicas_spread_over_as_many_devices_as_divide_them():
    assert len(jax.local_devices()) == 2
    assert place_replicas(6).mesh.size == 2
    assert place_replicas(7).mesh.size == 1
    assert place_replicas(6, jax.local_devices()[1:]).mesh.devices.tolist() == jax.local_devices()[1:]
    placed = place_replicas(6).by_replica({"a": np.zeros((2, 6)), "b": np.zeros((4, 3, 6))})
    assert [s.data.shape for s in placed["b"].addressable_shards] == [(4, 3, 3)] * 2
    whole = place_replicas(6).everywhere(np.zeros((2, 6)))
    assert [s.data.shape for s in whole.addressable_shards] == [(2, 6)] * 2
