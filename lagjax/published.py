"""The paper's own numbers, to print beside ours."""

from __future__ import annotations

import functools
import json
from importlib.resources import files

TOLERANCE = 1.5  # points: what an independent implementation of the same definitions reached on these instances


@functools.cache
def _table():
    return json.loads(files("lagjax").joinpath("published.json").read_text(encoding="utf-8"))["table3"]


def published_percent(instance: str, load: float, policy: str) -> float | None:
    """Returns the paper's reward as a percentage of OCC-UB (Lag, Table 3), or None where it prints none."""
    return _table().get(instance, {}).get(f"{load:g}", {}).get(policy)
