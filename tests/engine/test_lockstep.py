"""The engine's own draws, fed to a plain event simulator, give the engine's paths arrival by arrival."""

import event_simulator
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine.run import simulate
from lagjax.models import loss, streams
from lagjax.models.policy_tables import policy_tables
from lagjax.policies import strict_order

REPLICAS, SEED = 3, 2**40 + 9

CASES = {  # arguments of `system`
    "k3": (4, 11, 3, 12),
    "bytes": (2, 5, 1, 254),
    "16 bits": (2, 6, 2, 255),
    "gather": (55, 4, 1, 6),
    "wide": (9, 260, 3, 300),  # 16-bit slots, counted one by one
}
ARRIVALS = {name: 256 if name == "wide" else 480 for name in CASES}


def choosers(policies, word, k):
    """The simulator's choosers for a replica with tie words (A, k)."""
    strict, even, weighted, by_level = policies

    def pick(i, copy, count):
        return int(word[i, copy]) * count >> 32

    return [
        event_simulator.strict_order(np.argsort(strict_order(strict), axis=1), k),
        event_simulator.equal_race(even.tier, pick, k),
        event_simulator.weighted_race(weighted.tier, weighted.weight, (word >> 8) * 2.0**-24, k),
        event_simulator.order_by_level(np.argsort(strict_order(by_level), axis=2), k),
    ]


@pytest.fixture(scope="module", params=CASES)
def paths(request):
    """An instance, its policies, the simulator's traces [policy][replica] and the draws behind them."""
    instance, arrivals = system(*CASES[request.param]), ARRIVALS[request.param]
    policies, k = every_kind(instance), instance.servers_per_task
    keys, ties = (streams.replica_keys(SEED, s, np.arange(REPLICAS)) for s in (streams.EXOGENOUS, streams.TIES))
    numbers = jnp.arange(arrivals, dtype=jnp.uint32)
    given = loss.LossTables(loss.arrival_tables(instance), None, None)
    drawn = jax.jit(loss.draw)(given, loss.Keys(keys, ties), numbers)
    types, holds, gaps, words = map(np.asarray, drawn)
    traces = [[] for _ in policies]
    for b in range(REPLICAS):
        given = gaps[:, b], types[:, b], holds[:, b].astype(int) - 1
        for p, choose in enumerate(choosers(policies, words[:, :, b], k)):
            traces[p].append(event_simulator.simulate(*given, choose, instance.num_servers, k))
    accepted = np.stack([t.accepted for t in traces[0]])
    assert accepted.mean() > 0.02
    if request.param != "wide":
        assert accepted.mean() < 0.99
    return instance, policies, traces, drawn


def test_paths_are_equal(paths):
    instance, policies, traces, drawn = paths
    k = instance.servers_per_task
    tables, layouts = policy_tables(policies)
    laws, tables = loss.arrival_tables(instance), jax.tree.map(jnp.asarray, tables)
    state, given = loss.init(laws, tables, REPLICAS), loss.LossTables(laws, tables, None)
    state, slots = jax.jit(lambda state, drawn: jax.lax.scan(lambda s, a: loss.step(s, a, given), state, drawn))(
        state, drawn
    )
    for layout, by_replica in zip(layouts, traces, strict=True):
        assert layout.place == 0
        taken = np.asarray(slots[layout.group])  # (A, k, B)
        none = np.iinfo(taken.dtype).max
        for b, trace in enumerate(by_replica):
            lost = taken[:, :, b] == none
            np.testing.assert_array_equal(lost, ~trace.accepted[:, None] & np.ones(k, bool))
            types = np.asarray(drawn.task_type)[:, b, None]
            server = layout.server_of_slot[types, np.where(lost, 0, taken[:, :, b])]
            assigned = np.sort(trace.assigned, axis=1) if layout.group == 3 else trace.assigned
            np.testing.assert_array_equal(np.where(lost, -1, server), assigned)


def test_counts_are_equal(paths):
    instance, policies, traces, drawn = paths
    arrivals = len(drawn.gap)
    warmup = 37
    counts = simulate(
        instance, policies, arrivals=arrivals - warmup, warmup=warmup, replicas=REPLICAS, seed=SEED, block=32
    )
    for b in range(REPLICAS):
        types = np.asarray(drawn.task_type)[warmup:, b]
        accepted = traces[0][b].accepted[warmup:]
        for found, of in ((counts.arrived, types), (counts.blocked, types[~accepted])):
            np.testing.assert_array_equal(found[:, b], np.bincount(of, minlength=instance.num_types))
        for p, by_replica in enumerate(traces):
            served = np.zeros(instance.scores.shape, int)
            np.add.at(served, (types[accepted, None], by_replica[b].assigned[warmup:][accepted]), 1)
            np.testing.assert_array_equal(counts.served[p, :, :, b], served)


def test_final_occupancy_is_equal(paths):
    """X one step after the last arrival: D of a server assigned then, one less for every step since."""
    instance, policies, traces, drawn = paths
    arrivals, d = len(drawn.gap), instance.max_duration
    counts = simulate(instance, policies, arrivals=arrivals, replicas=REPLICAS, seed=SEED, block=32)
    durations = np.asarray(drawn.hold).astype(int) - 1
    for group, by_replica in zip(counts.state, traces, strict=True):
        occupancy = np.asarray(loss.occupancy(group, d))
        assert occupancy.shape == (REPLICAS, instance.num_servers, d + 1)
        for b, trace in enumerate(by_replica):
            left = np.zeros(instance.num_servers, int)
            for i in np.flatnonzero(trace.accepted):
                since = trace.step[-1] - trace.step[i]
                left[trace.assigned[i]] = np.maximum(durations[i, b] - since, 0)
            np.testing.assert_array_equal(occupancy[b].argmax(axis=-1), left)
            np.testing.assert_array_equal(occupancy[b].sum(axis=-1), 1)
            assert left.any()
