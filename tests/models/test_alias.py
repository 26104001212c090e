"""Alias tables: the law that a table draws is counted exactly from the table itself, no sampling needed."""

import jax.numpy as jnp
import numpy as np
import pytest
from drawn_law import FALSE_ALARM, implied_law
from scipy.stats import chi2

from lagjax.durations import geometric
from lagjax.gallery import journal
from lagjax.models import alias, streams


def laws():
    rng = np.random.default_rng(1)
    yield from ([1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 0.0, 1.0], [1, 1, 1], [3.0, 5.0])
    yield from ([1 - 1e-12, 1e-12], [2.0**-32, 1 - 2.0**-32], [2.0**-34] * 3 + [1 - 3 * 2.0**-34])
    yield from (np.ones(n) for n in (2, 7, 64, 257))
    yield from (rng.dirichlet(np.full(n, 0.3)) for n in (2, 3, 5, 8, 31, 130, 1000))
    yield from (geometric(10), geometric(43), journal().service_pmf[0])


@pytest.mark.parametrize("law", list(laws()), ids=lambda law: f"n{len(law)}")
def test_table_draws_the_integer_law_exactly(law):
    law = np.asarray(law, float)
    table = alias.alias_table(law)
    assert table.dtype == np.uint32
    assert table.size == 1 << (len(law) - 1).bit_length()
    mass = alias.integer_law(law)
    drawn = implied_law(table)
    np.testing.assert_array_equal(drawn[: len(law)], mass)
    assert drawn[len(law) :].sum() == 0
    assert mass.sum() == 2**32
    # 1e-4 words: rounding of the float64 quotients
    assert np.abs(mass - law / law.sum() * 2.0**32).max() <= 1 + 1e-4
    assert np.all(mass[law == 0] == 0)


def test_leftover_words_go_to_the_largest_remainders_and_then_the_earliest():
    thirds = alias.integer_law([1, 1, 1])
    assert (thirds - 2**32 // 3).tolist() == [1, 0, 0]
    assert alias.integer_law([2.0**-33, 2.0**-33, 1 - 2.0**-32]).tolist() == [1, 0, 2**32 - 1]
    assert alias.integer_law([2.0**-34, 3 * 2.0**-34, 1 - 2.0**-32]).tolist() == [0, 1, 2**32 - 1]


@pytest.mark.parametrize("law", [[0.1, 0.2, 0.7], [0.5, 0.5], [0, 0.3, 0, 0.3, 0.4], list(range(1, 17))])
def test_draw_on_both_sides_of_every_threshold(law):
    """Within a column the drawn index changes once, so these words fix the drawn law entirely."""
    table = alias.alias_table(law)
    bits = table.size.bit_length() - 1
    width = 2**32 >> bits
    for column, entry in enumerate(table.tolist()):
        threshold, other = entry >> bits, entry & (table.size - 1)
        inside = [0, 1, threshold - 1, threshold, threshold + 1, width // 2, width - 1]
        inside = np.array([w for w in inside if 0 <= w < width])
        words = jnp.asarray((column * width + inside).astype(np.uint32))
        expected = np.where(inside < threshold, column, other)
        np.testing.assert_array_equal(alias.draw(jnp.asarray(table), words), expected)


def test_table_of_one_entry():
    table = alias.alias_table([3.0])
    assert table.shape == (1,)
    drawn = alias.draw(jnp.asarray(table), jnp.asarray([[0, 1], [2**31, 2**32 - 1]], dtype=jnp.uint32))
    assert drawn.dtype == jnp.int32
    assert drawn.tolist() == [[0, 0], [0, 0]]


@pytest.mark.parametrize("law", [geometric(20), journal().service_pmf[0]], ids=["geometric", "lognormal"])
def test_drawn_frequencies(law):
    """Pearson's chi-square of a million draws, cells pooled to 20 expected or more; false alarm 1e-6."""
    keys = streams.replica_keys(3, streams.EXOGENOUS, np.arange(1000))
    words = streams.words(keys, jnp.arange(500, dtype=jnp.uint32)[:, None], 0)
    drawn = alias.draw(jnp.asarray(alias.alias_table(law)), jnp.stack(words))
    assert drawn.size == 1_000_000
    assert int(drawn.max()) < len(law)
    seen, expected = np.bincount(np.ravel(drawn), minlength=len(law)), law * drawn.size
    order = np.argsort(-expected)
    seen, expected = seen[order], expected[order]
    large = int(np.sum(expected >= 20))
    seen = np.append(seen[:large], seen[large:].sum())
    expected = np.append(expected[:large], expected[large:].sum())
    keep = expected > 5
    assert expected[~keep].sum() <= 5
    statistic = np.sum((seen[keep] - expected[keep]) ** 2 / expected[keep])
    assert statistic < chi2.isf(FALSE_ALARM, keep.sum() - 1)
