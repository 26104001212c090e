"""Results as text: aligned tables for a terminal, readable without colour."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from lagjax.published import TOLERANCE, published_convergence, published_percent
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


def percent_table(data: xr.Dataset, instance: str) -> str:
    """Returns one instance's reward as % of OCC-UB with intervals, by load and policy, and who is best by how much."""
    return align(*percent_lines(data, instance))


def percent_lines(data: xr.Dataset, instance: str) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of `percent_table`."""
    one = data.sel(instance=instance)
    policies = [str(p) for p in data.policy.values]
    lines, known = [], bool(np.isfinite(one.optimal_reward).any())
    for load in _loads(one):
        cell = one.sel(load=load)
        shares = [_with_interval(cell, p) for p in policies]
        lines.append(
            [
                f"{load:g}",
                *shares,
                f"{100 * cell.blocking.item():.2f}",
                f"{cell.occ_ub.item():.5g}",
                *([_optimum(cell)] if known else []),
                _best(cell, policies),
            ]
        )
    return ["load", *policies, "blocked %", "OCC-UB", *(["optimum"] if known else []), "best, lead over next"], lines


def published_table(data: xr.Dataset, instance: str) -> str | None:
    """Returns the paper's percentages with (ours - paper's), marked where they differ or depend on the LP's selection."""
    found = published_lines(data, instance)
    return None if found is None else align(*found)


def published_lines(data: xr.Dataset, instance: str) -> tuple[list[str], list[list[str]]] | None:
    """The header and the lines of `published_table`, or None where the paper has no numbers."""
    one = data.sel(instance=instance)
    policies = [str(p) for p in data.policy.values]
    lines = []
    for load in _loads(one):
        lines.append([f"{load:g}", *(_beside(one.sel(load=load), instance, load, p) for p in policies)])
    shown = [i for i, p in enumerate(policies, 1) if any(line[i] != "-" for line in lines)]
    if not shown:
        return None
    return ["load", *(policies[i - 1] for i in shown)], [[line[0], *(line[i] for i in shown)] for line in lines]


def _loads(one):
    return [float(x) for x in one["load"].values if not np.isnan(one.occ_ub.sel(load=x))]


def _with_interval(cell, policy):
    mean, half = cell.percent_of_occ_ub.sel(policy=policy).item(), cell.percent_ci95.sel(policy=policy).item()
    if np.isnan(mean):
        return "-"
    return (
        f"{mean:.2f}"
        + ("" if np.isnan(half) else f" ±{half:.2f}")
        + _dagger(cell, policy)
        + said(cell.sel(policy=policy))
    )


def said(cell) -> str:
    """Returns what a figure's place in a table says of its start: nothing, unless something of it is left."""
    known = cell.get("stationary")  # older files have none
    return f" ({NOT_STATIONARY})" if known is not None and known.item() == 0 else ""


def _optimum(cell):
    share = cell.optimal_percent_of_occ_ub.item()
    return f"{share:.2f}" if np.isfinite(share) else "-"


def _dagger(cell, policy):
    return "†" if cell.selection_matters.sel(policy=policy).item() == 1 else ""


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
            return f"{' = '.join(equal)} +{lead:.2f} ±{half:.2f}"
        if np.isnan(half):
            return f"{first} (one replica: no interval)"
        equal.append(other)
    return " = ".join(equal)


def _beside(cell, instance, load, policy):
    paper, ours = published_percent(instance, load, policy), cell.percent_of_occ_ub.sel(policy=policy).item()
    if paper is None or np.isnan(ours):
        return "-"
    known = not np.isnan(cell.percent_ci95.sel(policy=policy).item())
    mark = "*" if known and round(abs(ours - paper), 1) > TOLERANCE else ""
    return f"{paper:.1f} ({ours - paper:+.1f}){mark}{_dagger(cell, policy)}"


LEGEND = (
    "Reward as % of OCC-UB = OPT(OCC-LP(B)) at the blocking B measured, ± half-width of the 95% interval; leads are paired.\n"
    "optimum: the best that any policy can do, as % of OPT(OCC-LP(B)) at the exact B: exact, where the system is small enough.\n"
    "† the policy comes from an LP with more than one optimum here: --selection vertex, interior and canonical differ."
)
PUBLISHED_LEGEND = f"Published (Lag, Table 3) and (ours - published); * marks more than {TOLERANCE:g} points."

CONVERGENCE_LEGEND = (
    "Reward per copy as % of OCC-UB = OPT(OCC-LP(B)) at the blocking B measured, ± half-width of the 95% interval.\n"
    "drift: second half of the counted steps less the first, in points: what the start still contributes."
)


def convergence_table(data: xr.Dataset, instance: str, beside_published: bool) -> str:
    """Returns one instance's reward per copy by size and policy."""
    return align(*convergence_lines(data, instance, beside_published))


def convergence_lines(data: xr.Dataset, instance: str, beside_published: bool) -> tuple[list[str], list[list[str]]]:
    """The header and the lines of `convergence_table`."""
    lines = []
    for policy in data.policy.values:
        for place in range(data.sizes["size"]):
            cell = data.sel(instance=instance, policy=policy).isel(size=place)
            n, m = int(cell.copies), int(cell.dispatchers)
            stated = (
                published_convergence(instance, cell["load"].item(), n, m, str(policy)) if beside_published else None
            )
            lines.append(
                [
                    str(policy), str(n), str(m), _plus_minus(cell.percent_of_occ_ub, cell.percent_ci95) + said(cell),
                    f"{100 * cell.blocking.item():.3f}", f"{cell.occ_ub.item():.5g}", _plus_minus(cell.drift, cell.drift_ci95),
                    f"{int(cell.steps)}", stated or "-",
                ]
            )  # fmt: skip
    header = [
        "policy",
        "copies n",
        "dispatchers m",
        "% of OCC-UB",
        "blocked %",
        "OCC-UB",
        "drift",
        "steps",
        "published",
    ]
    if all(line[-1] == "-" for line in lines):
        header, lines = header[:-1], [line[:-1] for line in lines]
    return header, lines


def kiid_note(data: xr.Dataset, choice: str) -> str | None:
    """Says of which instances OPT(KIID) was left out, and why: what `choice` of `lagjax.reference.KIID` asked for."""
    skipped = data.kiid_ub.isnull() & data.occ_ub.notnull()
    names = [str(name) for name in data.instance.values if skipped.sel(instance=name).any()]
    if not names:
        return None
    why = "as asked" if choice == "never" else "it costs more than the rest, and --kiid always solves it"
    return f"kiid skipped: no OPT(KIID), a line for reference, for {', '.join(names)} ({why})"


def _plus_minus(mean, half):
    return f"{mean.item():.2f}" + ("" if np.isnan(half.item()) else f" ±{half.item():.2f}")
