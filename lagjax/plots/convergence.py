"""Reward per copy and blocking against the number of copies."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE


def plot_convergence(data: xr.Dataset, policy: str | None = None) -> Figure:
    """Draws percent of OCC-UB and blocking of every instance (or, for several policies, of one instance each) by size.

    The horizontal axis is the coordinate that varies: copies n, or dispatchers m where n is constant.
    """
    axis = "copies" if len(np.unique(data.copies)) > 1 or len(np.unique(data.dispatchers)) == 1 else "dispatchers"
    x = data[axis].values
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    percents, blockings = figure.subplots(1, 2)
    percents.axhline(100, color="black", linewidth=1.2)
    names = [(str(i), str(p)) for i in data.instance.values for p in data.policy.values if policy in (None, str(p))]
    for place, (instance, name) in enumerate(names):
        cell = data.sel(instance=instance, policy=name)
        colour, marker = STYLE[place % len(STYLE)]
        label = instance if data.sizes["policy"] == 1 or policy else f"{instance}, {name}"
        style = {"color": colour, "marker": marker, "markersize": 4.5, "linewidth": 1.4, "capsize": 2}
        order = np.argsort(x, kind="stable")
        percents.errorbar(
            x[order], cell.percent_of_occ_ub[order], yerr=np.nan_to_num(cell.percent_ci95)[order], label=label, **style
        )
        blockings.errorbar(
            x[order], 100 * cell.blocking[order], yerr=100 * np.nan_to_num(cell.blocking_ci95)[order], **style
        )
    percents.set(ylabel="reward per copy, % of OCC-UB")
    blockings.set(ylabel="tasks lost, %", ylim=(0, None))
    for axes in (percents, blockings):
        axes.set_xscale("log", base=4)
        axes.set_xticks(np.unique(x), [f"{value:,}" for value in np.unique(x)], rotation=35)
        axes.set_xlabel("copies n" if axis == "copies" else "dispatchers m")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*percents.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure
