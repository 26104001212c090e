"""Graphs beside their mean field as rows, tables, a picture and sections of a report."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import xarray as xr

from lagjax.compatibility.draws import LANES
from lagjax.compatibility.model import LEVELS
from lagjax.plots.compatibility import draw_distance, draw_excess, draw_occupancy, plot_compatibility
from lagjax.stats import NOT_STATIONARY, estimate
from lagjax.studies.compatibility import Case, dataset
from lagjax.studies.dataset import plain, rows_of
from lagjax.studies.page import Picture, Section, Table
from lagjax.studies.study import Study
from lagjax.studies.tables import align, said

SHOWN = 1e-6  # levels below this, measured and at the fixed point, are left out
ROW_KEYS = (
    "graph", "servers", "types", "mean_server_degree", "policy", "load", "mean_queue_length", "mean_queue_length_ci95",
    "fixed_point_queue_length", "mean_sojourn_time", "mean_sojourn_time_ci95", "fixed_point_sojourn_time", "drift", "drift_ci95",
    "stationary", "queue_length_above_levels", "sup_distance", "sup_distance_ci95", "sigma", "epsilon", "bad_types_at_least",
    "bad_types_at_most", "subcriticality_margin", "overloaded_servers", "time", "warmup", "replicas", "events",
)  # fmt: skip
SYMBOLS = (
    "q_i: fraction of servers with at least i tasks, time average, ± half-width of the 95% interval; times in mean services.\n"
    "sigma: singular value of the graph; bad types: bounds of the worst fraction of types whose share of some set of servers is\n"
    "off by epsilon. margin: 1 less the largest load of a server under random routing."
)
DISTANCE = "sup-distance: largest distance of an occupancy from the ODE's if half the servers, side by side, first hold 4 tasks."


def rows(data: xr.Dataset) -> list[dict]:
    """One dict of plain values for each case, with its levels, one dict each, as "rows"."""
    found = rows_of(data, ("case",), ROW_KEYS, lambda cell: {"load": cell.offered_load})
    return [row | {"rows": _level_rows(data.isel(case=place))} for place, row in enumerate(found)]


def _level_rows(cell):
    occupancy = estimate(cell.occupancy.values)
    fixed = cell.fixed_point.values
    reach = max(1, int(np.sum(np.maximum(occupancy.mean, fixed) >= SHOWN)))
    columns = {
        "level": cell.level.values,
        "occupancy": occupancy.mean,
        "occupancy_ci95": occupancy.ci95,
        "fixed_point": fixed,
    }
    return [{key: plain(key, values[i]) for key, values in columns.items()} for i in range(reach)]


def describe(case: Case) -> dict:
    """Returns plain values of a measured case: the row of its Dataset."""
    return rows(dataset([case], seed=0))[0]


def table(data: xr.Dataset) -> str:
    """The table of every case, and one line for each where there are several."""
    cases = rows(data)
    tables = [case_table(case) for case in cases] + ([comparison(cases)] if len(cases) > 1 else [])
    return "\n\n".join([*tables, legend(cases)])


def legend(cases: Sequence[dict]) -> str:
    """Returns what the tables of the described cases need said below them."""
    lines = [SYMBOLS]
    if any(case["sup_distance"] is not None for case in cases):
        lines.append(DISTANCE)
    if cases[0]["replicas"] == LANES:
        lines.append(f"one bundle of {LANES} replicas: no intervals; use --replicas {2 * LANES} or more")
    return "\n".join(lines)


def case_table(case: dict) -> str:
    """Returns the occupancies of one described case beside the fixed point."""
    return "\n".join([_title(case), align(*_levels(case)), *_figures(case)])


def _title(case):
    return f"{case['graph']}, {case['servers']} servers, {case['types']} types, {case['policy']}, load {case['load']:g}"


def _levels(case):
    lines = [
        [
            str(row["level"]), _with(row["occupancy"], row["occupancy_ci95"]), _number(row["fixed_point"]),
            f"{row['occupancy'] - row['fixed_point']:+.2g}",
        ]
        for row in case["rows"]
    ]  # fmt: skip
    return ["i", "q_i", "fixed point", "difference"], lines


def _figures(case):
    sojourn = _with(case["mean_sojourn_time"], case["mean_sojourn_time_ci95"])
    yield (
        f"mean queue length {_with(case['mean_queue_length'], case['mean_queue_length_ci95'])} (fixed point "
        f"{case['fixed_point_queue_length']:.5g}), mean sojourn time {sojourn} ({case['fixed_point_sojourn_time']:.5g})"
    )
    yield (
        f"sigma {case['sigma']:.4g}; bad types at epsilon {case['epsilon']:g}: {_percent(case['bad_types_at_least'])}% to "
        f"{_percent(case['bad_types_at_most'])}%; server degree {case['mean_server_degree']:.4g}; margin "
        f"{case['subcriticality_margin']:.3g}"
    )
    if case["overloaded_servers"]:
        yield f"{case['overloaded_servers']} servers would be overloaded under random routing (allowed)"
    if case["sup_distance"] is not None:
        yield f"sup-distance to the ODE from an uneven start: {_with(case['sup_distance'], case['sup_distance_ci95'])}"
    above = case["queue_length_above_levels"]
    if above > 1e-3 * case["mean_queue_length"]:
        yield f"levels above {LEVELS} are not counted one by one; they hold {above:.4g} of the mean queue length"
    if case["stationary"] is False:
        yield (
            f"{NOT_STATIONARY}: after {case['warmup']} mean service times the start may still show in {case['time']} more (drift "
            f"of the mean queue length {case['drift']:+.3g}); use more --time and --warmup"
        )


def comparison(cases: Sequence[dict]) -> str:
    """Returns one line per described case."""
    return align(*_compared(cases))


def _compared(cases):
    header = [
        "graph", "servers", "load", "policy", "degree", "sigma", "bad types %", "q_1", "q_2", "q_3", "queue length",
        "fixed point", "sup-distance",
    ]  # fmt: skip
    lines = []
    for case in cases:
        occupancy = [_number(row["occupancy"]) for row in case["rows"][:3]]
        lines.append(
            [
                case["graph"], str(case["servers"]), f"{case['load']:g}", case["policy"], f"{case['mean_server_degree']:.4g}",
                f"{case['sigma']:.3f}", f"{_percent(case['bad_types_at_least'])} to {_percent(case['bad_types_at_most'])}",
                *(occupancy + ["0"] * (3 - len(occupancy))), _queue_length(case),
                f"{case['fixed_point_queue_length']:.4g}",
                "-" if case["sup_distance"] is None else _with(case["sup_distance"], case["sup_distance_ci95"]),
            ]
        )  # fmt: skip
    return header, lines


def _queue_length(case):
    return _with(case["mean_queue_length"], case["mean_queue_length_ci95"]) + said(case)


def _percent(share):
    return f"{100 * share:.3g}" if share > 1e-12 else "0"


def _number(value):
    return f"{value:.4f}" if value >= 1e-3 else f"{value:.1e}" if value > 0 else "0"


def _with(mean, half):
    return _number(mean) + ("" if half is None else f" ±{half:.1g}")


def lead(data: xr.Dataset) -> str:
    """What was simulated."""
    graphs, policies = (", ".join(dict.fromkeys(map(str, data[name].values))) for name in ("graph", "policy"))
    return (
        f"Graphs: {graphs}. Policies: {policies}. {int(data.replicas.values[0]):,} replicas, seed {data.attrs['seed']}."
    )


def sections(data: xr.Dataset):
    """One for all, with the pictures, and one for each case."""
    cases = rows(data)
    drawn = [(draw_occupancy, "Fraction of servers by level, and the fixed point")]
    drawn += [(draw_excess, "Mean queue length over the fixed point's against the number of servers")]
    if any(case["sup_distance"] is not None for case in cases):
        drawn += [(draw_distance, "Largest distance from the ODE against the number of servers")]
    pictures = [Picture(functools.partial(draw, cases=cases), says) for draw, says in drawn]
    yield Section(
        "All cases", pictures=pictures, tables=[Table("One line per case", *_compared(cases))], note=legend(cases)
    )
    for case in cases:
        yield Section(_title(case), says=list(_figures(case)), tables=[Table("Occupancy by level", *_levels(case))])


STUDY = Study(
    "compat", rows, table, lambda data: {"compat": plot_compatibility(rows(data))}, lead, sections, lambda found: [
        f"{c['policy']} on {c['graph']} of {c['servers']} servers at load {c['load']:g}"
        for c in found if c["stationary"] is False
    ],
)  # fmt: skip
