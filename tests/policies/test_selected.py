"""Whether the selection of an optimum matters: the same answer with few programs as with all of them."""

import dataclasses
import math

import numpy as np
import pytest

from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, solve_occ
from lagjax.policies import build_policy, registry, strict_order
from lagjax.policies.registry import selection_matters


def by_all_selections(name, instance):
    """From the policies of all selections, identical servers interchangeable."""
    alike = np.unique(instance.scores, axis=1, return_inverse=True)[1].ravel()
    made = [build_policy(name, instance, selection) for selection in SELECTIONS]
    orders = [strict_order(policy) for policy in made]
    if all(order is not None for order in orders):
        return any(not np.array_equal(*(alike[np.argsort(o, axis=1)] for o in (orders[0], o))) for o in orders[1:])
    same = (np.array_equal(made[0].tier, o.tier) and np.allclose(made[0].weight, o.weight, atol=1e-3) for o in made[1:])
    return not all(same)


@pytest.mark.parametrize("name", GALLERY)
def test_the_gallery_as_by_all_selections(name):
    for load in (0.2, 0.5, 0.8):
        instance = gallery(name, load)
        for policy in ("lag", "alg-sc-lp"):
            assert selection_matters(policy, instance) == by_all_selections(policy, instance), (load, policy)
        assert selection_matters("greedy", instance) == 0


def random_instance(seed):
    rng = np.random.default_rng(seed)
    shape = rng.integers(1, 8, 2)
    levels = rng.choice([2, 4, 1000])  # few levels make ties
    scores = rng.integers(0, levels, shape) / levels + 0.01
    service = [np.ones(d) / d for d in rng.choice([3, 5], shape[0])]
    k = int(rng.integers(1, shape[1] + 1)) if shape[1] > 1 else 1
    instance = make_instance(scores, service, arrival_rate=np.full(shape[0], 1e-3), servers_per_task=k)
    return None if instance.max_load <= 0 else instance.with_load(instance.max_load * rng.choice([0.3, 0.6, 0.9]) / 9)


def test_random_systems_as_by_all_selections():
    """Unique optima and faces, with many exact ties."""
    unique = 0
    for instance in filter(None, map(random_instance, range(40))):
        unique += solve_occ(instance).face_dimensions == (0, 0)
        assert selection_matters("lag", instance) == by_all_selections("lag", instance)
    assert 5 < unique < 35


def test_no_program_is_solved_where_the_optimum_is_unique(monkeypatch):
    systems = filter(None, map(random_instance, range(40)))
    instance = next(i for i in systems if i.num_types > 2 and solve_occ(i).face_dimensions == (0, 0))
    asked = []
    build = registry.build_policy
    monkeypatch.setattr(registry, "build_policy", lambda *arguments: asked.append(arguments[2:]) or build(*arguments))
    assert selection_matters("lag", instance) == 0
    assert asked == [()]


def test_an_approximate_solution_does_not_tell(monkeypatch):
    instance = gallery("priority", 0.5)
    within = dataclasses.replace(solve_occ(instance), method="dual")
    monkeypatch.setattr(registry, "solve_occ", lambda instance: within)
    assert math.isnan(selection_matters("lag", instance))
