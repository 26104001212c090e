"""A comparison of routing policies as rows, tables, a picture and sections of a report."""

from __future__ import annotations

import functools
import json

import numpy as np
import xarray as xr

from lagjax.plots.routing import draw_losses, plot_routing
from lagjax.studies.dataset import rows_of
from lagjax.studies.page import Picture, Section, Table
from lagjax.studies.routing import needed
from lagjax.studies.study import Study
from lagjax.studies.tables import align, plus_minus, said, shown

ROW_KEYS = (
    "arrival_rate", "traffic", "policy", "loss_rate", "loss_ci95", "exact_loss", "optimal_loss", "loss_lower_bound",
    "optimal_bracket", "states", "residual", "ratio_to_first", "ratio_ci95", "drift", "drift_ci95", "events", "replicas",
    "stationary",
)  # fmt: skip
MOST_LISTED = 12  # queues that are named one by one


def rows(data: xr.Dataset) -> list[dict]:
    """One dict per arrival rate and policy with the keys `ROW_KEYS` and plain Python values; None where there is none."""

    def given(cell):
        pair = cell.isel(than=0)
        return {"replicas": cell.sizes["replica"], "ratio_to_first": pair.ratio, "ratio_ci95": pair.ratio_ci95}

    return list(rows_of(data, ("arrival_rate", "policy"), ROW_KEYS, given))


def table(data: xr.Dataset) -> str:
    """The tables, one per arrival rate, below the queues."""
    parts = []
    for place in range(data.sizes["arrival_rate"]):
        cell = data.isel(arrival_rate=place)
        parts.append(f"{_head(cell)}\n{align(*_lines(cell))}")
    return "\n\n".join([queues(data), *parts])


def queues(data: xr.Dataset) -> str:
    """The queues in a line."""
    of = json.loads(data.attrs["configuration"])
    servers, room, rates = (of[key] for key in ("servers", "room", "service_rates"))
    return (
        f"K = {len(servers)} queues: servers {_listed(servers)}; room {_listed(room)}; rates {_listed(rates)}; together they "
        f"serve {np.dot(servers, rates):.6g} jobs per unit time"
    )


def _listed(values):
    return ", ".join(f"{value:g}" for value in values[:MOST_LISTED]) + (", ..." if len(values) > MOST_LISTED else "")


def _head(cell):
    best, rate = cell.optimal_loss.item(), cell.arrival_rate.item()
    head = f"arrivals {rate:g} (traffic {cell.traffic.item():.4g}): no routing loses less than {cell.loss_lower_bound.item():.6g}"
    if np.isfinite(best):
        head += f"; optimum {best:.6g} over {int(cell.states):,} states (bracket {cell.optimal_bracket.item():.1g})"
    return head


def _lines(cell):
    first, best = str(cell.policy.values[0]), cell.optimal_loss.item()
    lines = []
    for policy in map(str, cell.policy.values):
        one = cell.sel(policy=policy)
        pair, rate = one.sel(than=first), one.loss_rate.item()
        above = 100 * (one.exact_loss.item() / best - 1) if best > 0 else np.nan
        lines.append(
            [
                policy, f"{rate:.5g}" if one.seen.item() > 0 else "0 (none seen)",
                ("-" if np.isnan(one.loss_ci95) else f"±{one.loss_ci95.item():.2g}") + said(one),
                f"{100 * rate / cell.arrival_rate.item():.4g}", plus_minus(pair.ratio, pair.ratio_ci95, ".4g", ".2g"),
                shown(one.exact_loss, ".6g"), shown(above, "+.3f" if abs(above) < 1000 else "+.3g"),
            ]
        )  # fmt: skip
    header = ["policy", "loss rate", "95%", "% lost", f"ratio to {first}", "exact loss", "% above optimum"]
    hidden = 2 if not np.isfinite(cell.exact_loss.values).any() else 0 if np.isfinite(best) else 1
    return header[: 7 - hidden], [line[: 7 - hidden] for line in lines]


def notes(data: xr.Dataset) -> list[str]:
    """Where there are no intervals, and why."""
    lines, replicas = [], data.sizes["replica"]
    for rate in data.arrival_rate.values:
        cell = data.sel(arrival_rate=rate)
        rare = [str(p) for p, seen in zip(data.policy.values, cell.seen.values, strict=True) if seen < needed(replicas)]
        if rare:
            lines.append(
                f"at arrivals {rate:g} fewer than {needed(replicas)} of {replicas} replicas saw a loss of "
                f"{', '.join(rare)}: no interval; raise --jobs or --replicas"
            )
    return lines


def lead(data: xr.Dataset) -> str:
    """What was simulated."""
    policies = ", ".join(map(str, data.policy.values))
    return f"{queues(data)}. Policies: {policies}. {data.sizes['replica']:,} replicas, seed {data.attrs['seed']}."


def sections(data: xr.Dataset):
    """One for all, with the picture, and one for each arrival rate."""
    if data.sizes["arrival_rate"] > 1:
        drawn = Picture(functools.partial(draw_losses, data=data), "Percent of jobs lost against the arrival rate")
        yield Section("Loss by arrival rate", pictures=[drawn])
    for place in range(data.sizes["arrival_rate"]):
        cell = data.isel(arrival_rate=place)
        caption = "Jobs lost per unit time, half-width of the 95% interval, and ratios on the same events"
        yield Section(
            f"Arrivals {cell.arrival_rate.item():g}", says=[_head(cell)], tables=[Table(caption, *_lines(cell))]
        )


STUDY = Study(
    "route", rows, table, lambda data: {"route": plot_routing(data)}, lead, sections, lambda found: [
        f"loss of {r['policy']} at arrivals {r['arrival_rate']:g}" for r in found if r["stationary"] is False
    ], notes,
)  # fmt: skip
