"""Checks of numbers that both drivers share."""

from __future__ import annotations

import numpy as np

from lagjax.errors import InputError

MOST_REPLICAS = 10_000_000


def whole_number(field: str, value, least: int, most: int | None = None) -> None:
    """Raises InputError unless `value` is a whole number from `least` to `most`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{field} is {value!r}; give a whole number, {least} or more")
    if most is not None and value > most:
        raise InputError(f"{field} is {value}; give at most {most}")
