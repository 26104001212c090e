"""The hypergeometric sampler: its law against SciPy's, log ratios against exact sums, envelope, determinism.

Each statistical test states its bound from the test's own law; together they raise a false alarm with probability 1e-6.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import binomtest, chi2, hypergeom, kstest, norm

from lagjax.models import hypergeometric as sampler
from lagjax.models import streams

FALSE_ALARM = 1e-6  # of all statistical tests of this file together
TESTS = 300  # more than there are; checked at the end of `test_law_on_a_grid`
NORMAL = norm.isf(FALSE_ALARM / TESTS / 2)
ROWS, LANES = 48, 2**15  # the sampler compiles for seconds: one shape for all statistical tests,
FEW = 5000  # and one of few draws

pytestmark = pytest.mark.rounding
draw = jax.jit(sampler.hypergeometric)
law_in_jit = jax.jit(sampler._law)


def draws(cases, seed):
    """(ROWS, LANES) draws for as many cases (good, total, sample)."""
    keys = streams.replica_keys(seed, 2, np.arange(LANES))
    good, total, sample = np.array(cases, np.int32).T[:, :, None]
    slot = np.arange(ROWS, dtype=np.uint32)[:, None] * np.uint32(sampler.TRIES)
    return np.asarray(draw(keys, np.uint32(0), slot, np.broadcast_to(good, (ROWS, LANES)), total, sample))


def few_draws(cases, seed):
    """(keys, event, slot, good, total, sample) for FEW draws, of the cases in turn."""
    case = np.arange(FEW) % len(cases)
    keys = streams.replica_keys(seed, 2, np.arange(FEW) // len(cases))
    slot = case.astype(np.uint32) * np.uint32(sampler.TRIES)
    return keys, np.uint32(0), slot, *np.array(cases, np.int32)[case].T


def law_of(good, total, sample):
    """(mode, law) of one case, as the sampler sees it."""
    mode, law = jax.device_get(law_in_jit(*(np.array([x], np.int32) for x in (good, total, sample))))
    return int(mode[0]), law


def exact_log_ratio(good, total, sample, mode, y):
    """log p(mode + y) - log p(mode) in float64, from sums of log p(m + 1) / p(m), each of them exact to 1e-15."""
    a, b, c, d = mode, sample - mode, good - mode, total - good - sample + mode
    j = np.arange(1.0, max(y.max(), 0) + 1)
    up = np.r_[0, np.cumsum(np.log((b - j + 1) * (c - j + 1) / ((a + j) * (d + j))))]
    j = np.arange(1.0, max(-y.min(), 0) + 1)
    down = np.r_[0, np.cumsum(np.log((a - j + 1) * (d - j + 1) / ((b + j) * (c + j))))]
    return np.where(y >= 0, up[np.maximum(y, 0)], down[np.maximum(-y, 0)])


def support(good, total, sample):
    return max(0, good + sample - total), min(good, sample)


def variance(good, total, sample):
    return sample * (good / total) * (1 - good / total) * (total - sample) / max(total - 1, 1)


def pooled_chi_square(x, case, least=25):
    """p-value of the counts of x, neighbours pooled until `least` are expected; binomial where that leaves one cell."""
    good, total, sample = case
    low, high = support(*case)
    least = max(least, x.size // 200)
    near = int(9 * np.sqrt(variance(*case))) + 40
    mode = (good + 1) * (sample + 1) // (total + 2)
    first, last = max(low, mode - near), min(high, mode + near)
    assert first <= x.min() and x.max() <= last, case
    p = hypergeom(total, good, sample).pmf(np.arange(first, last + 1))
    seen = np.bincount(x - first, minlength=p.size)
    cumulative = np.r_[0, np.cumsum(p)] * x.size
    starts = [0]
    last_start, end = 0.0, cumulative[-1]
    for i, below in enumerate(cumulative[:-1].tolist()):
        if below - last_start >= least and end - below >= least:
            starts.append(i)
            last_start = below
    if len(starts) == 1:
        return binomtest(int(x.size - seen[mode - first]), x.size, float(1 - min(p[mode - first], 1))).pvalue
    observed, expected = np.add.reduceat(seen, starts), np.add.reduceat(p, starts) * x.size
    return chi2.sf(np.sum((observed - expected) ** 2 / expected), len(starts) - 1)


def check_moments(x, case):
    """Mean and variance, within NORMAL standard errors of the law's own."""
    good, total, sample = case
    mean, variance, _, excess = map(float, hypergeom(float(total), float(good), float(sample)).stats("mvsk"))
    x = x.astype(np.float64)
    assert abs(x.mean() - mean) <= NORMAL * np.sqrt(variance / x.size), case
    error = variance * np.sqrt((excess + 2) / x.size)
    assert abs(np.mean((x - mean) ** 2) - variance) <= NORMAL * error, case


# Small laws in full; the cells of larger ones tiny, empty, balanced and lopsided.
SMALL = [(g, t, n) for t in (1, 2, 3, 5, 8) for g in range(t + 1) for n in range(t + 1)]
EDGES = [
    (0, 1000, 10), (1000, 1000, 10), (10, 1000, 0), (10, 1000, 1000), (1, 1000, 1), (999, 1000, 1), (500, 1000, 1),
    (1, 2**24, 1), (1, 2**24, 65536), (1, 2**24, 2**23), (2**24 - 1, 2**24, 65536), (2**24, 2**24, 65536),
    (0, 2**24, 65536), (2**23, 2**24, 0), (2**23, 2**24, 2**24), (2**23, 2**24, 1), (3, 2**25, 2**24),
    (256, 2**24, 65536), (65536, 2**24, 256), (2**24 - 256, 2**24, 65536), (65536, 2**24, 2**24 - 1),
    (0, 2**25, 1), (2**25, 2**25, 2**25), (2**25 - 1, 2**25, 2**25 - 1),
]  # fmt: skip
GRID = [
    (10, 30, 12), (100, 1000, 300), (37, 74, 37), (990, 1000, 500), (500, 1000, 990),
    (3000, 4000, 1500), (17, 4096, 2000),
    (20000, 2**24, 65536), (2**14, 2**18, 2**10), (2**20, 2**24, 2048), (2**22, 2**24, 2**8), (70, 10**6, 400000),
    (999000, 10**6, 700000), (4096, 8192, 4096), (65536, 2**24, 65536), (2**24 - 9000, 2**24, 2**23),
    (8100, 2**25, 2**24), (1000, 2**25, 2**24), (60000, 2**17, 1000),
]  # fmt: skip
LARGE = [
    (g * 2**16, 2**24, n) for n in (65536, 2**20, 2**23) for g in (8, 64, 128, 251)
] + [
    (2**24, 2**25, 2**24), (2**25 - 2**17, 2**25, 2**22), (12345678, 2**25, 131072), (2**24 + 1, 2**25 - 1, 2**23 + 1),
    (10**5, 2**20, 2**19), (5000, 20000, 10000), (2**17, 2**24, 2**18), (300000, 2**24, 300000),
]  # fmt: skip


def near_border(value):
    """Cases whose variance lies within 1% below and above a border between two ways to draw."""
    cases = []
    for total, share in (
        (300, 0.5),
        (4000, 0.3),
        (10**5, 0.02),
        (10**5, 0.6),
        (2**24, 1e-3),
        (2**24, 0.5),
        (2**25, 0.9),
    ):
        for side in (0.992, 1.008):
            good = int(total * share)
            limit = total // 2
            if variance(good, total, limit) < 1.02 * value:
                continue
            low, high = 0, limit
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if variance(good, total, middle) <= side * value else (low, middle)
            cases.append((good, total, low if side < 1 else high))
    return cases


BORDERS = near_border(sampler.INVERT_UP_TO) + near_border(sampler.MOUNTAIN_UP_TO)
ALL = SMALL + EDGES + GRID + BORDERS + LARGE


def test_the_cases_cover_all_ways_to_draw():
    v = np.array([variance(*case) for case in BORDERS])
    for border in (sampler.INVERT_UP_TO, sampler.MOUNTAIN_UP_TO):
        near = np.abs(v / border - 1) < 0.05
        assert np.sum(near & (v <= border)) >= 3 and np.sum(near & (v > border)) >= 3
    v = np.array([float(law_of(*case)[1].variance[0]) for case in ALL])
    np.testing.assert_allclose(v, [variance(*case) for case in ALL], rtol=1e-5)
    inverted, normal = v <= sampler.INVERT_UP_TO, v > sampler.MOUNTAIN_UP_TO
    assert inverted.sum() > 100 and normal.sum() > 20 and np.sum(~inverted & ~normal) > 15


def test_law_on_a_grid():
    """Support, counts and moments of every case."""
    tests = 0
    for first in range(0, len(ALL), ROWS):
        found = draws((ALL[first:] + ALL)[:ROWS], seed=11 + first)
        assert found.dtype == np.int32
        for case, x in zip(ALL[first : first + ROWS], found, strict=False):
            low, high = support(*case)
            assert low <= x.min() and x.max() <= high, case
            if low == high:
                continue
            assert pooled_chi_square(x, case) > FALSE_ALARM / TESTS, case
            tests += 1
            if variance(*case) > 1:
                check_moments(x, case)
                tests += 2
    assert 200 < tests < TESTS - 20


def test_mean_and_variance_of_large_populations():
    """The standard error of the variance is 0.2%: one that is 3% off is 15 of them away."""
    cases = [(2**23, 2**24, 65536), (2**20, 2**24, 65536), (2**22 + 5, 2**25, 2**24)]
    found = draws(cases * (ROWS // 3), seed=5)
    for row, case in enumerate(cases):
        check_moments(found[row::3].ravel(), case)
        assert pooled_chi_square(found[row::3].ravel(), case) > FALSE_ALARM / TESTS, case


def test_inversion_follows_the_law_word_by_word():
    """Words in the middle of 2^14 equal intervals: each value gets its share of them, within one at either end."""
    lanes = 2**14
    words = jnp.asarray(((np.arange(lanes) + 0.5) * 2**32 / lanes).astype(np.uint32))
    inverted = jax.jit(lambda law: sampler._invert(law, jnp.ones(lanes, bool), lambda _: words[None]))
    for case in [
        (3, 10, 4),
        (1, 2**24, 2**23),
        (2, 5, 1),
        (40, 10**6, 300000),
        (30, 60, 30),
        (2**24 - 20, 2**24, 2**23),
    ]:
        mode, law = law_of(*case)
        law = sampler._Law(*(jnp.broadcast_to(x, lanes) for x in law))
        x = mode + np.asarray(inverted(law)).astype(int)
        low, high = support(*case)
        assert low <= x.min() and x.max() <= high
        p = hypergeom(case[1], case[0], case[2]).pmf(np.arange(low, high + 1))
        assert np.all(np.abs(np.bincount(x - low, minlength=p.size) - lanes * p) <= 2.02)


def test_small_variances_are_inverted():
    """Stirling's form is 0.9% off where a cell is empty: below a variance of 16 the sampler must not use it."""
    given = few_draws([c for c in SMALL + BORDERS if 0.1 < variance(*c) <= sampler.INVERT_UP_TO], seed=21)

    @jax.jit
    def inverted(keys, event, slot, good, total, sample):
        mode, law = sampler._law(good, total, sample)
        return mode + sampler._invert(law, law.variance > 0, sampler._Words(keys, event, slot)).astype(jnp.int32)

    np.testing.assert_array_equal(draw(*given), inverted(*given))


@pytest.mark.parametrize("word", [0, 2**32 - 1])
def test_extreme_words_stay_in_the_law(word):
    """Whatever the other lanes need: one whose law is wide keeps the loops going."""
    cases = [
        (5, 2**20, 5),
        (0, 7, 3),
        (7, 7, 3),
        (1, 1, 1),
        (2**24, 2**24, 65536),
        (1, 2**25, 1),
        (20, 40, 20),
        (64, 128, 64),
    ]
    invert = jax.jit(lambda law, todo: sampler._invert(law, todo, lambda _: jnp.full((2, todo.size), word, jnp.uint32)))
    laws = [law_of(*case)[1] for case in cases]
    alone = [float(invert(law, jnp.ones(1, bool))[0]) for law in laws]
    together = invert(sampler._Law(*map(jnp.concatenate, zip(*laws, strict=True))), jnp.ones(len(cases), bool))
    assert np.asarray(together).tolist() == alone
    for case, z in zip(cases, alone, strict=True):
        p = hypergeom(case[1], case[0], case[2])
        mode = law_of(*case)[0]
        assert p.pmf(mode + z) > 1e-11 * p.pmf(mode)


def wide_cases(above, below, count, seed):
    """Random cases with variance in a range, populations up to 2^25 and cells of very different size."""
    rng, cases = np.random.default_rng(seed), []
    while len(cases) < count:
        total = int(2 ** rng.uniform(6, 25))
        good, sample = (
            int(total * (rng.random() if rng.random() < 0.5 else 10 ** rng.uniform(-5, 0))) for _ in range(2)
        )
        good, sample = (total - x if rng.random() < 0.3 else x for x in (good, sample))
        if above < variance(good, total, sample) <= below:
            cases.append((good, total, sample))
    return cases


FORMS = {
    "stirling": (sampler.INVERT_UP_TO, sampler.MOUNTAIN_UP_TO, 2e-6, 3e-6, 2e-6),
    "series": (sampler.MOUNTAIN_UP_TO, np.inf, 1e-6, 5e-7, 5e-7),
}


@jax.jit
def by_stirling(law, y):
    return sampler._log_ratio_by_stirling(law)(y)


@jax.jit
def by_series(law, y):
    log_ratio, reach = sampler._log_ratio_by_series(law)
    return log_ratio(y), reach


@pytest.mark.parametrize("form", FORMS)
def test_log_ratios_are_accurate_in_float32(form):
    """Where p > 1e-12 of the mode's: relative to max(1, |log ratio|), and the law's total variation."""
    above, below, on_average, relative, in_law = FORMS[form]
    rmse = []
    for case in [*wide_cases(above, below, 150, seed=2), *(c for c in ALL if above < variance(*c) <= below)]:
        mode, law = law_of(*case)
        low, high = (int(x[0]) for x in (law.low, law.high))
        far = int(12 * np.sqrt(law.variance[0]))
        y = np.linspace(max(low, -far), min(high, far), 1500).round().astype(int)  # one shape, one program
        log_ratio = exact_log_ratio(*case, mode, y)
        seen = log_ratio > np.log(1e-12)
        if form == "series":
            found, reach = map(np.asarray, by_series(law, jnp.asarray(y, jnp.float32)))
            inside = np.abs(y) <= reach
            assert np.all(log_ratio[~inside] < np.log(1e-9)), case  # 6.5 deviations
            seen &= inside
        else:
            found = np.asarray(by_stirling(law, jnp.asarray(y, jnp.float32)))
        assert found.dtype == np.float32
        y, log_ratio, found = y[seen], log_ratio[seen], found[seen]
        error = np.abs(found - log_ratio)
        p = np.exp(log_ratio) / np.exp(log_ratio).sum()
        bound = relative * np.maximum(1, -log_ratio)
        if form == "stirling":  # the next term of the series matters in cells of a few items, where p is below 1e-5
            cells = np.abs(np.stack([low - y, high - y])).min(axis=0) + 0.5
            bound = bound + 31 / 40320 / cells**5
            assert np.all(p[cells < 3] < 1e-5), case
        assert np.all(error <= bound), case
        assert p @ error < in_law, case
        rmse.append(np.sqrt(p @ error**2))
    assert np.sqrt(np.mean(np.square(rmse))) < on_average


def test_slope_and_mode_are_exact():
    for case in wide_cases(0.1, np.inf, 300, seed=4) + ALL:
        good, total, sample = case
        mode, law = law_of(*case)
        assert mode == (good + 1) * (sample + 1) // (total + 2)
        a, b, c, d = mode, sample - mode, good - mode, total - good - sample + mode
        ours = (2 * b + 1) * (2 * c + 1), (2 * a + 1) * (2 * d + 1)
        exact = np.log1p((ours[0] - ours[1]) / ours[1])
        if variance(*case) > sampler.INVERT_UP_TO:  # where the slope is used
            assert abs(float(law.slope[0]) - exact) * 7 * np.sqrt(variance(*case)) < 2e-6
        np.testing.assert_allclose(float(law.mean[0]), (sample * good - mode * total) / total, rtol=1e-6, atol=1e-9)
        assert (int(law.low[0]) + mode, int(law.high[0]) + mode) == support(*case)


def test_normal_envelope_holds_to_seven_deviations():
    """The law lies below the envelope over the whole interval of normal draws that round to a value."""
    border = sampler.MOUNTAIN_UP_TO
    cases = [c for c in BORDERS + LARGE if border < variance(*c)] + wide_cases(border, 1.5 * border, 150, seed=6)
    cases += [(2**25 - 50000, 2**25, 1400000), (2008, 2**25, 2**25 - 8), (2100, 2**25, 2**25 // 48 * 46)]
    for total in (
        2**13,
        2**16,
        2**20,
        2**25,
    ):  # the most lopsided cells: one of them as small as the variance lets it be
        for few in (border * 1.001, border * 1.05):
            good = int(np.sqrt(few * total))
            while variance(good, total, good) <= border and good < total // 2:
                good += 1
            cases += [(good, total, good), (total - good, total, good), (good, total, total - good)]
    tried = 0
    for case in cases:
        if variance(*case) <= border:
            continue
        tried += 1
        mode, law = law_of(*case)
        deviation, off = np.sqrt(variance(*case)), float(law.mean[0])
        y = np.arange(int(np.ceil(off - 7 * deviation)), int(np.floor(off + 7 * deviation)) + 1)
        log_ratio = exact_log_ratio(*case, mode, y)
        wide = np.sqrt(float(sampler._WIDER)) * deviation
        x = np.maximum(np.abs(y - off - 0.5), np.abs(y - off + 0.5)) / wide
        assert np.max(log_ratio + x**2 / 2 - float(sampler._ABOVE)) <= 0, case
        assert float(sampler._log_ratio_by_series(law)[1][0]) > 6.6 * deviation, case
        exact = hypergeom(case[1], case[0], case[2])
        for reach, mass in ((7, 1e-11), (6.5, 2e-10)):  # beyond the envelope; beyond the last normal draw
            below, above = np.ceil(mode + off - reach * deviation) - 1, np.floor(mode + off + reach * deviation)
            assert exact.cdf(below) + exact.sf(above) < mass, case
    assert tried > 170


def test_table_mountain_covers_the_law():
    """Ratio of uniforms: |x - centre| sqrt(p(y) / p(mode)) is at most half the height for every x that rounds to y."""
    cases = wide_cases(sampler.INVERT_UP_TO, sampler.MOUNTAIN_UP_TO, 300, seed=12)
    for case in cases + wide_cases(sampler.INVERT_UP_TO, 1.5 * sampler.INVERT_UP_TO, 100, seed=13):
        mode, law = law_of(*case)
        y = np.arange(int(law.low[0]), int(law.high[0]) + 1)
        y = y[np.abs(y) < 12 * np.sqrt(variance(*case)) + 20]
        root = np.exp(exact_log_ratio(*case, mode, y) / 2)
        off = y - float(law.mean[0]) - 0.5
        reach = np.maximum(np.abs(off), np.abs(off + 1)) * root
        height = float(sampler._MOUNTAIN[0]) * np.sqrt(variance(*case) + 0.5) + float(sampler._MOUNTAIN[1])
        assert reach.max() <= height / 2 * (1 + 1e-6), case


def test_standard_normal():
    """Both halves of the law over a grid of words, the ends and random words."""
    size = np.r_[np.arange(0, 2**31, 2**31 // 400001), np.arange(4000), 2**31 - 1 - np.arange(4000)].astype(np.uint32)
    function = jax.jit(sampler._standard_normal)
    positive, negative = np.asarray(function(size * 2)), np.asarray(function(size * 2 + 1))
    assert positive.dtype == np.float32
    np.testing.assert_array_equal(positive, -negative)
    exact = norm.isf((size + 0.5) / 2**32)
    error = np.abs(positive - exact)
    assert np.all(error[exact < 5] < 1.5e-6)
    assert np.all(error < 3e-3)  # the last words, each of probability 2^-32
    assert 6.3 < positive.max() < 6.4
    words = np.random.default_rng(8).integers(0, 2**32, 10**6, dtype=np.uint32)
    assert kstest(np.asarray(function(words)), norm.cdf).pvalue > FALSE_ALARM / TESTS


def test_draws_depend_on_key_event_and_slot_alone():
    """Whatever the batch and the place in it."""
    rng = np.random.default_rng(3)
    total = (2 ** rng.uniform(0, 25, FEW)).astype(np.int32)
    good, sample = ((rng.random(FEW) * (total + 1)).astype(np.int32) for _ in range(2))
    keys = np.asarray(streams.replica_keys(7, 2, np.arange(FEW)))
    slot = rng.integers(0, 2**32, FEW, dtype=np.uint32)
    event = np.uint32(2**32 - 3)
    found = np.asarray(draw(keys, event, slot, good, total, sample))
    for chosen in (rng.permutation(FEW), rng.permutation(FEW)[:777]):
        part = draw(keys[:, chosen], event, *(x[chosen] for x in (slot, good, total, sample)))
        np.testing.assert_array_equal(part, found[chosen])
    for other in (
        (keys[:, ::-1], event, slot),
        (keys, event + np.uint32(1), slot),
        (keys, event, slot + np.uint32(64)),
    ):
        assert np.mean(np.asarray(draw(*other, good, total, sample)) != found) > 0.5


def test_draws_in_64_bit_mode_are_the_same():
    given = few_draws([(3, 10, 4), (100, 1000, 300), (2**20, 2**24, 65536)], seed=1)
    narrow = draw(*given)
    with jax.enable_x64(True):
        wide = draw(*given)
    assert wide.dtype == np.int32
    np.testing.assert_array_equal(wide, narrow)
