"""What is left of a start: nothing in stationary runs, a drift where it fades, memory where it stays."""

import numpy as np
import pytest
from scipy.stats import binom, t

from lagjax.stats import FALSE_ALARM, NOT_STATIONARY, left_of_start, pooled_relaxation, start, told


def halves(rng, length, replicas, first=None, shape=()):
    """Means of the two halves of Gaussian paths of relaxation time 1 over two windows of `length`, from `first` or stationary."""
    step = 0.05
    now = rng.normal(size=(*shape, replicas)) if first is None else np.full((*shape, replicas), float(first))
    kept = np.exp(-step)
    sums = []
    for _ in range(2):
        total = np.zeros_like(now)
        for _ in range(round(length / step)):
            now = kept * now + np.sqrt(1 - kept**2) * rng.normal(size=now.shape)
            total += now
        sums.append(total * step / length)
    return sums


def test_the_memory_of_two_relaxation_times():
    """MEMORY is the correlation of such windows: 4.9 standard errors, 1e-6, and 0.01 for the steps of the path and the ranks."""
    first, second = halves(np.random.default_rng(0), start.SPAN, 4000)
    found = left_of_start(first, second)
    assert np.arctanh(found.memory) == pytest.approx(np.arctanh(start.MEMORY), abs=4.9 / np.sqrt(3997) + 0.015)
    assert found.by_memory > 1e-3


def test_stationary_runs_are_called_so():
    """5,000 figures of 40 replicas over 8 relaxation times: no more false alarms than 2 x FALSE_ALARM allows, at 1e-6."""
    first, second = halves(np.random.default_rng(1), 4, 40, shape=(5000,))
    called = left_of_start(first, second).stationary()
    assert np.sum(called == 0) <= binom.ppf(1 - 1e-6, 5000, 2 * FALSE_ALARM)
    assert not np.isnan(called).any()


def test_a_start_that_fades_shows_as_drift():
    found = left_of_start(*halves(np.random.default_rng(2), 3, 64, first=3))
    assert found.by_drift < FALSE_ALARM and found.stationary() == 0
    first, second = halves(np.random.default_rng(2), 3, 64, first=3)
    apart = second - first
    assert found.drift.mean == pytest.approx(apart.mean())
    assert found.by_drift == pytest.approx(2 * t.sf(abs(apart.mean()) / (apart.std(ddof=1) / 8), 63))


def test_a_start_that_stays_shows_as_memory():
    """A random walk as good as still: the mean does not drift, and yet each replica is where it was."""
    rng = np.random.default_rng(3)
    first = rng.normal(size=64)
    found = left_of_start(first, first + 0.1 * rng.normal(size=64))
    assert found.by_drift > FALSE_ALARM and found.by_memory < FALSE_ALARM
    assert found.stationary() == 0


def test_bundles_count_once():
    rng = np.random.default_rng(4)
    shared = rng.normal(size=(2, 8)).repeat(16, axis=1)
    assert left_of_start(*shared, bundle=16).by_drift == pytest.approx(left_of_start(*shared[:, ::16]).by_drift)
    noise = rng.normal(size=(2, 128))
    loose, strict = left_of_start(*noise), left_of_start(*noise, bundle=16)
    assert (
        loose.memory == strict.memory and strict.by_memory < loose.by_memory
    )  # both near 1: fewer are less sure of that


@pytest.mark.parametrize("room", [1, 4, 30])
@pytest.mark.parametrize("rate", [0.5, 1.0, 1.7])
def test_the_relaxation_of_one_queue_is_its_spectral_gap(rate, room):
    chain = np.diag(np.full(room, rate), 1) + np.diag(np.ones(room), -1)
    chain -= np.diag(chain.sum(axis=1))
    gap = np.sort(-np.linalg.eigvals(chain).real)[1]
    assert pooled_relaxation(rate, 1.0, room) == pytest.approx(1 / gap)


def test_the_relaxation_of_a_queue_without_end():
    assert pooled_relaxation(0.99, 1.0) == pytest.approx(1 / (1 - np.sqrt(0.99)) ** 2)
    assert pooled_relaxation(0.99, 1.0, 10**6) == pytest.approx(pooled_relaxation(0.99, 1.0), rel=1e-3)
    assert pooled_relaxation(1.0, 1.0) == pooled_relaxation(2.0, 1.0) == np.inf


def test_what_cannot_be_known_is_not_said():
    nothing = np.full((2, 3, 10), np.nan)
    assert np.isnan(left_of_start(*nothing).stationary()).all()
    assert told(left_of_start([1.0], [2.0]).stationary()) is None
    assert told(left_of_start(np.ones(5), np.ones(5)).stationary()) is True  # nothing varies, nothing moves
    assert told(left_of_start(np.ones(5), 2 * np.ones(5)).stationary()) is False
    assert "stationary" in NOT_STATIONARY
