"""One event: in lockstep with a plain simulator, on draws whose laws are right."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import queue_pairs
from scipy.stats import chi2

from lagjax.compatibility import draws, model
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import graph_of
from lagjax.compatibility.policies import FAR, Policy, jsq
from lagjax.compatibility.queues import set_up
from lagjax.models import streams

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(
    ("most", "sees", "unit"),
    [(1, FAR, np.uint8), (2, FAR, np.uint8), (2, 2, np.uint16), (4, FAR, np.uint8), (12, 1, np.uint16)],
)
def test_lockstep_with_a_plain_simulator(most, sees, unit):
    """Conflicts included: 20 servers, 128 events, so that most rows are read and written several times."""
    rng = np.random.default_rng(most)
    servers, events = 20, 128
    queue = np.zeros((model.rows_of(servers), LANES), unit)
    queue[:servers] = rng.integers(0, 4, (servers, LANES))
    looked = rng.integers(1, most + 1, events)
    table = np.array([rng.permutation(servers)[:most] for _ in range(events)])
    table = np.column_stack([rng.integers(0, servers, events), table]).astype(np.int32)
    block = draws.Events(
        rng.integers(0, 256, (events, LANES)).astype(np.uint8), rng.integers(90, 160, events).astype(np.uint8), table,
        looked.astype(np.int32),
    )  # fmt: skip
    far = unit(min(sees, np.iinfo(unit).max))
    found = jax.jit(model.run_events)(jnp.asarray(queue), jax.tree.map(jnp.asarray, block), 100, far)
    first = [field[:100] for field in block]
    expected = queue_pairs.play(queue, *first, sees)
    assert found.dtype == unit
    np.testing.assert_array_equal(found, expected)
    assert (expected != queue).any() and not expected[servers:].any()


def test_observations_count_levels_and_tasks():
    queue = np.zeros((256, LANES), np.uint8)
    queue[:200] = np.random.default_rng(0).integers(0, 70, (200, LANES))
    counts = model._observe(jnp.asarray(queue), model.no_counts(LANES))
    levels = np.arange(1, model.LEVELS + 1)[:, None, None]
    np.testing.assert_array_equal(counts.servers, (queue >= levels).sum(axis=1))
    np.testing.assert_array_equal(counts.tasks, queue.sum(axis=0, dtype=int))
    np.testing.assert_array_equal(counts.longest, queue.max(axis=0))


def test_below_is_the_floor_of_the_product():
    word = np.r_[0, 1, 2**32 - 1, np.random.default_rng(0).integers(0, 2**32, 1000)].astype(np.uint32)
    for n in (1, 2, 3, 1000, 10007, 65535, 65536):
        exact = word.astype(object) * n >> 32
        np.testing.assert_array_equal(draws.below(jnp.asarray(word), n), exact.astype(int))


def system(graph, policy, load):
    made = set_up(graph, policy, load, LANES, 7, np.full(1, 64))
    keys = jax.tree.map(lambda key: key[..., 0], made.keys)
    tables = jax.device_put(made.tables)
    return jax.jit(lambda number: draws.draw_events(tables, keys, number))


def test_coins_have_the_right_probability():
    """Every value of the high byte, and the rest of the probability by the words that the bundle shares."""
    load = 0.123456789
    graph = graph_of("pair", [[0, 1]], 2)
    drawn = system(graph, jsq(2), load)
    events = drawn(jnp.arange(1 << 15, dtype=jnp.uint32))
    coin, below = np.asarray(events.coin), np.asarray(events.below)
    n = coin.size
    counts = np.bincount(coin.ravel(), minlength=256)
    assert chi2.sf(((counts - n / 256) ** 2 / (n / 256)).sum(), 255) > FALSE_ALARM
    p = load / (1 + load)
    assert set(np.unique(below)) == {int(256 * p), int(256 * p) + 1}
    carry = np.mean(below == int(256 * p) + 1) - 256 * p % 1
    assert abs(carry) < 5 * 0.5 / np.sqrt(len(below))  # 6e-7
    np.testing.assert_array_equal(coin[:, LANES // 2 :], 255 - coin[:, : LANES // 2])
    # Lanes of one half are different, and independent in pairs: the number of agreements of two lanes is binomial.
    arrives = coin < below[:, None]
    together = np.corrcoef(arrives[:, :8].T.astype(float))[np.triu_indices(8, 1)]
    assert np.abs(together).max() < 5.9 / np.sqrt(len(below))  # 28 pairs, 1e-7 in all


@pytest.mark.parametrize("choices", [3, 2**30])
def test_servers_are_drawn_without_replacement_in_random_order(choices):
    """All orders of 3 of 4 servers (drawn one by one), or of all 9 (sorted, the first two places seen)."""
    sizes = ([0, 2, 5, 6], [1]) if choices == 3 else (list(range(9)), [3, 4])
    graph = graph_of("two types", [np.array(s) for s in sizes], 9)
    drawn = system(graph, jsq(choices), 0.5)
    events = jax.tree.map(np.asarray, drawn(jnp.arange(1 << 15, dtype=jnp.uint32)))
    of_first = events.looked == min(choices, len(sizes[0]))
    assert abs(of_first.mean() - 0.5) < 5 * 0.5 / np.sqrt(1 << 15)
    servers = events.server[of_first][:, 1 : 1 + min(choices, len(sizes[0]))]
    assert all(len(set(row)) == len(row) and set(row) <= set(sizes[0]) for row in servers[:500])
    seen = servers if choices == 3 else servers[:, :2]
    kinds, counts = np.unique(seen, axis=0, return_counts=True)
    expected = 24 if choices == 3 else 72
    assert len(kinds) == expected
    mean = counts.sum() / expected
    assert chi2.sf(((counts - mean) ** 2 / mean).sum(), expected - 1) > FALSE_ALARM
    assert set(events.server[~of_first][:, 1]) == set(sizes[1])
    done = np.bincount(events.server[:, 0], minlength=9)
    assert chi2.sf(((done - done.mean()) ** 2 / done.mean()).sum(), 8) > FALSE_ALARM


def test_bundles_side_by_side_are_the_same_as_one_by_one():
    """Bit for bit, with other numbers of events in each bundle."""
    graph = graph_of("small", [np.arange(12), np.arange(2), np.arange(4, 9)], 12)
    policy, events = Policy("short-sighted", 3, 2), np.array([300, 150, 17])
    made = set_up(graph, policy, 0.7, 3 * LANES, 1, events, (0.6, 0.3))
    given = made.state, made.counts, jnp.uint32(5), made.keys, made.tables
    both = [jax.tree.leaves(jax.jit(f)(*given)) for f in (model.side_by_side, model.one_by_one)]
    for found, expected in zip(*both, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_streams_have_names_of_their_own():
    numbers = [streams.EXOGENOUS, streams.TIES, streams.PARTITION, streams.CANDIDATES, streams.CLOCK, streams.PLACEMENT]
    assert len(set(numbers)) == len(numbers)
