"""The batched simulator: in lockstep with a plain one, against exact losses, and bit for bit the same however it is cut."""

import jax
import numpy as np
import pytest
from plain_routing import follow
from scipy.stats import binom, norm

from lagjax import InputError
from lagjax.engine.devices import place_replicas
from lagjax.engine.program import program as compiled
from lagjax.loss_routing import POLICIES, build_routing, exact_loss, from_index, make_system, model, simulate_routing
from lagjax.loss_routing.simulate import BLOCK, MODEL
from lagjax.models import alias, streams
from lagjax.stats import estimate

SMALL = make_system([1, 2, 1], [3, 3, 1], [1.0, 0.6, 1.0], 2.5)
WIDE = make_system([1, 2, 3, 1, 2] * 8, [4, 9, 3, 1, 7] * 8, np.linspace(0.5, 2, 40), 60.0)


def drawn(system, replicas, seed, blocks):
    """The events of a run, (E, B) queues, servers and words, from the streams alone."""
    table = model.event_table(system)
    keys = [streams.replica_keys(seed, s, np.arange(replicas)) for s in (streams.EXOGENOUS, streams.TIES)]
    events = np.arange(blocks * BLOCK, dtype=np.uint32)
    law = jax.device_put(table)
    draw = jax.jit(model.draw_events)
    found = [draw(law, keys[0], keys[1], events[i : i + BLOCK]) for i in range(0, len(events), BLOCK)]
    return [np.concatenate([np.asarray(getattr(e, field)) for e in found]) for field in ("queue", "server", "word")]


@pytest.mark.parametrize("system", [SMALL, WIDE])
def test_lockstep_with_a_plain_simulator(system):
    policies = build_routing(list(POLICIES), system)
    tables = [model.route_tables(system, policy) for policy in policies]
    if system is WIDE:  # rules of every kind: no ties, ties, shares
        assert {(t.end is None, t.share is None) for t in tables} == {(True, True), (False, True), (True, False)}
    replicas, seed = 4, 3
    done = simulate_routing(system, policies, arrivals=200, replicas=replicas, seed=seed)
    queue, server, word = drawn(system, replicas, seed, done.events.sum() // BLOCK)
    room = system.room.tolist()
    for p, policy in enumerate(policies):
        split = [[None] * replicas] * len(queue)
        if policy.share is not None:
            split = np.asarray(alias.draw(alias.alias_table(policy.share), word)).tolist()
        rank = None if policy.rank is None else policy.rank.tolist()
        for b in range(replicas):
            state, lost = system.typical_jobs.tolist(), np.zeros(len(queue), int)
            for t in range(len(queue)):
                state, lost[t] = follow(rank, room, state, queue[t, b], server[t, b], word[t, b], split[t][b])
            assert state == done.jobs[p, :, b].tolist()
            assert [lost[: done.events[0]].sum(), lost[done.events[0] :].sum()] == done.lost[:, p, b].tolist()


def test_events_have_their_law():
    queue, server, _ = drawn(SMALL, 256, 0, 40)
    rates = {(3, 0): 2.5, (0, 0): 1.0, (1, 0): 0.6, (1, 1): 0.6, (2, 0): 1.0}
    seen = {key: int(((queue == key[0]) & (server == key[1])).sum()) for key in rates}
    assert sum(seen.values()) == queue.size
    for key, rate in rates.items():
        p = rate / SMALL.event_rate
        assert abs(seen[key] - queue.size * p) < norm.isf(1e-7) * np.sqrt(queue.size * p * (1 - p))


@pytest.mark.parametrize(
    "system", [SMALL, make_system([1, 2], [3, 4], [1.0, 0.8], 3.5), make_system([2, 3], [6, 4], [0.5, 1.0], 2.4)]
)
def test_simulation_covers_exact_loss(system):
    """All policies within 5.3 standard errors (false alarm 1e-7 each)."""
    policies = build_routing(list(POLICIES), system)
    done = simulate_routing(system, policies, arrivals=4000, warmup=400, replicas=512, seed=1)
    loss = estimate(done.lost.sum(axis=0) * (system.arrival_rate / done.events.sum()))
    exact = np.array([exact_loss(system, policy).loss for policy in policies])
    error = loss.ci95 / 1.96
    assert np.all(np.abs(loss.mean - exact) < 5.3 * error), (loss.mean, exact, error)
    assert np.all(error < 0.03 * exact)


def test_intervals_cover_at_their_rate():
    system = make_system([1, 1], [2, 3], [1.0, 0.7], 1.2)
    policies = build_routing(["rb"], system)
    exact = exact_loss(system, policies[0]).loss
    hits, runs = 0, 200
    done = simulate_routing(system, policies, arrivals=300, warmup=100, replicas=runs * 32, seed=5)
    loss = done.lost.sum(axis=0)[0] * (system.arrival_rate / done.events.sum())
    for part in loss.reshape(runs, 32):
        found = estimate(part)
        hits += abs(found.mean - exact) <= found.ci95
    assert binom.ppf(1e-6, runs, 0.94) <= hits <= binom.ppf(1 - 1e-6, runs, 0.96)
    assert len(np.unique(loss)) > 100  # replicas differ


def test_bitwise_the_same_however_it_is_cut():
    policies = build_routing(["rb", "random", "obs"], SMALL)
    given = {"arrivals": 1500, "warmup": 200, "replicas": 12, "seed": 9}
    whole = simulate_routing(SMALL, policies, **given)
    for other in (
        simulate_routing(SMALL, policies, **given, chunk=3),
        simulate_routing(SMALL, policies, **given, devices=jax.local_devices()[:1]),
    ):
        for mine, theirs in zip(whole, other, strict=True):
            np.testing.assert_array_equal(mine, theirs)
    fewer = simulate_routing(SMALL, policies, **(given | {"replicas": 5}))
    np.testing.assert_array_equal(fewer.lost, whole.lost[..., :5])
    for p, policy in enumerate(policies[:2]):  # whatever runs beside it, and with no word for ties drawn at all
        alone = simulate_routing(SMALL, [policy], **given)
        np.testing.assert_array_equal(alone.lost[:, 0], whole.lost[:, p])
    other_seed = simulate_routing(SMALL, policies, **(given | {"seed": 10}))
    assert (other_seed.lost != whole.lost).any()


def test_all_policies_see_the_same_events():
    """With one queue every policy that is no splitting does the same thing."""
    system = make_system([2], [5], [1.0], 1.8)
    done = simulate_routing(system, build_routing(list(POLICIES), system), arrivals=2000, replicas=8)
    assert (done.lost == done.lost[:, :1]).all() and done.lost.sum() > 0


def test_many_queues():
    """100 queues; shortest queue loses fewer than random routing, which loses fewer than splitting, in every replica."""
    system = make_system([1] * 100, [3] * 100, [1.0] * 100, 95.0)
    names = ["sq", "random", "obs"]
    done = simulate_routing(system, build_routing(names, system), arrivals=20_000, warmup=2000, replicas=4)
    lost = done.lost.sum(axis=0)
    assert np.all(lost[0] <= lost[1]) and np.all(lost[1] < lost[2])


def test_one_program_for_all_rates_of_arrival():
    program = compiled(MODEL, place_replicas(2), BLOCK)
    known = []
    for rate in (2.0, 2.5, 3.0):
        system = SMALL.with_arrival_rate(rate)
        simulate_routing(system, build_routing(["sq", "obs"], system), arrivals=100, replicas=2)
        known.append(program._cache_size())
    assert known[0] == known[-1]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"arrivals": 0}, "arrivals is 0"),
        ({"replicas": 0}, "replicas is 0"),
        ({"arrivals": 10, "warmup": -1}, "warmup is -1"),
        ({"arrivals": 10, "seed": -1}, "seed is -1"),
        ({"arrivals": 2**31}, "use more replicas"),
    ],
)
def test_faults(arguments, words):
    with pytest.raises(InputError, match=words):
        simulate_routing(SMALL, build_routing(["sq"], SMALL), **({"arrivals": 10} | arguments))


def test_faults_of_policies():
    with pytest.raises(InputError, match="at least one"):
        simulate_routing(SMALL, [], arrivals=10)
    mine = from_index(np.zeros((40, 9)), WIDE, name="mine")
    with pytest.raises(InputError, match=r"'mine' has shape \(40, 10\); the system needs \(3, 4\)"):
        simulate_routing(SMALL, [mine], arrivals=10)
    huge = make_system([1] * 10, [9999] * 10, [1.0] * 10, 1.0)
    with pytest.raises(InputError, match="too many to simulate"):
        simulate_routing(huge, build_routing(["sq"], huge), arrivals=10)
