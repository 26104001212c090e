"""A convergence study as rows, tables, a picture and sections of a report."""

from __future__ import annotations

import functools

import xarray as xr

from lagjax.plots.convergence import draw_lost, draw_share, plot_convergence
from lagjax.studies.dataset import rows_of
from lagjax.studies.kiid import kiid_note
from lagjax.studies.page import Picture, Section, Table
from lagjax.studies.published import published_convergence, published_instances
from lagjax.studies.show_sweep import lead
from lagjax.studies.study import Study
from lagjax.studies.tables import align, plus_minus, said

ROW_KEYS = (
    "instance", "load", "copies", "dispatchers", "policy", "reward_per_step", "reward_ci95", "percent_of_occ_ub", "percent_ci95",
    "blocking", "occ_ub", "occ_ub_0", "kiid_ub", "steps", "replicas", "drift", "drift_ci95", "stationary",
    "percent_of_optimum", "percent_of_optimum_ci95", "optimal_reward", "optimal_percent_of_occ_ub",
)  # fmt: skip
LEGEND = (
    "Reward per copy as % of OCC-UB = OPT(OCC-LP(B)) at the blocking B measured, ± half-width of the 95% interval.\n"
    "drift: second half of the counted steps less the first, in points: what the start still contributes."
)
HEADER = ["policy", "copies n", "dispatchers m", "% of OCC-UB", "blocked %", "OCC-UB", "drift", "steps", "published"]


def rows(data: xr.Dataset) -> list[dict]:
    """Returns one dict per instance, policy and size with the keys `ROW_KEYS` and plain Python values."""
    return list(
        rows_of(
            data, ("instance", "policy", "system_size"), ROW_KEYS,
            lambda cell: {"load": cell.offered_load, "replicas": cell.sizes["replica"]},
        )
    )  # fmt: skip


def table(data: xr.Dataset) -> str:
    """Returns the tables of all instances."""
    parts = [f"{name}\n{convergence_table(data, name)}" for name in map(str, data.instance.values)]
    return "\n\n".join([*parts, "\n".join([LEGEND, *kiid_note(data)])])


def convergence_table(data: xr.Dataset, instance: str) -> str:
    """Returns one instance's reward per copy by size and policy, beside what the paper states of it."""
    return align(*convergence_lines(data, instance))


def convergence_lines(data: xr.Dataset, instance: str) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of `convergence_table`."""
    lines, known = [], instance in published_instances(data)
    for policy in map(str, data.policy.values):
        for place in range(data.sizes["system_size"]):
            cell = data.sel(instance=instance, policy=policy).isel(system_size=place)
            n, m = int(cell.copies), int(cell.dispatchers)
            stated = published_convergence(instance, cell.offered_load.item(), n, m, policy) if known else None
            lines.append(
                [
                    policy, str(n), str(m), plus_minus(cell.percent_of_occ_ub, cell.percent_ci95) + said(cell),
                    f"{100 * cell.blocking.item():.3f}", f"{cell.occ_ub.item():.5g}", plus_minus(cell.drift, cell.drift_ci95),
                    f"{int(cell.steps)}", stated or "-",
                ]
            )  # fmt: skip
    if all(line[-1] == "-" for line in lines):
        return HEADER[:-1], [line[:-1] for line in lines]
    return HEADER, lines


def sections(data: xr.Dataset):
    """One for all, with the pictures, and one for each instance."""
    drawn = (
        (draw_share, "Reward per copy as percent of OCC-UB against size"),
        (draw_lost, "Percent of tasks lost against size"),
    )
    pictures = [Picture(functools.partial(draw, data=data), says) for draw, says in drawn]
    yield Section("Reward and blocking by size", pictures=pictures)
    for instance in map(str, data.instance.values):
        tables = [Table("Reward per copy by size", *convergence_lines(data, instance))]
        yield Section(instance, tables=tables, note=LEGEND)


STUDY = Study(
    "converge", rows, table, lambda data: {"converge": plot_convergence(data)}, lead, sections, lambda found: [
        f"{r['policy']} on {r['instance']} at n = {r['copies']}" for r in found if r["stationary"] is False
    ],
)  # fmt: skip
