"""Checks of numbers that both drivers share."""

from __future__ import annotations

import numpy as np

from lagjax.errors import InputError


def whole_number(field: str, value, least: int) -> None:
    """Raises InputError unless `value` is a whole number of at least `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise InputError(f"{field} is {value!r}; give a whole number, {least} or more")
