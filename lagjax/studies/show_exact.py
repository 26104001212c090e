"""Exact values as rows, a table and sections of a report."""

from __future__ import annotations

import numpy as np
import xarray as xr

from lagjax.studies.dataset import rows_of
from lagjax.studies.page import Section, Table
from lagjax.studies.study import Study
from lagjax.studies.tables import align

ROW_KEYS = (
    "instance", "load", "policy", "reward_per_step", "blocking", "percent_of_occ_ub", "percent_of_optimum", "optimal_reward",
    "states", "level_bound",
)  # fmt: skip
HEADER = ["policy", "reward per step", "% of OCC-UB", "% of optimum", "blocked %", "states"]


def rows(data: xr.Dataset) -> list[dict]:
    """Returns one dict per instance and policy with the keys `ROW_KEYS` and plain Python values."""
    return list(rows_of(data, ("instance", "policy"), ROW_KEYS, lambda cell: {"load": cell.offered_load}))


def table(data: xr.Dataset) -> str:
    """Returns the tables of all instances, each below its bounds."""
    cells = [data.isel(instance=place) for place in range(data.sizes["instance"])]
    return "\n\n".join("\n".join([*_head(cell), "", align(HEADER, _lines(cell))]) for cell in cells)


def _head(cell):
    bound, best, levels = (cell[key].item() for key in ("occ_ub", "optimal_reward", "level_bound"))
    yield f"{cell.instance.item()} at load {cell.offered_load.item():.4g}"
    yield (
        f"optimum {best:.9g} reward per step, {100 * best / bound:.2f}% of OCC-UB, over {int(cell.optimal_states):,} states "
        "with equal servers counted together"
    )
    yield f"OCC-UB = OPT(OCC-LP(B)) = {bound:.9g} at the exact blocking B = {cell.blocking.item():.6g}"
    if np.isfinite(levels):
        yield f"bound by running tasks {levels:.9g}, {100 * levels / bound:.2f}% of OCC-UB"


def _lines(cell):
    return [
        [
            str(name), f"{one.reward_per_step.item():.6g}", f"{one.percent_of_occ_ub.item():.2f}",
            f"{one.percent_of_optimum.item():.2f}", f"{100 * one.blocking.item():.3f}", f"{int(one.states):,}",
        ]
        for name in cell.policy.values for one in [cell.sel(policy=name)]
    ]  # fmt: skip


def lead(data: xr.Dataset) -> str:
    """What was solved."""
    return f"Without simulation: {', '.join(map(str, data.instance.values))}; policies {', '.join(map(str, data.policy.values))}."


def sections(data: xr.Dataset):
    """One for each instance."""
    for place in range(data.sizes["instance"]):
        cell = data.isel(instance=place)
        title, *says = _head(cell)
        yield Section(title, says=says, tables=[Table("Exact rewards", HEADER, _lines(cell))])


STUDY = Study("exact", rows, table, lambda data: {}, lead, sections, lambda found: [])
