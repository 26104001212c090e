"""M/M/m/n against mpmath: values, logarithms, derivatives, up to n = 1,000 and loads from 1e-6 to 1e6."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import pytest
from plain_routing import weights

from lagjax import InputError
from lagjax.loss_routing import blocking, erlang_b, erlang_c, log_blocking, mean_number, queue

SIZES = [(1, 1), (1, 2), (2, 2), (3, 7), (10, 10), (10, 50), (40, 41), (1, 1000), (500, 1000), (1000, 1000)]
LOADS = [1e-6, 1e-3, 0.1, 0.9, 1.0, 3.0, 10.0, 47.0, 495.0, 999.0, 1000.0, 1100.0, 1e4, 1e6]
EXACT = 1e-10


@pytest.fixture(scope="module")
def truth():
    """(size, load) of B, 1 - B, L, free servers, log B, variance of the number: in mpmath with 60 digits."""
    with mpmath.workdps(60):
        found = {}
        for m, n in SIZES:
            for load in LOADS:
                w = weights(m, n, load)
                total = mpmath.fsum(w)
                mean = mpmath.fsum(x * v for x, v in enumerate(w)) / total
                variance = mpmath.fsum((x - mean) ** 2 * v for x, v in enumerate(w)) / total
                idle = mpmath.fsum((m - x) * v for x, v in enumerate(w[:m])) / total
                b = w[-1] / total
                found[m, n, load] = [b, 1 - b, mean, idle, mpmath.log(b), variance]
        return found


def close(value, exact):
    exact = np.array([float(x) for x in exact]).reshape(value.shape)
    np.testing.assert_allclose(np.asarray(value), exact, rtol=EXACT, atol=1e-300)


def grid():
    m, n = (np.array(side)[:, None] for side in zip(*SIZES, strict=True))
    return m, n, np.array(LOADS)


def test_values(truth):
    m, n, load = grid()
    with jax.enable_x64(True):
        found = queue(m, n, load)
        logs = log_blocking(m, n, load)
        for value, place in zip((*found, logs), range(5), strict=True):
            assert value.dtype == np.float64
            close(value, [row[place] for row in truth.values()])
        close(blocking(m, n, load), [row[0] for row in truth.values()])
        close(mean_number(m, n, load), [row[2] for row in truth.values()])


def test_what_underflows_has_a_logarithm():
    with jax.enable_x64(True):
        assert blocking(1000, 1000, 1e-6) == 0.0
        value, gradient = jax.jit(jax.value_and_grad(lambda r: log_blocking(1000, 1000, r)))(1e-6)
    with mpmath.workdps(60):
        w = weights(1000, 1000, 1e-6)
        assert float(value) == pytest.approx(float(mpmath.log(w[-1] / mpmath.fsum(w))), rel=EXACT)
    assert float(value) < -10_000 and float(gradient) == pytest.approx((1000 - 1e-6) / 1e-6, rel=EXACT)


def test_derivatives_in_the_load(truth):
    """d log B / dr = (n - L) / r and dL/dr = Var / r, for weights of the form c_x r^x."""
    m, n, load = grid()
    with jax.enable_x64(True):
        every = np.broadcast_to(load, (len(SIZES), len(LOADS)))
        of_b, of_l = (jax.grad(lambda r, f=f: jnp.sum(f(m, n, r)))(every) for f in (blocking, mean_number))
    rows = [(size[1], load, row) for (*size, load), row in truth.items()]
    with mpmath.workdps(60):
        close(of_b, [row[0] * (room - row[2]) / mpmath.mpf(r) for room, r, row in rows])
        close(of_l, [row[5] / mpmath.mpf(r) for _, r, row in rows])


def test_erlang_b_and_c():
    servers = np.array([1, 2, 10, 100, 1000])[:, None]
    load = np.array([1e-6, 0.1, 0.999, 1.0, 5.0, 9.9999, 10.0, 99.0, 100.0, 150.0, 990.0, 1000.0, 1e6])
    with jax.enable_x64(True):
        b, c = erlang_b(servers, load), erlang_c(servers, load)
        slope = jax.grad(lambda r: erlang_c(10, r))(10.0)
    with mpmath.workdps(400):
        exact = [[blocking_c(m, r) for r in load.tolist()] for m in servers.ravel().tolist()]
    close(b, [pair[0] for row in exact for pair in row])
    close(c, [pair[1] for row in exact for pair in row])
    b10 = float(b[2, 6])  # Nino-Mora: C'(m) at r = m is (1 - B) / (m B)
    assert slope == pytest.approx((1 - b10) / (10 * b10), rel=1e-9)


def blocking_c(m, r):
    w = weights(m, m, r)
    b = w[-1] / mpmath.fsum(w)
    return b, m * b / (m - mpmath.mpf(r) * (1 - b))


def test_single_precision_where_the_caller_has_it():
    found = queue(3, 7, jnp.float32(2.0))
    assert all(value.dtype == np.float32 for value in found)
    with jax.enable_x64(True):
        np.testing.assert_allclose(found, queue(3, 7, 2.0), rtol=1e-6)


def test_faults():
    with pytest.raises(InputError, match="does not hold"):
        blocking(3, 2, 1.0)
    with pytest.raises(InputError, match="whole numbers"):
        blocking(1.5, 2, 1.0)
