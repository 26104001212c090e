"""Occupancy beside the fixed point, and the distance to it as the system grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

LEAST = 1e-5  # occupancies below are not drawn


def plot_compatibility(cases: Sequence[dict]) -> Figure:
    """Draws described cases (`lagjax.compatibility.describe`) of one load and policy, or of several.

    First: occupancy by level of the largest system of every graph, load and policy, and the fixed points. Then: mean queue length
    over the fixed point's, and the sup-distance of trajectories where they were followed, against the number of servers.
    """
    followed = any(case["sup_distance"] is not None for case in cases)
    figure = Figure(figsize=(14 if followed else 10, 4.6), layout="constrained")
    tails, growth, *paths = figure.subplots(1, 3 if followed else 2)
    loads, policies = (list(dict.fromkeys(case[key] for case in cases)) for key in ("load", "policy"))
    families: dict[str, list[dict]] = {}
    for case in cases:
        label = case["graph"] + (f", load {case['load']:g}" if len(loads) > 1 else "")
        families.setdefault(label + (f", {case['policy']}" if len(policies) > 1 else ""), []).append(case)
    drawn: set = set()
    for place, (label, members) in enumerate(families.items()):
        colour, marker = STYLE[place % len(STYLE)]
        members = sorted(members, key=lambda case: case["servers"])
        rows = [row for row in members[-1]["rows"] if row["occupancy"] >= LEAST]
        tails.errorbar(
            [row["level"] for row in rows], [row["occupancy"] for row in rows],
            yerr=[row["occupancy_ci95"] or 0 for row in rows], color=colour, marker=marker, markersize=5, linewidth=1.2,
            capsize=2, label=plain(label),
        )  # fmt: skip
        key = (members[-1]["load"], members[-1]["policy"])
        if key not in drawn:
            levels = [row for row in members[-1]["rows"] if row["fixed_point"] >= LEAST]
            tails.plot(
                [row["level"] for row in levels], [row["fixed_point"] for row in levels], color="black", linestyle="--",
                linewidth=1.3, label=None if drawn else "fixed point",
            )  # fmt: skip
            drawn.add(key)
        base = np.array([case["fixed_point_queue_length"] for case in members])
        excess = np.array([case["mean_queue_length"] for case in members]) / base - 1
        half = np.array([case["mean_queue_length_ci95"] or 0 for case in members]) / base
        growth.errorbar(
            [case["servers"] for case in members], 100 * excess, yerr=100 * half, color=colour, marker=marker, markersize=5,
            linewidth=1.2, capsize=2,
        )  # fmt: skip
        seen = [case for case in members if case["sup_distance"] is not None]
        if seen:
            paths[0].errorbar(
                [case["servers"] for case in seen], [case["sup_distance"] for case in seen],
                yerr=[case["sup_distance_ci95"] or 0 for case in seen], color=colour, marker=marker, markersize=5, linewidth=1.2,
                capsize=2,
            )  # fmt: skip
    growth.axhline(0, color="black", linestyle="--", linewidth=1.3)
    tails.set(yscale="log", xlabel="level i", ylabel="fraction of servers with at least i tasks")
    growth.set(ylabel="mean queue length over the fixed point's, %")
    for axes in paths:
        axes.set(yscale="log", ylabel="sup-distance to the ODE from an uneven start")
    sizes = sorted({case["servers"] for case in cases})
    for axes in (growth, *paths):
        axes.set(xscale="log", xlabel="servers N", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
        axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
        axes.set_xticks([], minor=True)
    tails.xaxis.get_major_locator().set_params(integer=True)
    for axes in (tails, growth, *paths):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    title = f"{policies[0]}, load {loads[0]:g}" if len(loads) == len(policies) == 1 else "Several loads or policies"
    tails.set_title(plain(f"occupancy, N = {max(case['servers'] for case in cases)}"), fontsize=10)
    figure.suptitle(plain(title))
    figure.legend(loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure
