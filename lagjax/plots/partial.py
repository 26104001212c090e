"""Dispatching with partial queue information: rewards along the horizon, and thresholds against the subsidy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

SEVEN = [*STYLE, ("#56B4E9", "X")]


def plot_horizon(data: xr.Dataset, policies=None) -> Figure:
    """Draws discounted reward, and its distance to the oracle, against the horizon, with 95% bands.

    Args:
      data: of `lagjax.studies.dispatching.dispatch`.
      policies: which to draw; all by default.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    draw_reward(panels[0], data, policies)
    draw_below(panels[1], data, policies)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False)
    return figure


def draw_reward(axes, data: xr.Dataset, policies=None) -> None:
    """Draws discounted reward against the horizon."""
    _draw_bands(axes, data, policies, "reward")
    axes.set_title("discounted reward: jobs taken", fontsize=10)


def draw_below(axes, data: xr.Dataset, policies=None) -> None:
    """Draws the distance to the oracle against the horizon."""
    oracle = data.attrs["oracle"]
    _draw_bands(axes, data, policies, "below_oracle", without=oracle)
    beside = f"below {plain(oracle)}, the best that sees all backlogs, %" if oracle else "no policy sees all backlogs"
    axes.set_title(beside, fontsize=10)
    axes.axhline(0, color="black", linewidth=0.8)
    axes.set_ylim(-1, 30)  # beyond are the first slots, and who does not look


def _draw_bands(axes, data, policies, of, without=""):
    for i, name in enumerate(str(p) for p in data.policy.values if policies is None or p in policies):
        if name == without:
            continue
        colour, marker = SEVEN[i % len(SEVEN)]
        one = data.sel(policy=name)
        mean, half = one[of], one[f"{of}_ci95"]
        axes.plot(one.horizon, mean, color=colour, marker=marker, markersize=4, linewidth=1.5, label=plain(name))
        axes.fill_between(one.horizon, mean - half, mean + half, color=colour, alpha=0.25, linewidth=0)
    axes.set_xlabel("horizon, slots")
    axes.set_xscale("log")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def plot_thresholds(subsidies: Mapping[int, np.ndarray], thresholds: Mapping[int, np.ndarray]) -> Figure:
    """Draws tau*_q against the subsidy, one panel for each capacity.

    Args:
      subsidies: by capacity K, (G,) jobs per slot.
      thresholds: by capacity K, (G, K+1) of `lagjax.partial_information.thresholds`; q = 0 is left out.
    """
    figure = Figure(figsize=(4 * len(thresholds), 3.8), layout="constrained")
    for axes, (capacity, ages) in zip(
        np.atleast_1d(figure.subplots(1, len(thresholds))), thresholds.items(), strict=True
    ):
        for q in range(1, capacity + 1):
            shade = 0.85 * (1 - q / capacity)
            axes.step(
                subsidies[capacity],
                ages[:, q],
                where="post",
                color=(shade, shade, 1 - 0.35 * q / capacity),
                linewidth=1.3,
                label=f"q={q}",
            )
        axes.set_title(f"K = {capacity}", fontsize=10)
        axes.set_xlabel("subsidy, jobs per slot")
        axes.set_xlim(0, capacity)
        axes.set_ylim(0, None)
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
        axes.legend(fontsize=7, frameon=False)
    figure.axes[0].set_ylabel("threshold: slots to wait since q was seen")
    return figure
