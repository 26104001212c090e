"""Exact hypergeometric and binomial draws in 32-bit arithmetic, for populations up to 2^25: JAX has none of the former.

X = number of good items among `sample` drawn without replacement from `total`, of which `good` are good. Everything is
measured from the mode m, whose four cells are

    a = m,  b = sample - m,  c = good - m,  d = total - good - sample + m,

and log p(m + z) - log p(m) is computed as a sum of terms of one sign that are small where p is not: no difference of large
log-factorials is ever formed, so float32 gives it to 1e-6. Quantities that would cancel (the mode itself, the mean's distance
from it, the slope at it) are exact integers, formed modulo 2^32. Three ways to draw, by the variance:

- up to 16: inversion outward from the mode over relative weights (a few steps; n = 1 is one step);
- up to 2000: ratio of uniforms in Stadlober's table mountain (1990), which needs no tuning and accepts 73%;
- beyond: rejection from a normal law 6% wider, accepting 95%, with the log ratio as a polynomial. Its envelope holds to 7
  standard deviations and its 32-bit draws end at 6.5: what lies beyond, below 2e-10 of the law, is the only error besides
  rounding.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.models import streams

MAX_TOTAL = 2**25
TRIES = 64  # slots of random words set aside for one draw; the chance that a rejection needs more is below 1e-30
INVERT_UP_TO = 16.0
MOUNTAIN_UP_TO = 2000.0

_ULP = np.float32(2.0**-24)
_NEVER = np.float32(1e-10)  # weight, relative to the mode's, below which inversion draws no value
_MOUNTAIN = np.float32(2 * math.sqrt(2 / math.e)), np.float32(3 - 2 * math.sqrt(3 / math.e))
_WIDER = np.float32(1.06)  # variance of the normal envelope relative to the law's
_ABOVE = np.float32(0.01)  # log of its height relative to the law's at the mode
_DEGREE = 10
_ENDLESS = np.float32(1e18)  # a population that no sample changes


class _Law(NamedTuple):
    """The law in float32, seen from its mode: cells, support [low, high] of z, variance, mean - mode, log p slope at 0."""

    a: jax.Array
    b: jax.Array
    c: jax.Array
    d: jax.Array
    low: jax.Array
    high: jax.Array
    variance: jax.Array
    mean: jax.Array
    slope: jax.Array


def hypergeometric(keys, event, slot, good, total, sample):
    """Draws X for every entry of `good`.

    Args:
      keys: (2, B) uint32 stream keys (see `lagjax.models.streams`).
      event: uint32 event number.
      slot: uint32, broadcasts to `good`: first of `TRIES` consecutive slots that belong to this draw alone.
      good, total, sample: int32, broadcasting to (..., B): 0 <= good <= total, 0 <= sample <= total <= 2^25.

    Returns:
      (..., B) int32 in [max(0, good + sample - total), min(good, sample)].
    """
    good, total, sample, slot = jnp.broadcast_arrays(good, total, sample, slot)
    mode, law = _law(good, total, sample)
    return _draw(mode, law, _Words(keys, event, slot))


def binomial(keys, event, slot, trials, probability):
    """Draws binomial variables: the same law with an endless population, so by the same three ways.

    Args:
      keys, event, slot: as in `hypergeometric`.
      trials: (..., B) int32 in [0, 2^25].
      probability: float32 in [0, 1], broadcasting to `trials`.

    Returns:
      (..., B) int32; the law for a probability within 2^-23 (relative) of the one given, the rounding of its uses.
    """
    trials, probability, slot = jnp.broadcast_arrays(trials, probability, slot)
    mode, law = _binomial_law(trials, probability)
    return _draw(mode, law, _Words(keys, event, slot))


def _draw(mode, law, word):
    small, large = law.variance <= INVERT_UP_TO, law.variance > MOUNTAIN_UP_TO
    z = _invert(law, small, word)
    z = _mountain(law, ~small & ~large, word, z)
    z = _normal(law, large, word, z)
    return mode + z.astype(jnp.int32)


class _Words(NamedTuple):
    keys: jax.Array
    event: jax.Array
    slot: jax.Array

    def __call__(self, attempt):
        pair = streams.threefry2x32(self.keys[0], self.keys[1], self.event, self.slot + attempt)
        return lax.optimization_barrier(jnp.stack(pair))


def _law(good, total, sample):
    n, f, t = (x.astype(jnp.uint32) for x in (sample, good, total))
    # mode = floor((n+1)(f+1) / (t+2)): guess in floating point, then correct by the remainder, exact modulo 2^32.
    guess = ((_float(sample) + 1) * ((_float(good) + 1) / (_float(total) + 2))).astype(jnp.int32)
    rest = ((n + 1) * (f + 1) - guess.astype(jnp.uint32) * (t + 2)).astype(jnp.int32)
    shift = jnp.floor_divide(rest, total + 2)
    mode, rest = guess + shift, rest - shift * (total + 2)
    a, b, c, d = (_float(x) for x in (mode, sample - mode, good - mode, total - good - sample + mode))
    whole = _float(total)
    variance = _float(sample) * (_float(good) / whole) * (_float(total - good) / whole)
    variance = variance * (_float(total - sample) / jnp.maximum(whole - 1, 1))
    off = (n * f - mode.astype(jnp.uint32) * t).astype(jnp.int32)  # total (mean - mode), below 2 total
    # log of (b+1/2)(c+1/2) / ((a+1/2)(d+1/2)): the numerator less the denominator is exactly rest - 1 - total/2.
    slope = jnp.log1p((_float(rest) - 1 - whole / 2) / ((a + 0.5) * (d + 0.5)))
    law = _Law(a, b, c, d, -jnp.minimum(a, d), jnp.minimum(b, c), variance, _float(off) / whole, slope)
    return mode, law


def _binomial_law(trials, p):
    mode = jnp.clip(((_float(trials) + 1) * p).astype(jnp.int32), 0, trials)
    a, b = _float(mode), _float(trials - mode)
    c, d = _ENDLESS * p, _ENDLESS * (1 - p)
    slope = jnp.log1p(((b + 0.5) * p - (a + 0.5) * (1 - p)) / ((a + 0.5) * jnp.maximum(1 - p, _ULP)))
    variance = _float(trials) * p * (1 - p)
    return mode, _Law(a, b, c, d, -a, b, variance, _float(trials) * p - a, slope)


def _float(x):
    return x.astype(jnp.float32)


def _invert(law, todo, word):
    """Inversion, the mode first and then one step up and one step down at a time; the weights need no normaliser."""
    uniform = (_float(word(0)[0] >> 8) + 0.5) * _ULP

    def outward(j, up, down):
        up = up * jnp.maximum(law.b - j + 1, 0) * jnp.maximum(law.c - j + 1, 0) / ((law.a + j) * (law.d + j))
        down = down * jnp.maximum(law.a - j + 1, 0) * jnp.maximum(law.d - j + 1, 0) / ((law.b + j) * (law.c + j))
        return up, down

    def weigh(state):
        j, up, down, sum_ = state
        up, down = outward(_float(j), up, down)
        return j + 1, up, down, sum_ + (up + down)

    def find(state):
        j, up, down, passed, z = state
        up, down = outward(_float(j), up, down)
        # Not `> 0`: rounding lets a target pass all weights, and how far the loop goes on depends on the other lanes.
        z = jnp.where((passed <= target) & (up > _NEVER), _float(j), z)
        passed = passed + up
        z = jnp.where((passed <= target) & (down > _NEVER), -_float(j), z)
        return j + 1, up, down, passed + down, z

    one = jnp.ones_like(law.a)
    start = (jnp.int32(1), one, one, one)
    last, _, _, sum_ = lax.while_loop(lambda s: jnp.any(todo & (jnp.maximum(s[1], s[2]) > _NEVER)), weigh, start)
    target = uniform * sum_
    return lax.while_loop(lambda s: s[0] < last, find, (*start, jnp.zeros_like(one)))[4]


def _mountain(law, todo, word, z):
    """Ratio of uniforms: y = floor(mean + 1/2 + h (v - 1/2) / u), accepted where u^2 <= p(y) / p(mode)."""
    log_ratio = _log_ratio_by_stirling(law)
    height = _MOUNTAIN[0] * jnp.sqrt(law.variance + 0.5) + _MOUNTAIN[1]

    def attempt(state):
        tried, todo, z = state
        w = word(tried)
        u, v = (_float(w[0] >> 8) + 0.5) * _ULP, _float(w[1] >> 8) * _ULP - 0.5
        y = jnp.floor(law.mean + 0.5 + height * (v / u))
        inside = (y >= law.low) & (y <= law.high)
        y = jnp.clip(y, law.low, law.high)
        accepted = todo & inside & (2 * jnp.log(u) <= log_ratio(y))
        return tried + 1, todo & ~accepted, jnp.where(accepted, y, z)

    return lax.while_loop(lambda s: jnp.any(s[1]), attempt, (jnp.uint32(1), todo, z))[2]


def _log_ratio_by_stirling(law):
    """Returns the function y -> log p(m + y) - log p(m), for y in the support of a law of variance above `INVERT_UP_TO`."""
    cells = law.a + 0.5, law.b + 0.5, law.c + 0.5, law.d + 0.5
    at_mode = sum(_stirling(cell) for cell in cells)

    def log_ratio(y):
        moved = cells[0] + y, cells[1] - y, cells[2] - y, cells[3] + y
        value = y * law.slope + at_mode
        for cell, new in zip(cells, moved, strict=True):
            value = value - cell * _deviance((new - cell) / cell) - _stirling(new)
        return value

    return log_ratio


def _deviance(t):
    """(1 + t) log(1 + t) - t, also where t is small."""
    series = t * t * (1 / 2 - t * (1 / 6 - t * (1 / 12 - t * (1 / 20 - t * (1 / 30 - t * (1 / 42 - t / 56))))))
    return jnp.where(jnp.abs(t) < 0.1, series, (1 + t) * jnp.log1p(t) - t)


def _stirling(cell):
    """log Gamma(cell + 1/2) less its leading terms cell log cell - cell + log(2 pi) / 2."""
    r = 1 / cell
    return r * (-1 / 24 + r * r * (7 / 2880))


def _normal(law, todo, word, z):
    """Rejection from a normal law of variance 1.06 times ours, rounded to integers."""
    log_ratio, reach = _log_ratio_by_series(law)
    low, high = jnp.maximum(law.low, -reach), jnp.minimum(law.high, reach)
    deviation = jnp.sqrt(_WIDER * law.variance)

    def attempt(state):
        tried, todo, z = state
        w = word(tried)
        x = _standard_normal(w[0])
        y = jnp.floor(law.mean + 0.5 + deviation * x)
        uniform = (_float(w[1] >> 8) + 0.5) * _ULP
        inside = (y >= low) & (y <= high)
        accepted = todo & inside & (jnp.log(uniform) + _ABOVE <= log_ratio(y) + x * x / 2)
        return tried + 1, todo & ~accepted, jnp.where(accepted, y, z)

    return lax.while_loop(lambda s: jnp.any(s[1]), attempt, (jnp.uint32(1), todo, z))[2]


def _log_ratio_by_series(law):
    """Returns y -> log p(m + y) - log p(m) as a polynomial, and the reach (a fifth of the smallest cell) where it holds."""
    cells = law.a + 0.5, law.b + 0.5, law.c + 0.5, law.d + 0.5
    steps = 1 / cells[0], -1 / cells[1], -1 / cells[2], 1 / cells[3]
    powers = list(steps)
    series = []
    for j in range(1, _DEGREE + 1):
        sign = np.float32((-1) ** j)
        term = sum(p / cell for p, cell in zip(powers, cells, strict=True)) * (sign / 24)
        if j == 1:
            term = term + law.slope
        else:
            term = term - sum(p * cell for p, cell in zip(powers, cells, strict=True)) * (sign / (j * (j - 1)))
        series.append(term)
        powers = [p * s for p, s in zip(powers, steps, strict=True)]
    smallest = jnp.minimum(jnp.minimum(cells[0], cells[1]), jnp.minimum(cells[2], cells[3]))

    def log_ratio(y):
        value = series[-1]
        for coefficient in series[-2::-1]:
            value = value * y + coefficient
        return value * y

    return log_ratio, smallest / 5


# Giles (2010), single-precision approximation of the inverse error function, in w = -log(1 - x^2).
_CENTRAL = (
    2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087,
    -0.00125372503, -0.00417768164, 0.246640727, 1.50140941,
)  # fmt: skip
_TAIL = (
    -0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773,
    -0.0076224613, 0.00943887047, 1.00167406, 2.83297682,
)  # fmt: skip


def _standard_normal(word):
    """One standard normal per word, tails to 6.2: 31 bits of distance from the end of the law, 1 bit of sign."""
    from_end = (_float(word >> 1) + 0.5) * np.float32(2.0**-31)  # 1 - |x|
    w = -jnp.log(from_end * (2 - from_end))
    central, tail = w - 2.5, jnp.sqrt(w) - 3
    p, q = jnp.float32(_CENTRAL[0]), jnp.float32(_TAIL[0])
    for c, t in zip(_CENTRAL[1:], _TAIL[1:], strict=True):
        p, q = p * central + np.float32(c), q * tail + np.float32(t)
    size = np.float32(np.sqrt(2)) * jnp.where(w < 5, p, q) * (1 - from_end)
    return jnp.where((word & 1) == 1, -size, size)
