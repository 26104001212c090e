"""Policies against load: reward with its upper bounds, and percent of OCC-UB with intervals."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

# Okabe-Ito colours and distinct markers: told apart in grey and by colour-blind readers.
STYLE = [("#0072B2", "o"), ("#D55E00", "s"), ("#666666", "v"), ("#009E73", "D"), ("#CC79A7", "^"), ("#E69F00", "P")]
BOUNDS = [
    ("occ_ub", "OCC-UB at the measured blocking", "-"),
    ("occ_ub_0", "OPT(OCC-LP(0)), no bound at finite size", "--"),
    ("kiid_ub", "KIID bound", ":"),
]


def plot_load_sweep(data: xr.Dataset, instance: str) -> Figure:
    """Draws one instance of a sweep: reward per step on the left, percent of OCC-UB on the right.

    The figure is free of any graphical backend; save it with `figure.savefig(path)`.
    """
    one = data.sel(instance=instance).dropna("load", subset=["occ_ub"])
    load = one["load"].values
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    rewards, percents = figure.subplots(1, 2)
    for key, label, dash in BOUNDS:
        rewards.plot(load, one[key], color="black", linestyle=dash, linewidth=1.2, label=label)
    percents.axhline(100, color="black", linewidth=1.2)
    percents.annotate(
        "OCC-UB", (0.01, 100), xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points", fontsize=8
    )
    for i, policy in enumerate(data.policy.values):
        colour, marker = STYLE[i % len(STYLE)]
        of = one.sel(policy=policy)
        # The first policy lies on top; those beneath are drawn wider, so that equal curves show as a rim.
        style = {
            "color": colour,
            "marker": marker,
            "markersize": 4 + 0.9 * i,
            "linewidth": 1.2 + 0.5 * i,
            "zorder": 3 - i / 10,
        }
        rewards.errorbar(load, of.reward_per_step, yerr=np.nan_to_num(of.reward_ci95), label=plain(policy), **style)
        percents.errorbar(load, of.percent_of_occ_ub, yerr=np.nan_to_num(of.percent_ci95), capsize=2, **style)
    rewards.set(ylabel="reward per step", ylim=(0, None))
    percents.set(ylabel="reward, % of OCC-UB")
    for axes in (rewards, percents):
        axes.set_xlabel("load ρ")
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(plain(instance))
    figure.legend(*rewards.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def plain(name) -> str:
    """A user's name as it is, not as mathematics."""
    return str(name).replace("$", r"\$")
