"""One field that holds a score."""

from __future__ import annotations

import math

from lagjax.text import UNKNOWN, Reading


def score_in(text: str, reading: Reading) -> float:
    """Returns the score that a field holds, of any sign; NaN where it says that none is known (empty, nan, NA, ...).

    Raises:
      ValueError: anything else, infinity included.
    """
    try:
        score = reading.number(text)
    except ValueError:
        if text.strip().lower() in UNKNOWN:
            return math.nan
        raise
    if math.isinf(score):
        raise ValueError(text)
    return score
