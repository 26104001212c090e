"""The slope on a log-log plot, and its standard error."""

import numpy as np
import pytest

from lagjax.stats import log_log_slope


def test_a_power_law_is_recovered():
    x = np.array([1, 4, 16, 64])
    slope = log_log_slope(
        x, 3 * x[:, None] ** -0.25 * np.array([1.0, 2.0, 0.5])
    )  # paired replicas: the line is certain
    assert slope.value == pytest.approx(-0.25, abs=1e-12) and slope.error == pytest.approx(0, abs=1e-12)
    assert np.isnan(log_log_slope(x, x[:, None]).error) and log_log_slope(x, x[:, None]).value == pytest.approx(1)


def test_no_slope_without_two_sizes_or_above_zero():
    assert np.isnan(log_log_slope([4, 4], [[1.0, 2.0], [2.0, 3.0]]).value)
    assert np.isnan(log_log_slope([4, 8], [[1.0, 2.0], [0.0, 0.0]]).value)


def test_the_error_is_the_spread_of_slopes():
    """400 repetitions: the ratio of the two has a relative deviation of 3.6%, so 20% is 5.6 of them."""
    rng = np.random.default_rng(2)
    x = np.array([1, 2, 4, 8, 16])
    fits = [log_log_slope(x, x[:, None] ** -0.5 * rng.gamma(9, 1 / 9, (5, 60))) for _ in range(400)]
    values, errors = np.array(fits).T
    assert (
        abs(values.mean() + 0.5) < 5 * values.std() / 20 + 0.002
    )  # the logarithm's bias cancels between equal spreads
    assert abs(values.std() / errors.mean() - 1) < 0.2
