"""The paper's own numbers, to print beside ours."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Sequence
from importlib.resources import files

import numpy as np
import xarray as xr

from lagjax.gallery import GALLERY, gallery
from lagjax.instance import Instance

TOLERANCE = 1.5  # points: what an independent implementation of the same definitions reached on these instances


@functools.cache
def _numbers():
    return json.loads(files("lagjax.studies").joinpath("published.json").read_text(encoding="utf-8"))


def published_among(instances: Sequence[Instance]) -> str:
    """Returns, as JSON, the names of those that the paper's numbers are about: its systems, not files that share their names."""
    known = [i.name for i in instances if i.name in GALLERY and np.array_equal(i.scores, gallery(i.name).scores)]
    return json.dumps(known)


def published_instances(data: xr.Dataset) -> list[str]:
    """Returns what `published_among` found when the study was made."""
    return json.loads(data.attrs.get("published", "[]"))


def published_percent(instance: str, load: float, policy: str) -> float | None:
    """Returns the paper's reward as a percentage of OCC-UB (Lag, Table 3), or None where it prints none."""
    return _numbers()["table3"].get(instance, {}).get(f"{load:g}", {}).get(policy)


def published_convergence(instance: str, load: float, copies: int, dispatchers: int, policy: str) -> str | None:
    """Returns what the paper states of LAG's percentage at one size (Lag, Figure 6), in words, or None."""
    figure = _numbers()["figure6"]
    if policy != "lag" or abs(load - figure["load"]) > 1e-6 or dispatchers != math.isqrt(copies):
        return None
    if copies == 65536 and instance in figure["at_65536"]:
        return f"{figure['at_65536'][instance]:.1f}"
    first, last = figure["priority between, copies"]
    if instance == "priority" and first <= copies <= last:
        return "{:.1f} to {:.1f}".format(*figure["priority between"])
    if instance == "low-rank" and copies == figure["low-rank crosses 99 at"]:
        return "crosses 99"
    if copies == 1:
        value = published_percent(instance, load, policy)
        return None if value is None else f"{value:.1f} (Table 3)"
    return None
