"""How much of the distance to OCC-UB is the bound's looseness, and how much is the policy's.

python experiments/looseness.py > experiments/looseness.md    (about ten minutes on two cores; also draws pictures/looseness.png)
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np

from lagjax import gallery, geometric, simulate
from lagjax.cli.inputs import default_loads
from lagjax.cli.terminal import use_all_cores
from lagjax.errors import InputError
from lagjax.exact import evaluate, exact_blocking, level_bound, level_policy, optimum
from lagjax.instance import Instance, make_instance
from lagjax.lp import SELECTIONS, occ_upper_bound
from lagjax.policies import build_policy
from lagjax.stats import estimate, percent_of_bound
from lagjax.studies.measure import arrivals_and_warmup, measure
from lagjax.tune.tuned import tune

INSTANCES = ("specialist", "priority", "unfriendly", "low-rank", "journal")
REPLICAS = 1024
SEED = 0
PICTURE = Path(__file__).parent / "pictures" / "looseness.png"

HEAD = """# What the distance to OCC-UB is made of

Made by `python experiments/looseness.py > experiments/looseness.md`. All systems at one copy of every server, with
geometric durations: those of Specialist and Priority are, those of the others are replaced by geometric ones of the same
mean, for which there is a bound by running tasks (`lagjax.exact.level_bound`) and sometimes an optimum. All figures are %
of OCC-UB, OPT(OCC-LP(B)) at the exact blocking B. With ±, the half-width of a 95% interval, they are simulated: at the
blocking of the same arrivals, which estimates the same with less noise. Without, they are exact.

- bound: no policy is above it. 100 less it is proven looseness of OCC-UB.
- optimum: the best of all policies, where it can be computed. Bound less optimum is looseness that the bound has left.
- LAG: at the best of the LP's selections. Optimum less LAG is what a better policy could gain, and no more.
- levels: LAG with prices that depend on the number of running tasks (`lag-levels`).

| instance | load | bound | optimum | LAG | ± | tuned | ± | levels | ± | looseness, at least | policy, at most |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"""


class Line(NamedTuple):
    """One row of the page; NaN where nothing is known."""

    instance: str
    load: float
    bound: float
    optimum: float
    lag: tuple[float, float]
    tuned: tuple[float, float]
    levels: tuple[float, float]


def main() -> None:
    print(HEAD)
    lines = []
    for name in INSTANCES:
        for load in default_loads(gallery(name)):
            lines.append(line(geometric_twin(gallery(name, load))))
            print(render(lines[-1]), flush=True)
    print(f"\n![The distance to OCC-UB, split](pictures/{PICTURE.name})")
    draw(lines)


def geometric_twin(instance: Instance) -> Instance:
    """The instance with geometric durations of the same mean."""
    (mean,) = np.unique(np.round(instance.mean_duration, 6))
    twin = make_instance(
        instance.scores, geometric(float(mean)), servers_per_task=instance.servers_per_task,
        load=instance.load, mix=instance.arrival_rate,
    )  # fmt: skip
    return dataclasses.replace(twin, name=instance.name)


def line(instance: Instance) -> Line:
    occ = occ_upper_bound(instance, exact_blocking(instance)) / 100
    policies = [build_policy("lag", instance, selection) for selection in SELECTIONS]
    policies += [tune(instance, seed=SEED).policy, level_policy(instance)]
    try:
        best = optimum(instance).reward / occ
        values = [(evaluate(instance, policy, lumped=False).reward / occ, 0.0) for policy in policies]
    except InputError:  # too many states
        best, values = np.nan, simulated(instance, policies)
    lag = max(values[: len(SELECTIONS)])
    return Line(instance.name, instance.load, level_bound(instance).reward / occ, best, lag, *values[len(SELECTIONS) :])


def simulated(instance, policies):
    """Percent of OCC-UB of every policy with its half-width, on the replicas of a sweep."""
    policies = [dataclasses.replace(policy, name=str(i)) for i, policy in enumerate(policies)]
    arrivals, warmup = arrivals_and_warmup(instance, None)
    counts = simulate(instance, policies, arrivals=arrivals, warmup=warmup, replicas=REPLICAS, seed=SEED)
    cell = measure(instance, policies, counts, warmup=warmup)
    percent = estimate(percent_of_bound(cell.reward, cell.blocked, cell.occ_ub, cell.occ_slope))
    return list(zip(percent.mean.tolist(), percent.ci95.tolist(), strict=True))


def render(row: Line) -> str:
    def both(value):
        return f"{value[0]:.2f} | {value[1]:.2f}" if value[1] else f"{value[0]:.2f} | "

    top = row.optimum if np.isfinite(row.optimum) else row.bound
    known = f"{row.optimum:.2f}" if np.isfinite(row.optimum) else "-"
    rest = " | ".join(map(both, (row.lag, row.tuned, row.levels)))
    split = f"{100 - top:.2f} | {max(top - row.lag[0], 0):.2f}"
    return f"| {row.instance} | {row.load:.1f} | {row.bound:.2f} | {known} | {rest} | {split} |"


def draw(lines) -> None:
    figure, axes = plt.subplots(1, len(INSTANCES), figsize=(3 * len(INSTANCES), 3.4), sharey=True, layout="constrained")
    for axis, name in zip(axes, INSTANCES, strict=True):
        rows = [row for row in lines if row.instance == name]
        load, bound, best, lag = (np.array([float(x) for x in column]) for column in (
            [row.load for row in rows], [row.bound for row in rows], [row.optimum for row in rows],
            [row.lag[0] for row in rows],
        ))  # fmt: skip
        top = np.where(np.isfinite(best), best, bound)
        axis.fill_between(load, bound, 100, color="0.8", lw=0, label="looseness of OCC-UB, proven by the bound")
        if np.isfinite(best).any():
            axis.fill_between(load, best, bound, color="0.9", lw=0, label="looseness of OCC-UB that the bound has left")
            axis.plot(load, best, "k--", lw=1, label="optimum")
        axis.fill_between(
            load, lag, top, color="tab:orange", alpha=0.35, lw=0, label="what a better policy could gain, at most"
        )
        axis.plot(load, lag, "o-", color="tab:blue", ms=3, lw=1.2, label="LAG")
        axis.plot(load, [row.levels[0] for row in rows], "x", color="tab:green", ms=5, label="LAG by running tasks")
        axis.set(title=name, xlabel="load", xlim=(load.min(), load.max()), ylim=(78, 100))
        axis.grid(alpha=0.3)
    axes[0].set_ylabel("reward, % of OCC-UB")
    handles = {label: handle for axis in axes for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    figure.savefig(PICTURE, dpi=150)


if __name__ == "__main__":
    use_all_cores()
    main()
