"""Occupancy beside the fixed point, and the distance to it as the system grows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure

from lagjax.plots.load_sweep import STYLE, plain

LEAST = 1e-5  # occupancies below are not drawn


def plot_compatibility(cases: Sequence[dict]) -> Figure:
    """Draws described cases (rows of `lagjax.studies.compatibility`) of one load and policy, or of several.

    First: occupancy by level of the largest system of every graph, load and policy, and the fixed points. Then: mean queue length
    over the fixed point's, and the sup-distance of trajectories where they were followed, against the number of servers.
    """
    followed = any(case["sup_distance"] is not None for case in cases)
    figure = Figure(figsize=(14 if followed else 10, 4.6), layout="constrained")
    panels = figure.subplots(1, 3 if followed else 2)
    for axes, draw in zip(panels, (draw_occupancy, draw_excess, draw_distance), strict=False):
        draw(axes, cases)
    loads, policies = _distinct(cases)
    title = f"{policies[0]}, load {loads[0]:g}" if len(loads) == len(policies) == 1 else "Several loads or policies"
    figure.suptitle(plain(title))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False, fontsize=9)
    return figure


def draw_occupancy(axes, cases: Sequence[dict]) -> None:
    """Draws occupancy by level of the largest system of every graph, load and policy, and the fixed points."""
    drawn: set = set()
    for label, style, members in _families(cases):
        last = members[-1]
        rows = [row for row in last["rows"] if row["occupancy"] >= LEAST]
        half = [row["occupancy_ci95"] or 0 for row in rows]
        axes.errorbar(
            [r["level"] for r in rows], [r["occupancy"] for r in rows], yerr=half, label=plain(label), **style
        )
        if (last["load"], last["policy"]) not in drawn:
            levels = [row for row in last["rows"] if row["fixed_point"] >= LEAST]
            axes.plot(
                [row["level"] for row in levels], [row["fixed_point"] for row in levels], color="black", linestyle="--",
                linewidth=1.3, label=None if drawn else "fixed point",
            )  # fmt: skip
            drawn.add((last["load"], last["policy"]))
    axes.set(yscale="log", xlabel="level i", ylabel="fraction of servers with at least i tasks")
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.set_title(plain(f"occupancy, N = {max(case['servers'] for case in cases)}"), fontsize=10)
    _plain_frame(axes)


def draw_excess(axes, cases: Sequence[dict]) -> None:
    """Draws mean queue length over the fixed point's against the number of servers."""
    for label, style, members in _families(cases):
        base = np.array([case["fixed_point_queue_length"] for case in members])
        excess = np.array([case["mean_queue_length"] for case in members]) / base - 1
        half = np.array([case["mean_queue_length_ci95"] or 0 for case in members]) / base
        servers = [case["servers"] for case in members]
        axes.errorbar(servers, 100 * excess, yerr=100 * half, label=plain(label), **style)
    axes.axhline(0, color="black", linestyle="--", linewidth=1.3)
    axes.set(ylabel="mean queue length over the fixed point's, %")
    _by_servers(axes, cases)


def draw_distance(axes, cases: Sequence[dict]) -> None:
    """Draws the sup-distance of trajectories, where they were followed, against the number of servers."""
    for label, style, members in _families(cases):
        seen = [case for case in members if case["sup_distance"] is not None]
        if seen:
            half = [case["sup_distance_ci95"] or 0 for case in seen]
            distance = [case["sup_distance"] for case in seen]
            axes.errorbar([case["servers"] for case in seen], distance, yerr=half, label=plain(label), **style)
    axes.set(yscale="log", ylabel="sup-distance to the ODE from an uneven start")
    _by_servers(axes, cases)


def _distinct(cases):
    return tuple(list(dict.fromkeys(case[key] for case in cases)) for key in ("load", "policy"))


def _families(cases):
    """Yields a label, a style and the cases, smallest first, of every graph, load and policy."""
    loads, policies = _distinct(cases)
    families: dict[str, list[dict]] = {}
    for case in cases:
        label = case["graph"] + (f", load {case['load']:g}" if len(loads) > 1 else "")
        families.setdefault(label + (f", {case['policy']}" if len(policies) > 1 else ""), []).append(case)
    for place, (label, members) in enumerate(families.items()):
        colour, marker = STYLE[place % len(STYLE)]
        style = {"color": colour, "marker": marker, "markersize": 5, "linewidth": 1.2, "capsize": 2}
        yield label, style, sorted(members, key=lambda case: case["servers"])


def _by_servers(axes, cases):
    sizes = sorted({case["servers"] for case in cases})
    axes.set(xscale="log", xlabel="servers N", xlim=(sizes[0] / 1.3, sizes[-1] * 1.3))
    axes.set_xticks(sizes, [str(n) for n in sizes], minor=False)
    axes.set_xticks([], minor=True)
    _plain_frame(axes)


def _plain_frame(axes):
    axes.grid(alpha=0.25)
    axes.spines[["top", "right"]].set_visible(False)
