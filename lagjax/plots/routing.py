"""Loss of routing policies: against the arrival rate, and above the optimum over a grid of systems."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

STYLES = [*STYLE, ("#56B4E9", "X")]


def plot_routing(data: xr.Dataset) -> Figure:
    """Draws the loss of every policy against the arrival rate; `data` as `lagjax.studies.routing.route` makes it."""
    figure = Figure(figsize=(6.4, 4.4), layout="constrained")
    axes = figure.subplots()
    draw_losses(axes, data)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure


def draw_losses(axes, data: xr.Dataset) -> None:
    """Draws percent of jobs lost with intervals, the optimum and the lower bound."""
    order = np.argsort(data.arrival_rate.values)
    rate = data.arrival_rate.values[order]
    for i, policy in enumerate(data.policy.values):
        colour, marker = STYLES[i % len(STYLES)]
        one = data.sel(policy=policy)
        mean, half = (100 * values.values[order] / rate for values in (one.loss_rate, one.loss_ci95))
        axes.errorbar(
            rate, mean, yerr=np.nan_to_num(half), color=colour, marker=marker, markersize=5, linewidth=1.4, capsize=2,
            label=plain(policy),
        )  # fmt: skip
    for values, dash, label in ((data.optimal_loss, "-", "optimum"), (data.loss_lower_bound, ":", "lower bound")):
        if np.isfinite(values).any():
            axes.plot(rate, 100 * values.values[order] / rate, color="black", linestyle=dash, linewidth=1, label=label)
    axes.set(xlabel="arrivals, jobs per unit time", ylabel="jobs lost, %", ylim=(0, None))
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def plot_routing_grid(data: xr.Dataset) -> Figure:
    """Draws each policy's worst and median loss above the optimum, in % of it, and its worst in % of the jobs.

    Args:
      data: over (system, traffic, policy): loss, jobs lost per unit time; over (system, traffic): optimum, arrival_rate.
    """
    traffic = data.traffic.values
    above = 100 * (data.loss / data.optimum - 1)
    jobs = 100 * (data.loss - data.optimum) / data.arrival_rate
    figure = Figure(figsize=(12, 4.4), layout="constrained")
    panels = figure.subplots(1, 3)
    drawn = (
        (above.max("system"), "worst system: loss above the optimum, %", 0.01),
        (above.median("system"), "median system: loss above the optimum, %", 0.01),
        (jobs.max("system"), "worst system: loss above the optimum, % of all jobs", 0.001),
    )
    for axes, (values, title, smallest) in zip(panels, drawn, strict=True):
        for i, policy in enumerate(data.policy.values):
            colour, marker = STYLES[i % len(STYLES)]
            shown = np.maximum(values.sel(policy=policy).values, 0)
            axes.plot(traffic, shown, color=colour, marker=marker, markersize=5, linewidth=1.6, label=plain(policy))
        axes.set_yscale("symlog", linthresh=smallest, linscale=0.5)
        axes.set_ylim(0, None)
        axes.set_title(title, fontsize=9)
        axes.set_xlabel("traffic: arrivals over what all servers can serve")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].axhline(1, color="black", linewidth=0.8, linestyle=":")
    panels[1].axhline(1, color="black", linewidth=0.8, linestyle=":")
    figure.legend(
        *panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=7, frameon=False, fontsize=9
    )
    return figure
