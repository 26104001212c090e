"""Reward per copy and blocking against the number of copies."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

DASHES = ("-", "--", ":", "-.", (0, (5, 1, 1, 1, 1, 1)))


def plot_convergence(data: xr.Dataset) -> Figure:
    """Draws percent of OCC-UB and blocking of every instance and policy by size: colours tell instances, dashes policies.

    The horizontal axis is the coordinate that varies: copies n, or dispatchers m where n is constant.
    """
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    percents, blockings = figure.subplots(1, 2)
    draw_share(percents, data)
    draw_lost(blockings, data)
    figure.legend(*percents.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_share(axes, data: xr.Dataset) -> None:
    """Draws reward per copy as percent of OCC-UB."""
    axes.axhline(100, color="black", linewidth=1.2)
    _draw(axes, data, lambda cell: (cell.percent_of_occ_ub, cell.percent_ci95))
    axes.set(ylabel="reward per copy, % of OCC-UB")


def draw_lost(axes, data: xr.Dataset) -> None:
    """Draws the share of tasks lost."""
    _draw(axes, data, lambda cell: (100 * cell.blocking, 100 * cell.blocking_ci95))
    axes.set(ylabel="tasks lost, %", ylim=(0, None))


def _draw(axes, data, values):
    axis = "copies" if len(np.unique(data.copies)) > 1 or len(np.unique(data.dispatchers)) == 1 else "dispatchers"
    x = data[axis].values
    order = np.argsort(x, kind="stable")
    instances, policies = data.instance.values, data.policy.values
    for place, (instance, policy) in enumerate((i, p) for i in instances for p in policies):
        mean, interval = values(data.sel(instance=instance, policy=policy))
        kind, rule = divmod(place, len(policies))
        colour, marker = STYLE[(kind if len(instances) > 1 else rule) % len(STYLE)]
        dash = DASHES[rule % len(DASHES)] if len(instances) > 1 else "-"
        label = plain(instance if len(policies) == 1 else f"{instance}, {policy}")
        style = {
            "color": colour,
            "marker": marker,
            "linestyle": dash,
            "markersize": 4.5,
            "linewidth": 1.4,
            "capsize": 2,
        }
        axes.errorbar(x[order], mean[order], yerr=np.nan_to_num(interval)[order], label=label, **style)
    axes.set_xscale("log", base=4)
    axes.set_xticks(np.unique(x), [f"{value:,}" for value in np.unique(x)], rotation=35)
    axes.set_xlabel("copies n" if axis == "copies" else "dispatchers m")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
