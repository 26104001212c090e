"""What arrives: gaps, types and durations have the instance's law, read off the tables and off the draws."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from drawn_law import FALSE_ALARM, implied_law
from scipy.stats import chi2, chi2_contingency

from lagjax.durations import deterministic, geometric
from lagjax.instance import make_instance
from lagjax.models import alias, loss, streams


def instance(rates, laws, k=1, servers=4):
    return make_instance(np.ones((len(rates), servers)), laws, arrival_rate=rates, servers_per_task=k)


def draw(system, events=200, replicas=500, ties=False, seed=0):
    keys = streams.replica_keys(seed, streams.EXOGENOUS, np.arange(replicas))
    tie_keys = streams.replica_keys(seed, streams.TIES, np.arange(replicas)) if ties else None
    tables = loss.LossTables(loss.arrival_tables(system), None, None)
    in_jit = jax.jit(loss.draw)  # one program in place of one for every operation
    return in_jit(tables, loss.Keys(keys, tie_keys), jnp.arange(events, dtype=jnp.uint32))


@pytest.mark.parametrize("rate", [0.4, 0.013, 1.0, 1 - 2.0**-20, 1e-3, 1e-9, 1e-300])
def test_gap_table_is_geometric_lumped_when_all_are_free(rate):
    """P(gap = i) = (1 - Lambda)^(i - 1) Lambda up to d, the rest at d + 1; in exact rational arithmetic."""
    d = 12
    system = instance([rate / 2, rate / 2], [deterministic(3), deterministic(d)])
    total = Fraction(system.total_rate)
    law = [Fraction(0)] + [(1 - total) ** (i - 1) * total for i in range(1, d + 1)] + [(1 - total) ** d]
    assert sum(law) == 1
    drawn = implied_law(loss.arrival_tables(system).gap)
    assert drawn[0] == 0
    assert drawn[d + 2 :].sum() == 0
    for words, probability in zip(drawn, law, strict=False):
        assert abs(words - float(probability * 2**32)) <= 1 + 1e-4


def test_an_arrival_every_step():
    system = instance([0.25, 0.75], deterministic(5))
    assert implied_law(loss.arrival_tables(system).gap)[1] == 2**32
    assert np.all(np.asarray(draw(system, 50, 20).gap) == 1)


def test_rare_arrivals_find_every_server_free():
    system = instance([1e-13, 1e-13], deterministic(5))
    assert np.all(np.asarray(draw(system, 50, 20).gap) == 6)


def test_mark_table_is_mix_times_service():
    rates, laws = [0.1, 0.3, 0.05], [[0, 0, 0.25, 0.75], geometric(3), [0, 0, 0, 0, 1.0]]
    system = instance(rates, laws)
    tables = loss.arrival_tables(system)
    d = system.max_duration
    assert (tables.shortest, tables.longest, tables.num_types) == (1, d, 3)
    drawn = implied_law(tables.mark)
    assert drawn[3 * tables.span :].sum() == 0
    drawn = drawn[: 3 * tables.span].reshape(3, tables.span)
    expected = system.arrival_rate[:, None] / system.total_rate * system.service_pmf
    assert drawn[:, d:].sum() == 0
    assert np.abs(drawn[:, :d] - expected * 2.0**32).max() <= 1 + 1e-4


def test_marks_skip_durations_that_no_type_has():
    tables = loss.arrival_tables(instance([0.2, 0.2], [deterministic(400), [0.0] * 397 + [0.5, 0.5]]))
    assert (tables.shortest, tables.longest, tables.span) == (398, 400, 4)
    single = loss.arrival_tables(instance([0.2, 0.2], deterministic(43)))
    assert (single.span, single.shortest, single.mark.size) == (1, 43, 2)


def test_a_server_is_held_for_the_duration_and_the_step_of_its_assignment():
    drawn = draw(instance([0.2, 0.4], [deterministic(2), deterministic(7)]))
    task_type, hold = np.asarray(drawn.task_type), np.asarray(drawn.hold)
    np.testing.assert_array_equal(hold, np.where(task_type == 0, 3, 8))
    assert 0 < task_type.mean() < 1


def test_joint_law_of_types_and_durations():
    """Chi-square over (type, duration), false alarm 1e-6."""
    laws = np.array([[0, 0.2, 0.5, 0.3], [0, 0.6, 0.1, 0.3], [0, 0.1, 0.1, 0.8]])
    system = instance([0.1, 0.2, 0.3], laws)
    drawn = draw(system)
    cell = np.asarray(drawn.task_type).astype(int) * 4 + np.asarray(drawn.hold) - 2
    seen = np.bincount(cell.ravel(), minlength=12).reshape(3, 4)[:, 1:]
    expected = (np.array([1, 2, 3]) / 6)[:, None] * laws[:, 1:] * cell.size
    assert seen.sum() == cell.size
    assert np.sum((seen - expected) ** 2 / expected) < chi2.isf(FALSE_ALARM, 8)


def test_gaps_types_and_ties_are_independent():
    """Chi-square of pairwise tables, also of neighbouring arrivals and replicas; false alarm 1e-6 in all."""
    drawn = draw(instance([0.2, 0.3], geometric(4), k=3), ties=True)
    mark = np.minimum(np.asarray(drawn.hold).astype(int) - 2, 4) + 5 * np.asarray(drawn.task_type).astype(int)
    gap = np.minimum(np.asarray(drawn.gap).astype(int), 5)
    ties = (np.asarray(drawn.tie) >> 29).astype(int)
    views = [mark, gap, ties[:, 0], ties[:, 1], ties[:, 2]]
    pairs = [(a, b) for i, a in enumerate(views) for b in views[:i]]
    pairs += [(x[1:], x[:-1]) for x in views] + [(x[:, 1:], x[:, :-1]) for x in views]
    for first, second in pairs:
        cells = np.zeros((first.max() + 1, second.max() + 1), int)
        np.add.at(cells, (first.ravel(), second.ravel()), 1)
        cells = cells[cells.any(axis=1)][:, cells.any(axis=0)]
        assert chi2_contingency(cells, correction=False).pvalue > FALSE_ALARM / len(pairs)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_one_tie_word_for_each_server_of_a_task(k):
    system = instance([0.2, 0.3], geometric(4), k)
    drawn = draw(system, 9, 11, ties=True, seed=4)
    assert drawn.tie.shape == (9, k, 11)
    keys = streams.replica_keys(4, streams.TIES, np.arange(11))
    for j in range(k):
        expected = streams.words(keys, jnp.arange(9, dtype=jnp.uint32)[:, None], j // 2)[j % 2]
        np.testing.assert_array_equal(drawn.tie[:, j], expected)
    assert draw(system, 9, 11).tie is None
    without = draw(system, 9, 11, k, seed=4)
    for field in ("task_type", "hold", "gap"):
        np.testing.assert_array_equal(getattr(without, field), getattr(drawn, field))


WIDEST = (254, np.uint8), (255, np.uint16), (65534, np.uint16), (65535, np.uint32)


@pytest.mark.parametrize(("d", "dtype"), WIDEST)
def test_waits_fit_their_dtype(d, dtype):
    system = instance([1e-12, 0.01], [deterministic(1), deterministic(d)])
    tables = loss.arrival_tables(system)
    assert tables.hold_dtype == dtype
    drawn = draw(system, 40, 5)
    assert drawn.hold.dtype == drawn.gap.dtype == dtype
    assert int(np.asarray(drawn.hold).max()) == d + 1
    assert alias.alias_table(np.ones(d + 2)).size == tables.gap.size


@pytest.mark.parametrize(("num_types", "dtype"), [(255, np.uint8), (256, np.uint16)])
def test_types_and_the_mark_of_none_fit_their_dtype(num_types, dtype):
    system = instance([0.5 / num_types] * num_types, deterministic(2))
    drawn = draw(system, 200, 30)
    assert drawn.task_type.dtype == loss.arrival_tables(system).type_dtype == dtype
    assert np.unique(drawn.task_type).tolist() == list(range(num_types))
