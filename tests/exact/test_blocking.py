"""Exact blocking probabilities, and the upper bound that they feed."""

import busy_chain
import numpy as np
import pytest

from lagjax.durations import geometric
from lagjax.errors import InputError
from lagjax.exact import exact_blocking, geometric_blocking
from lagjax.gallery import priority, specialist
from lagjax.instance import make_instance
from lagjax.lp import occ_upper_bound


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize(("rate", "mean"), [(0.3, 4.0), (1.0, 1.0), (0.9, 1.2), (1.0, 7.7), (0.05, 60.0), (0.9, 400.0)])
@pytest.mark.parametrize("servers", [3, 8, 41, 400])
def test_the_sum_is_the_last_state_of_the_chain(servers, rate, mean, k):
    truth = busy_chain.exact_blocking(servers, rate, mean, k)[0]
    np.testing.assert_allclose(geometric_blocking(servers, rate, mean, k), truth, rtol=1e-9, atol=1e-13)


def test_one_server_by_hand():
    # A free server is taken with probability L and then is busy for `mean` steps: L mean / (1 + L mean) of the time.
    assert geometric_blocking(1, 0.4, 5) == pytest.approx(2 / 3, rel=1e-14)
    assert geometric_blocking(7, 0.4, 5, 7) == pytest.approx(2 / 3, rel=1e-14)


def test_thousands_of_servers():
    """Rare and common blocking, to all figures: more servers block less, and B tends to 1 - 1/rho above load 1."""
    many = [geometric_blocking(n, 0.99, n / 0.9) for n in (1000, 3000, 10_000, 100_000)]
    assert all(np.diff(many) < 0) and many[-1] > 0
    few = [geometric_blocking(n, 0.5, 4800) for n in range(1500, 2400, 50)]
    assert np.all(np.diff(few) < 0)
    assert geometric_blocking(50_000, 1.0, 100_000) == pytest.approx(0.5, abs=1e-3)


def test_gallery_systems_and_their_bounds():
    """Lag, section 5: Specialist at load 0.8 has B = 0.133 and OPT(OCC-LP(B)) = 0.2986."""
    instance = specialist(0.8)
    assert exact_blocking(instance) == pytest.approx(0.133, abs=5e-4)
    assert occ_upper_bound(instance, exact_blocking(instance)) == pytest.approx(0.2986, abs=5e-5)
    assert exact_blocking(priority(0.8)) == pytest.approx(busy_chain.exact_blocking(8, priority(0.8).total_rate, 20)[0])


def test_two_means_block_as_one_chain_of_all_servers():
    instance = make_instance(np.ones((2, 30)), [geometric(20), geometric(80)], load=0.9, mix=[3, 1])
    single = make_instance(np.ones((1, 30)), geometric(35), load=0.9)
    assert exact_blocking(instance) == pytest.approx(exact_blocking(single), rel=0.1)
    assert exact_blocking(instance) != pytest.approx(exact_blocking(single), rel=1e-4)


@pytest.mark.parametrize("arguments", [(3, 0.5, 5, 4), (3, 0, 5, 1), (3, 1.5, 5, 1), (3, 0.5, 0.5, 1)])
def test_arguments_outside_their_range(arguments):
    with pytest.raises(InputError):
        geometric_blocking(*arguments)
