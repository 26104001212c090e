"""The law that an alias table draws, counted from the table."""

import numpy as np

FALSE_ALARM = 1e-6  # of each statistical test of the draws


def implied_law(table):
    """Words (of 2^32) that draw each index: its own column's threshold plus what other columns give away."""
    width = table.size
    bits = width.bit_length() - 1
    column = 2**32 >> bits
    threshold = table.astype(np.int64) >> bits
    other = table.astype(np.int64) & (width - 1)
    assert np.all(threshold <= column)
    kept = np.bincount(np.arange(width), threshold, width)
    return kept + np.bincount(other, column - threshold, width)
