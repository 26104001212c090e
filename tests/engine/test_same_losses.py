"""Lemma 3.1: the same tasks are lost under every work-conserving policy, and the engine notices if not."""

import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine import loop
from lagjax.engine.run import simulate
from lagjax.gallery import GALLERY, gallery
from lagjax.policies import POLICIES, build_policy, make_policy


def check_same_losses(instance, policies, **sizes):
    counts = simulate(instance, policies, seed=8, **sizes)
    k = instance.servers_per_task
    takers = counts.served.sum(axis=2)
    np.testing.assert_array_equal(takers, np.broadcast_to(takers[0], takers.shape))
    np.testing.assert_array_equal(takers[0], k * (counts.arrived - counts.blocked))
    np.testing.assert_array_equal(counts.arrived.sum(axis=0), sizes["arrivals"])
    assert counts.arrived.dtype == counts.blocked.dtype == counts.served.dtype == np.int32
    assert counts.blocked.min() >= 0
    # Not only as many: the same times until a server is free, under every policy.
    waits = [np.sort(lane, axis=-2) for group in counts.state if group is not None
             for lane in group.reshape(-1, *group.shape[-2:])]  # fmt: skip
    for lane in waits:
        np.testing.assert_array_equal(lane, waits[0])
    return counts


@pytest.mark.parametrize("name", GALLERY)
def test_six_policies_on_the_gallery(name):
    instance = gallery(name, 0.8)
    policies = [build_policy(p, instance) for p in POLICIES]
    counts = check_same_losses(instance, policies, arrivals=960, replicas=32)
    assert counts.blocked.sum() > 0
    assert len({c.tobytes() for c in counts.served}) >= 4  # though they serve differently


@pytest.mark.parametrize("shape", [(3, 6, 1, 9), (4, 9, 2, 300), (5, 10, 4, 12)], ids=str)
def test_unequal_durations(shape):
    instance = system(*shape, seed=sum(shape))
    counts = check_same_losses(instance, every_kind(instance), arrivals=960, replicas=16)
    assert counts.blocked.sum() > 0


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("policy", [0, 1])
def test_a_miscount_is_noticed(k, policy, monkeypatch):
    """One server too many, even for one task of one replica."""
    instance = system(2, 6, k, 4)
    policies = [make_policy("a", np.zeros((2, 6))), make_policy("b", np.tile(np.arange(6), (2, 1)))]
    simulate(instance, policies, arrivals=64, replicas=3)
    program = loop.program

    def tampering(*given, **how):
        def advance(*args):
            state, counts = program(*given, **how)(*args)
            served = list(counts.served)
            served[1 - policy] = served[1 - policy].at[1, 2, 0].add(1)
            return state, counts._replace(served=tuple(served))

        return advance

    monkeypatch.setattr(loop, "program", tampering)
    with pytest.raises(AssertionError, match=r"Lemma 3\.1"):
        simulate(instance, policies, arrivals=64, replicas=3)
