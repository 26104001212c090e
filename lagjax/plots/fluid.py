"""Distance to the fixed point over time, for every start, and the spectrum there."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from lagjax.fluid.verify import FluidReport
from lagjax.plots.load_sweep import STYLE, plain

_GROUPS = ("all free", "all busy", "all with", "one stage", "Dirichlet", "near", "worst")
_LABELS = (
    "all free", "all busy, just begun", "all with as many steps left", "one stage per server type, at random", "Dirichlet",
    "near the fixed point", "worst found by gradient ascent",
)  # fmt: skip
_FLOOR = 1e-16


def plot_fluid(report: FluidReport) -> Figure:
    """Draws distance against time on a logarithmic scale, with the spectrum's rate dashed, and the eigenvalues in the plane."""
    found = report.trajectories
    figure = Figure(figsize=(11, 4.6), layout="constrained")
    left, right = figure.subplots(1, 2, width_ratios=(1.6, 1))
    colours = [colour for colour, _ in STYLE] + ["#000000"]
    many = found.distance.shape[1] > 40
    for which in sorted(range(len(_GROUPS)), key=lambda i: i in (0, 1)):  # the named two on top
        members = [j for j, kind in enumerate(found.kind) if kind.startswith(_GROUPS[which])]
        if members:
            heavy = which in (0, 1)
            left.plot(
                found.times, np.maximum(found.distance[:, members], _FLOOR), color=colours[which],
                linewidth=1.8 if heavy else 0.7, alpha=1 if heavy or not many else 0.45,
            )  # fmt: skip
            left.plot([], [], color=colours[which], linewidth=1.8, label=f"{_LABELS[which]} ({len(members)})")
    radius = report.spectrum.radius
    if 0 < radius < 1:
        bound = radius ** found.times.astype(float)
        bound[bound < _FLOOR] = np.nan
        left.plot(
            found.times,
            bound,
            color="black",
            linestyle="--",
            linewidth=1.2,
            label=f"rate of the spectrum, {radius:.5g}",
        )
    left.axhline(found.tolerance, color="grey", linewidth=0.8, linestyle=":")
    left.annotate(
        "settled below", (1, found.tolerance), xycoords=("axes fraction", "data"), ha="right", va="top", fontsize=8
    )
    left.set(
        yscale="log", xlabel="step t", ylabel="distance to the fixed point", ylim=(_FLOOR, 2), xlim=(0, found.times[-1])
    )
    circle = np.exp(2j * np.pi * np.linspace(0, 1, 400))
    right.plot(circle.real, circle.imag, color="black", linewidth=0.8)
    values = report.spectrum.eigenvalues
    right.plot(values.real, values.imag, ".", color=STYLE[0][0], markersize=3.5)
    if values.size:
        right.plot(values[:1].real, values[:1].imag, "o", color=STYLE[1][0], markersize=6, markerfacecolor="none")
    reach = 1.1 * max(1.0, radius)
    right.set(aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach), xlabel="real part", ylabel="imaginary part")
    shown = "eigenvalues" if report.spectrum.whole else "leading eigenvalues"
    right.set_title(f"{values.size} {shown}, with multiplicity", fontsize=10)
    for axes in (left, right):
        axes.grid(alpha=0.25)
        axes.spines[["top", "right"]].set_visible(False)
    verdict = {"True": "attractor", "False": "no attractor"}.get(str(report.attractor), "undecided")
    figure.suptitle(plain(f"{report.instance}, {report.policy}, load {report.load:g}: {verdict}"))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    return figure
