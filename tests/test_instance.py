"""Instances, service laws and the gallery: what they hold, and what they refuse."""

import jax
import numpy as np
import pytest

from lagjax import GALLERY, InputError, deterministic, from_pmf, from_sample, gallery, geometric, make_instance
from lagjax.durations import mean_duration

SCORES = [[1.0, 0.5], [0.2, 0.9]]
LAW = np.ones(1)


def test_load_is_k_rate_times_duration_over_servers():
    instance = make_instance(SCORES, [deterministic(4), deterministic(2)], arrival_rate=[0.1, 0.2])
    assert instance.load == pytest.approx((0.1 * 4 + 0.2 * 2) / 2)
    scaled = instance.with_load(0.3)
    assert scaled.load == pytest.approx(0.3)
    np.testing.assert_allclose(scaled.arrival_rate / instance.arrival_rate, scaled.arrival_rate[0] / 0.1)


@pytest.mark.parametrize(
    ("name", "servers", "types", "k", "mean", "top"),
    [("specialist", 7, 6, 1, 10, 6 / 7), ("priority", 8, 2, 1, 20, 7 / 8), ("unfriendly", 10, 32, 1, 43, 0.9),
     ("low-rank", 30, 10, 1, 43, 29 / 30), ("journal", 30, 10, 3, 42.07, 0.9)],
)  # fmt: skip
def test_gallery_is_the_spec(name, servers, types, k, mean, top):
    instance = gallery(name, 0.5)
    assert instance.scores.shape == (types, servers)
    assert instance.servers_per_task == k
    np.testing.assert_allclose(instance.mean_duration, mean, rtol=1e-3)
    assert instance.max_load == pytest.approx(top)
    assert instance.load == pytest.approx(0.5)
    assert instance.scores.min() >= 0 and len(set(instance.servers)) == servers


def test_gallery_scores():
    assert gallery("specialist").scores[5].tolist() == [1, 1, 0, 0, 0, 0, 0]
    assert gallery("priority").scores[1].tolist() == [8, 8] + [0.2] * 6
    assert sorted(set(gallery("unfriendly").scores.ravel())) == [0, 0.01, 1]
    assert np.linalg.matrix_rank(gallery("low-rank").scores) == 1
    journal = gallery("journal")
    assert journal.scores.min() == 0 and journal.scores.max() == 1
    assert set(GALLERY) == {"specialist", "priority", "unfriendly", "low-rank", "journal"}


def test_laws():
    assert deterministic(3).tolist() == [0, 0, 1]
    law = geometric(10)
    assert law.sum() == pytest.approx(1, abs=1e-15)
    assert 0.9 ** len(law) < 1e-9 <= 0.9 ** (len(law) - 1)
    np.testing.assert_allclose(law[1:] / law[:-1], 0.9)
    assert geometric(1).tolist() == [1]
    assert from_sample([0.2, 1.4, 2.6]).tolist() == pytest.approx([2 / 3, 0, 1 / 3])
    assert mean_duration(from_pmf([0.5, 0.5, 0])) == pytest.approx(1.5)


def test_instance_is_a_pytree_whose_sizes_are_static():
    one, other = gallery("priority", 0.3), gallery("priority", 0.6)
    assert jax.tree.structure(one) == jax.tree.structure(other)
    assert len(jax.tree.leaves(one)) == 3


FAULTS = [
    ({"scores": [[1, 2], [3]]}, "scores"),
    ({"scores": [[1, np.nan]]}, "scores[0, 1]"),
    ({"scores": [[1, -2.0]]}, "scores[0, 1]"),
    ({"scores": [["a", "b"]]}, "scores"),
    ({"scores": np.zeros((2, 2))}, "all 0"),
    ({"scores": np.zeros((0, 2))}, "non-empty"),
    ({"servers_per_task": 0}, "servers_per_task is 0"),
    ({"servers_per_task": 1.5}, "servers_per_task is 1.5"),
    ({"servers_per_task": 3}, "only 2 servers"),
    ({"servers_per_task": "two"}, "servers_per_task is 'two'"),
    ({"servers_per_task": None}, "servers_per_task is None"),
    ({"servers_per_task": 2}, "no load is feasible"),
    ({"load": None}, "either arrival_rate or load"),
    ({"load": "0.5"}, "load is '0.5'"),
    ({"load": [0.5]}, "load is [0.5]"),
    ({"load": np.inf}, "load is inf"),
    ({"load": 0.6}, "0.5"),
    ({"load": 0.4, "mix": [1, 0]}, "mix[1]"),
    ({"load": 0.4, "mix": [1, 2, 3]}, "expected 2"),
    ({"load": None, "arrival_rate": [0.6, 0.5]}, "sums to 1.1"),
    ({"load": None, "arrival_rate": [0.6, -0.5]}, "arrival_rate[1]"),
    ({"service": None}, "service is None"),
    ({"service": [LAW] * 3}, "3 laws"),
    ({"service": [0.5, 0.4]}, "sums to 0.9"),
    ({"service": ["a", "b"]}, "service pmf"),
    ({"tasks": ["a"]}, "1 names; expected 2"),
    ({"tasks": ["a", "a"]}, "'a' twice"),
    ({"tasks": 5}, "give 2 names"),
    ({"servers": ["a", "b\n"]}, "line breaks"),
    ({"name": "x" * 101}, "101 characters"),
]


@pytest.mark.parametrize(("wrong", "expected"), FAULTS, ids=[f"{next(iter(w))} {e}" for w, e in FAULTS])
def test_faults_are_named(wrong, expected):
    given = {"scores": SCORES, "service": LAW, "load": 0.4} | wrong
    with pytest.raises(InputError) as fault:
        make_instance(**given)
    assert expected in str(fault.value)
    assert "\n" not in str(fault.value)


@pytest.mark.parametrize("law", [
    lambda: deterministic(0), lambda: deterministic(1.5), lambda: deterministic(None), lambda: deterministic(np.inf),
    lambda: geometric(0.9), lambda: geometric("5"), lambda: geometric(np.nan), lambda: geometric(10, tail=0),
    lambda: geometric(1e9), lambda: from_pmf([]), lambda: from_pmf([0.5, -0.5, 1]), lambda: from_pmf("x"),
    lambda: from_sample([]), lambda: from_sample([1, -1]), lambda: from_sample("x"),
])  # fmt: skip
def test_bad_laws_are_named(law):
    with pytest.raises(InputError):
        law()


def test_loads_out_of_reach():
    with pytest.raises(InputError, match="arrivals per step"):
        make_instance([[1.0] * 4], LAW, load=0.5)
    with pytest.raises(InputError, match="no instance 'nope'"):
        gallery("nope")
