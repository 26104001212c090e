"""Interrupted runs: from any chunk on, in any piece of the batch, bitwise what an undisturbed run gives."""

import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine.pause import Pause
from lagjax.engine.run import simulate
from lagjax.engine.scaled_run import simulate_scaled
from lagjax.errors import InputError
from lagjax.gallery import gallery
from lagjax.policies import build_policy

CALL = {"arrivals": 500, "warmup": 77, "seed": 3, "block": 32, "chunk": 5}
SCALED = {"copies": 5, "dispatchers": 3, "steps": 61, "warmup": 13, "seed": 3, "chunk": 17}


def paused(run, **call):
    """The pauses of a run, and its result."""
    pauses = []
    result = run(**call, save=lambda done, fetch: pauses.append(Pause(done, fetch())))
    return pauses, result


def check(found, wanted, replicas=slice(None)):
    for field in ("served", "arrived", "blocked"):
        np.testing.assert_array_equal(getattr(found, field), getattr(wanted, field)[..., replicas])


@pytest.fixture(scope="module")
def single():
    instance = system(3, 6, 2, 9, seed=5)
    policies = every_kind(instance)
    return lambda **call: simulate(instance, policies, **call)


@pytest.fixture(scope="module")
def scaled():
    instance = gallery("priority", 0.7)
    return lambda **call: simulate_scaled(instance, build_policy("random", instance), **call)


def test_from_every_chunk_on(single):
    pauses, whole = paused(single, replicas=6, **CALL)
    assert [p.done for p in pauses] == [160, 320, 480]
    for pause in pauses:
        check(single(replicas=6, **CALL, resume=pause), whole)
    check(single(replicas=6, **{**CALL, "chunk": 1}, resume=pauses[1]), whole)
    check(single(replicas=6, **{**CALL, "block": 160}, resume=pauses[0]), whole)


def test_from_every_chunk_of_the_scaled_system_on(scaled):
    pauses, whole = paused(scaled, replicas=4, **SCALED)
    assert [p.done for p in pauses] == [13, 30, 43, 60]
    for pause in pauses:
        for found, wanted in zip(scaled(replicas=4, **SCALED, resume=pause), whole, strict=True):
            check(found, wanted)
            assert found.steps == wanted.steps
    arrays = list(pauses[2].arrays)
    arrays[5] = arrays[5] + 7  # tasks blocked so far: a resumed run counts on from what it is given
    changed = scaled(replicas=4, **SCALED, resume=Pause(pauses[2].done, arrays))
    np.testing.assert_array_equal(changed[0].blocked, whole[0].blocked + 7)


def test_a_batch_in_pieces(single, scaled):
    whole = single(replicas=6, **CALL)
    for first, count in ((0, 2), (2, 2), (4, 2), (3, 2)):
        check(single(replicas=count, first_replica=first, **CALL), whole, slice(first, first + count))
    halves = scaled(replicas=4, **SCALED)
    for first, count in ((0, 2), (2, 2)):
        for found, wanted in zip(scaled(replicas=count, first_replica=first, **SCALED), halves, strict=True):
            check(found, wanted, slice(first, first + count))


def test_a_pause_of_another_run_is_refused(single, scaled):
    pauses, _ = paused(single, replicas=6, **CALL)
    for call in ({"replicas": 4, **CALL}, {"replicas": 6, **CALL, "block": 96}):
        with pytest.raises(InputError, match="another size or kind"):
            single(**call, resume=pauses[0])
    with pytest.raises(InputError, match="another size or kind"):
        scaled(replicas=4, **SCALED, resume=pauses[0])
    with pytest.raises(InputError, match="first_replica is -1"):
        single(replicas=6, first_replica=-1, **CALL)
