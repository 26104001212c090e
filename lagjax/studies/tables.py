"""Results as text: aligned tables for a terminal, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lagjax.stats import NOT_STATIONARY


def align(header: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Returns a table with its first column to the left and the others to the right."""
    table = [list(header), *map(list, lines)]
    width = [max(len(row[i]) for row in table) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, width, strict=True))
        ).rstrip()
        for row in table
    )


def shown(value, form: str, unknown: str = "-") -> str:
    """Returns a number in a form such as ".4g", or what stands for one that is not known."""
    value = np.nan if value is None else float(value)
    return format(value, form) if np.isfinite(value) else unknown


def plus_minus(mean, half, form: str = ".2f", half_form: str = "") -> str:
    """Returns "a ±b", or "a" without an interval, or "-" where even that is not known."""
    interval = shown(half, half_form or form, "")
    return shown(mean, form) + (f" ±{interval}" if interval else "")


def said(cell) -> str:
    """Returns what a figure's place in a table says of its start: nothing, unless something of it is left.

    Args:
      cell: of a Dataset, or a row.
    """
    known = cell.get("stationary")  # older files have none
    return f" ({NOT_STATIONARY})" if known is not None and float(known) == 0 else ""
