"""Exact draws from a finite law with one table look-up a draw (Walker's alias method in integers)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

_ONE = 1 << 32


def alias_table(probabilities) -> np.ndarray:
    """Returns (W,) uint32, W a power of two >= n: threshold in the high bits, alias in the low log2(W) bits.

    The drawn law is `integer_law(probabilities) / 2^32` exactly: every probability is within 2^-32 of the one asked for,
    and one below 2^-33 may become 0. The cost of a draw does not depend on n.
    """
    mass = integer_law(probabilities)
    bits = max(int(mass.size - 1).bit_length(), 0)
    width = 1 << bits
    column = _ONE >> bits
    left = [*mass.tolist(), *[0] * (width - mass.size)]
    threshold, alias = np.zeros(width, dtype=np.uint64), np.arange(width, dtype=np.uint64)
    small = [i for i in range(width) if left[i] < column]
    large = [i for i in range(width) if left[i] >= column]
    while small:  # integer masses: what is left over is exact, so the columns always come out even
        i, j = small.pop(), large[-1]
        threshold[i], alias[i] = left[i], j
        left[j] -= column - left[i]
        if left[j] < column:
            small.append(large.pop())
    return ((threshold << np.uint64(bits)) | alias).astype(np.uint32)


def integer_law(probabilities) -> np.ndarray:
    """Returns (n,) int64 masses that sum to 2^32: the law rounded by largest remainders (earlier entries first)."""
    p = np.asarray(probabilities, dtype=np.float64)
    exact = p / p.sum() * _ONE
    mass = np.floor(exact).astype(np.int64)
    short = _ONE - int(mass.sum())
    mass[np.argsort(mass - exact, kind="stable")[:short]] += 1
    return mass


def draw(table, word):
    """Returns the int32 index that each uint32 `word` draws from a table made by `alias_table`."""
    width = table.shape[-1]
    bits = width.bit_length() - 1
    if bits == 0:
        return jnp.zeros(word.shape, jnp.int32)
    column = word >> (32 - bits)
    entry = table[column]
    low = jnp.uint32(width - 1)
    rest = word & jnp.uint32((1 << (32 - bits)) - 1)
    return jnp.where(rest < (entry >> bits), column, entry & low).astype(jnp.int32)
