"""A load sweep as rows, tables, pictures and sections of a report."""

from __future__ import annotations

import functools
import json

import numpy as np
import xarray as xr

from lagjax.plots.load_sweep import draw_percents, draw_rewards, plot_load_sweep
from lagjax.studies.dataset import rows_of
from lagjax.studies.kiid import kiid_note
from lagjax.studies.page import Picture, Section, Table
from lagjax.studies.published import TOLERANCE, published_instances, published_percent
from lagjax.studies.study import Study
from lagjax.studies.tables import align, plus_minus, said, shown

ROW_KEYS = (
    "instance", "load", "policy", "reward_per_step", "reward_ci95", "percent_of_occ_ub", "percent_ci95", "blocking",
    "occ_ub", "occ_ub_0", "kiid_ub", "steps", "replicas", "percent_of_optimum", "percent_of_optimum_ci95", "optimal_reward",
    "optimal_percent_of_occ_ub", "drift", "drift_ci95", "stationary",
)  # fmt: skip
MOST_NOTES = 5
LEGEND = (
    "Reward as % of OCC-UB = OPT(OCC-LP(B)) at the blocking B measured, ± half-width of the 95% interval; leads are paired.\n"
    "optimum: the best that any policy can do, as % of OPT(OCC-LP(B)) at the exact B: exact, where the system is small enough.\n"
    "† the policy comes from an LP with more than one optimum here: --selection vertex, interior and canonical differ."
)
PUBLISHED_LEGEND = f"Published (Lag, Table 3) and (ours - published); * marks more than {TOLERANCE:g} points."


def rows(data: xr.Dataset) -> list[dict]:
    """Returns one dict per instance, load and policy that was run, with the keys `ROW_KEYS` and plain Python values."""
    found = rows_of(
        data, ("instance", "offered_load", "policy"), ROW_KEYS,
        lambda cell: {"load": cell.offered_load, "replicas": cell.sizes["replica"]},
    )  # fmt: skip
    return [row for row in found if row["reward_per_step"] is not None]


def table(data: xr.Dataset) -> str:
    """Returns the tables of all instances, with the paper's numbers where it has some."""
    parts = []
    for instance in map(str, data.instance.values):
        parts.append(f"{instance}\n{percent_table(data, instance)}")
        published = published_lines(data, instance)
        if published is not None:
            parts.append(f"{instance}, published\n{align(*published)}")
    legend = LEGEND + ("\n" + PUBLISHED_LEGEND if any(", published\n" in part for part in parts) else "")
    return "\n\n".join([*parts, "\n".join([legend, *kiid_note(data)])])


def percent_table(data: xr.Dataset, instance: str) -> str:
    """Returns one instance's reward as % of OCC-UB with intervals, by load and policy, and who is best by how much."""
    return align(*percent_lines(data, instance))


def percent_lines(data: xr.Dataset, instance: str) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of `percent_table`."""
    one = data.sel(instance=instance)
    policies = [str(p) for p in data.policy.values]
    lines, known = [], bool(np.isfinite(one.optimal_reward).any())
    for load in _loads(one):
        cell = one.sel(offered_load=load)
        optimum = [shown(cell.optimal_percent_of_occ_ub, ".2f")] if known else []
        lines.append(
            [
                f"{load:g}", *(_percent(cell.sel(policy=p)) for p in policies), f"{100 * cell.blocking.item():.2f}",
                f"{cell.occ_ub.item():.5g}", *optimum, _best(cell, policies),
            ]
        )  # fmt: skip
    return ["load", *policies, "blocked %", "OCC-UB", *(["optimum"] if known else []), "best, lead over next"], lines


def published_lines(data: xr.Dataset, instance: str) -> tuple[list[str], list[list[str]]] | None:
    """A header and lines of the paper's percentages with (ours - paper's), or None where the paper has none.

    Marked are those that differ, and those that depend on the LP's selection.
    """
    if instance not in published_instances(data):
        return None
    one = data.sel(instance=instance)
    policies = [str(p) for p in data.policy.values]
    lines = []
    for load in _loads(one):
        cell = one.sel(offered_load=load)
        lines.append([f"{load:g}", *(_beside(cell.sel(policy=p), instance, load, p) for p in policies)])
    some = [i for i, p in enumerate(policies, 1) if any(line[i] != "-" for line in lines)]
    if not some:
        return None
    return ["load", *(policies[i - 1] for i in some)], [[line[0], *(line[i] for i in some)] for line in lines]


def _loads(one):
    return [float(x) for x in one.offered_load.values if not np.isnan(one.occ_ub.sel(offered_load=x))]


def _percent(cell):
    if np.isnan(cell.percent_of_occ_ub):
        return "-"
    return plus_minus(cell.percent_of_occ_ub, cell.percent_ci95) + _dagger(cell) + said(cell)


def _dagger(cell):
    return "†" if cell.selection_matters.item() == 1 else ""


def _best(cell, policies):
    run = [p for p in policies if not np.isnan(cell.percent_of_occ_ub.sel(policy=p).item())]
    ranked = sorted(run, key=lambda p: -cell.percent_of_occ_ub.sel(policy=p).item())
    if len(ranked) < 2:
        return ranked[0] if ranked else "-"
    first = ranked[0]
    equal = [first]
    for other in ranked[1:]:
        pair = cell.sel(policy=first, than=other)
        lead, half = pair.difference.item(), pair.difference_ci95.item()
        if lead > half + 1e-9:
            return f"{' = '.join(equal)} +{plus_minus(lead, half)}"
        if np.isnan(half):
            return f"{first} (one replica: no interval)"
        equal.append(other)
    return " = ".join(equal)


def _beside(cell, instance, load, policy):
    paper, ours = published_percent(instance, load, policy), cell.percent_of_occ_ub.item()
    if paper is None or np.isnan(ours):
        return "-"
    known = not np.isnan(cell.percent_ci95.item())
    mark = "*" if known and round(abs(ours - paper), 1) > TOLERANCE else ""
    return f"{paper:.1f} ({ours - paper:+.1f}){mark}{_dagger(cell)}"


def lead(data: xr.Dataset) -> str:
    """What was simulated."""
    names, policies = (", ".join(map(str, data[dim].values)) for dim in ("instance", "policy"))
    return (
        f"Systems: {names}. Policies: {policies}. {data.sizes['replica']:,} replicas, seed {data.attrs['seed']}, "
        f"selection {data.attrs['selection']}."
    )


def sections(data: xr.Dataset):
    """One for each instance."""
    for instance in map(str, data.instance.values):
        header, lines = percent_lines(data, instance)
        tables = [Table("Reward as % of OCC-UB, ± half-width of the 95% interval", header, lines)]
        published = published_lines(data, instance)
        if published is not None:
            tables.append(Table("The paper's Table 3, and (ours - published)", *published))
        drawn = (
            (draw_percents, "reward as percent of OCC-UB against load"),
            (draw_rewards, "reward per step and its upper bounds against load"),
        )
        yield Section(
            instance,
            says=[_verdict(lines)],
            pictures=[
                Picture(functools.partial(d, data=data, instance=instance), f"{instance}: {s}") for d, s in drawn
            ],
            tables=tables,
            note=LEGEND + ("\n" + PUBLISHED_LEGEND if published is not None else ""),
        )


def _verdict(lines):
    """Who is best where, in a sentence."""
    wins: dict[str, list[str]] = {}
    for line in lines:
        for policy in line[-1].split(" +")[0].split(" (")[0].split(" = "):
            wins.setdefault(policy, []).append(line[0])
    at = [f"{policy} at {_named(loads, len(lines))}" for policy, loads in wins.items()]
    return "Best, alone or level within the interval: " + "; ".join(at) + "."


def _named(loads, number):
    if len(loads) == number:
        return "every load" if number > 1 else f"load {loads[0]}"
    return f"load{'s' if len(loads) > 1 else ''} {', '.join(loads)}"


def notes(data: xr.Dataset) -> list[str]:
    """What policies have to say, such as servers without an index: the first few lines."""
    lines = [
        f"{cell['instance']}, {policy}: {line}"
        for cell in json.loads(data.attrs["configuration"])
        for policy, lines in cell["policies"].items()
        for line in lines
    ]
    lines = list(dict.fromkeys(lines))
    left = len(lines) - MOST_NOTES
    return lines[:MOST_NOTES] + [f"and {left} more such notes, in the attributes of sweep.nc"] * (left > 0)


STUDY = Study(
    "sweep", rows, table, lambda data: {str(name): plot_load_sweep(data, str(name)) for name in data.instance.values}, lead,
    sections, lambda found: [
        f"{r['policy']} on {r['instance']} at load {r['load']:g}" for r in found if r["stationary"] is False
    ], notes,
)  # fmt: skip
