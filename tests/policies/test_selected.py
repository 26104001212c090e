"""Whether the selection of an optimum matters: the same answer with few programs as with all of them."""

import dataclasses
import math

import numpy as np
import pytest

from lagjax.gallery import GALLERY, gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, solve_occ
from lagjax.policies import build_policy, selected, strict_order
from lagjax.policies.selected import is_unique, selection_matters


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


def test_unique_means_that_the_vertex_is_the_centre():
    """Where the faces are called points, the simplex ends there too; where they are not, two optima are shown."""
    count = {True: 0, False: 0}
    for seed in range(120):
        instance = random_instance(seed)
        if instance is None:
            continue
        centre, vertex = solve_occ(instance), solve_occ(instance, selection="vertex")
        scale = instance.scores.max()
        same = np.allclose(centre.tie_weight, vertex.tie_weight, atol=1e-7) and np.allclose(
            centre.index, vertex.index, atol=1e-7 * scale
        )
        assert is_unique(instance, centre) == same, seed
        count[same] += 1
    assert min(count.values()) > 10, count


def test_no_program_is_solved_where_the_optimum_is_unique(monkeypatch):
    instance = next(
        i for i in map(random_instance, range(120)) if i is not None and i.num_types > 2 and is_unique(i, solve_occ(i))
    )
    asked = []
    build = selected.build_policy
    monkeypatch.setattr(selected, "build_policy", lambda *arguments: asked.append(arguments[2:]) or build(*arguments))
    assert selection_matters("lag", instance) == 0
    assert asked == [()]


def test_an_approximate_solution_does_not_tell(monkeypatch):
    instance = gallery("priority", 0.5)
    within = dataclasses.replace(solve_occ(instance), method="dual")
    monkeypatch.setattr(selected, "solve_occ", lambda instance: within)
    assert math.isnan(selection_matters("lag", instance))
