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
      data: of `lagjax.studies.dispatching.compare_dispatching`.
      policies: which to draw; all by default.
    """
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    panels = figure.subplots(1, 2)
    oracle = data.attrs["oracle"]
    names = [str(p) for p in data.policy.values if policies is None or p in policies]
    for i, name in enumerate(names):
        colour, marker = SEVEN[i % len(SEVEN)]
        one = data.sel(policy=name)
        for axes, mean, half in (
            (panels[0], one.reward, one.reward_ci95),
            (panels[1], one.below_oracle, one.below_oracle_ci95),
        ):
            if axes is panels[1] and name == oracle:
                continue
            axes.plot(one.horizon, mean, color=colour, marker=marker, markersize=4, linewidth=1.5, label=plain(name))
            axes.fill_between(one.horizon, mean - half, mean + half, color=colour, alpha=0.25, linewidth=0)
    panels[0].set_title("discounted reward: jobs taken", fontsize=10)
    beside = f"below {plain(oracle)}, the best that sees all backlogs, %" if oracle else "no policy sees all backlogs"
    panels[1].set_title(beside, fontsize=10)
    panels[1].axhline(0, color="black", linewidth=0.8)
    panels[1].set_ylim(-1, 30)  # beyond are the first slots, and who does not look
    for axes in panels:
        axes.set_xlabel("horizon, slots")
        axes.set_xscale("log")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=len(names), frameon=False)
    return figure


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
