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
    figure = Figure(figsize=(11, 4.4), layout="constrained")
    rewards, percents = figure.subplots(1, 2)
    draw_rewards(rewards, data, instance)
    draw_percents(percents, data, instance)
    figure.suptitle(plain(instance))
    figure.legend(*rewards.get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False, fontsize=9)
    return figure


def draw_rewards(axes, data: xr.Dataset, instance: str) -> None:
    """Draws reward per step with the three bounds."""
    one = _run(data, instance)
    for key, label, dash in BOUNDS:
        if one[key].isnull().all():
            continue
        axes.plot(one.offered_load.values, one[key], color="black", linestyle=dash, linewidth=1.2, label=label)
    for policy, style in _styles(data):
        of = one.sel(policy=policy)
        axes.errorbar(
            one.offered_load.values,
            of.reward_per_step,
            yerr=np.nan_to_num(of.reward_ci95),
            label=plain(policy),
            **style,
        )
    axes.set(ylabel="reward per step", ylim=(0, None))
    _finish(axes)


def draw_percents(axes, data: xr.Dataset, instance: str) -> None:
    """Draws percent of OCC-UB with intervals."""
    one = _run(data, instance)
    axes.axhline(100, color="black", linewidth=1.2)
    axes.annotate(
        "OCC-UB", (0.01, 100), xycoords=("axes fraction", "data"), xytext=(0, 3), textcoords="offset points", fontsize=8
    )
    for policy, style in _styles(data):
        of = one.sel(policy=policy)
        interval = np.nan_to_num(of.percent_ci95)
        axes.errorbar(
            one.offered_load.values, of.percent_of_occ_ub, yerr=interval, capsize=2, label=plain(policy), **style
        )
    axes.set(ylabel="reward, % of OCC-UB")
    _finish(axes)


def _run(data, instance):
    return data.sel(instance=instance).dropna("offered_load", subset=["occ_ub"])


def _styles(data):
    """The first policy lies on top; those beneath are drawn wider, so that equal curves show as a rim."""
    for i, policy in enumerate(data.policy.values):
        colour, marker = STYLE[i % len(STYLE)]
        yield (
            policy,
            {
                "color": colour,
                "marker": marker,
                "markersize": 4 + 0.9 * i,
                "linewidth": 1.2 + 0.5 * i,
                "zorder": 3 - i / 10,
            },
        )


def _finish(axes):
    axes.set_xlabel("load ρ")
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)


def plain(name) -> str:
    """A user's name as it is, not as mathematics."""
    return str(name).replace("$", r"\$")
