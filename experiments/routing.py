"""Every routing policy against the optimum on a grid of two- and three-queue systems, all exact.

    python experiments/routing.py [FOLDER]    (about two minutes; writes routing.md and pictures/routing.png)

The benchmark study of Nino-Mora (EJOR 2012, section 5) in form: which systems it used is not in the text that we have.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np
import xarray as xr

from lagjax.loss_routing import POLICIES, build_routing, exact_loss, least_loss, make_system
from lagjax.plots.routing import plot_routing_grid


@dataclasses.dataclass(frozen=True)
class Grid:
    """Servers m, waiting places n - m and rates mu: every combination of the same number of queues, at every traffic."""

    servers: tuple = ((1, 1), (1, 3), (2, 2), (2, 5), (1, 1, 1), (1, 2, 4), (3, 2, 1))
    waiting: tuple = ((0, 0), (0, 6), (1, 4), (4, 1), (5, 5), (0, 0, 0), (1, 2, 4), (4, 2, 1), (3, 3, 3))
    rates: tuple = ((1, 1), (1, 0.5), (1, 0.2), (0.3, 1), (1, 1, 1), (1, 0.6, 0.3), (0.3, 0.6, 1), (1, 1, 0.2))
    traffic: tuple = (0.3, 0.5, 0.7, 0.9, 1.1, 1.3, 1.5)
    policies: tuple = tuple(POLICIES)

    def systems(self):
        every = itertools.product(self.servers, self.waiting, self.rates)
        return [(m, w, mu) for m, w, mu in every if len(m) == len(w) == len(mu)]


def solve(grid: Grid) -> xr.Dataset:
    """Exact losses over (system, traffic, policy), with the optimum, its bracket, the states and the residuals."""
    systems = grid.systems()
    shape = (len(systems), len(grid.traffic))
    loss, residual = np.empty((*shape, len(grid.policies))), np.empty((*shape, len(grid.policies)))
    optimum, bracket, rate, states = (np.empty(shape) for _ in range(4))
    for i, (m, waiting, mu) in enumerate(systems):
        base = make_system(m, np.add(m, waiting), mu, 1.0)
        for j, traffic in enumerate(grid.traffic):
            system = base.with_arrival_rate(traffic * base.capacity)
            best = least_loss(system)
            optimum[i, j], bracket[i, j] = best.loss, best.upper - best.lower
            rate[i, j], states[i, j] = system.arrival_rate, best.states
            found = [exact_loss(system, policy) for policy in build_routing(grid.policies, system)]
            loss[i, j], residual[i, j] = [f.loss for f in found], [f.residual for f in found]
        if sys.stderr.isatty():
            print(f"\r{i + 1} of {len(systems)} systems", end="", file=sys.stderr)
    at, each = ("system", "traffic"), ("system", "traffic", "policy")
    return xr.Dataset(
        {"loss": (each, loss), "residual": (each, residual), "optimum": (at, optimum), "bracket": (at, bracket),
         "arrival_rate": (at, rate), "states": (at, states)},
        {"system": [name(s) for s in systems], "traffic": list(grid.traffic), "policy": list(grid.policies)},
    )  # fmt: skip


def name(system) -> str:
    m, waiting, mu = system
    return f"m {_list(m)}; n {_list(np.add(m, waiting))}; µ {_list(mu)}"


def page(data: xr.Dataset) -> str:
    above = 100 * (data.loss / data.optimum - 1)
    jobs = 100 * (data.loss - data.optimum) / data.arrival_rate
    policies = [str(p) for p in data.policy.values]
    cells = data.sizes["system"] * data.sizes["traffic"]
    relative = float((data.bracket / data.optimum).max())
    first, last = data.traffic.values[[0, -1]]
    width, relative = float((data.bracket / data.arrival_rate).max()), float((data.bracket / data.optimum).max())
    systems, states, residual = data.sizes["system"], int(data.states.max()), float(data.residual.max())

    def worst_and_median(t, p):
        values = above.sel(traffic=t, policy=p)
        return f"{_short(values.max())} ({_short(values.median())})"

    parts = [
        "# Routing to parallel finite queues: policies against the optimum",
        f"Made by `python experiments/routing.py`: {systems} systems of two and three queues with unequal servers m, "
        f"room n and rates µ, at traffic λ / Σ m µ from {first:g} to {last:g}, {cells} cells. All losses are exact: stationary "
        f"laws of the joint chain (up to {states:,} states; balance equations within {residual:.0e} of "
        f"the largest flow) and the optimum by policy iteration, bracketed by value iteration within {width:.0e} λ (at worst "
        f"{relative:.0e} of the optimum; the least optimum is {float(data.optimum.min()):.0e}). Ties are broken at random.",
        "![Loss above the optimum against traffic](pictures/routing.png)",
        "## Loss above the optimum, in % of the optimum: worst system, and in brackets the median",
        _table(data, policies, worst_and_median),
        "## Systems within 1% of the optimum, %",
        _table(data, policies, lambda t, p: f"{100 * float((above.sel(traffic=t, policy=p) <= 1).mean()):.0f}"),
        "## Jobs lost above the optimum, in % of all jobs: worst system",
        _table(data, policies, lambda t, p: f"{float(jobs.sel(traffic=t, policy=p).max()):.3f}"),
        *listing(data, above.sel(policy="rb"), jobs.sel(policy="rb")),
    ]
    return "\n\n".join(parts) + "\n"


def listing(data, above, jobs):
    """Every cell in which the restless-bandit index loses more than 1% more than the optimum, worst first."""
    worse = [
        (float(above[i, j]), i, j) for i in range(above.shape[0]) for j in range(above.shape[1]) if above[i, j] > 1
    ]
    head = "| system | traffic | loss above optimum, % | of all jobs, % | optimum, % of jobs |"
    lines = [head, "|---|--:|--:|--:|--:|"]
    for value, i, j in sorted(worse, reverse=True):
        optimum = 100 * float(data.optimum[i, j] / data.arrival_rate[i, j])
        lines.append(
            f"| {data.system.values[i]} | {data.traffic.values[j]:g} | {value:.2f} | {float(jobs[i, j]):.2g} | {optimum:.2g} |"
        )
    most = float(jobs.max())
    return [
        f"## The {len(worse)} of {above.size} cells in which `rb` loses over 1% more than the optimum",
        f"In none of all cells does it lose more than {most:.2g}% more of the jobs than the optimum.",
        "\n".join(lines),
    ]


def _table(data, policies, cell):
    lines = ["| traffic | " + " | ".join(policies) + " |", "|--:|" + "--:|" * len(policies)]
    for t in data.traffic.values:
        lines.append(f"| {t:g} | " + " | ".join(cell(t, p) for p in policies) + " |")
    return "\n".join(lines)


def _short(value):
    value = max(float(value), 0.0)
    return f"{value:.2f}" if value < 1000 else f"{value:.1e}"


def _list(values):
    return ",".join(f"{v:g}" for v in values)


def main(folder: Path) -> None:
    data = solve(Grid())
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    plot_routing_grid(data).savefig(folder / "pictures" / "routing.png", dpi=110)
    (folder / "routing.md").write_text(page(data), encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
