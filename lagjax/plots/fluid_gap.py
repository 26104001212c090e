"""Distance of the scaled system from its fluid trajectory, against size."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

EXPECTED = {"copies": (-0.25, "−1/4, the theory for m = ⌊√n⌋"), "dispatchers": (-0.5, "−1/2, the theory")}


def plot_fluid_gap(data: Mapping[str, xr.Dataset]) -> Figure:
    """Draws mean sup-distance with 95% intervals on log-log axes, and the slope that theory expects, dashed.

    The horizontal axis is copies n, or dispatchers m where no n varies.

    Args:
      data: datasets of `lagjax.fluid.compare_with_simulation`, by label; the legend adds the fitted slope.
    """
    axis = "copies" if any(len(np.unique(one.copies)) > 1 for one in data.values()) else "dispatchers"
    symbol = "n" if axis == "copies" else "m"
    figure = Figure(figsize=(7.6, 5.4), layout="constrained")
    axes = figure.subplots()
    for place, (label, one) in enumerate(data.items()):
        colour, marker = STYLE[place % len(STYLE)]
        slope, error = one[f"slope_{axis}"].item(), one[f"slope_{axis}_error"].item()
        axes.errorbar(
            one[axis], one.mean_distance, yerr=np.nan_to_num(one.distance_ci95), color=colour, marker=marker,
            markersize=4.5, linewidth=1.4, capsize=2, linestyle="-" if place < len(STYLE) else "--",
            label=f"{plain(label)}: slope {slope:.3f} ± {error:.3f}".replace("-", "−") if np.isfinite(slope) else plain(label),
        )  # fmt: skip
    sizes = np.unique(np.concatenate([one[axis].values for one in data.values()])).astype(float)
    slope, words = EXPECTED[axis]
    last = np.concatenate([one.mean_distance.values[one[axis].values == sizes[-1]] for one in data.values()])
    reference = 1.25 * last.max() * (sizes / sizes[-1]) ** slope
    axes.plot(sizes, reference, color="black", linestyle="--", linewidth=1.2, label=words)
    axes.set_xscale("log", base=4)
    axes.set_yscale("log")
    axes.set_xticks(sizes, [f"{value:,.0f}" for value in sizes], rotation=35)
    axes.minorticks_off()
    low, high = axes.get_ylim()
    ticks = [t for t in np.outer(10.0 ** np.arange(-7, 2), (1, 2, 5)).ravel() if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:g}" for t in ticks])
    axes.set(xlabel=f"{axis} {symbol}", ylabel="largest distance from the fluid trajectory")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return figure
