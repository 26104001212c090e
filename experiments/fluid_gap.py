"""The scaled system beside its fluid trajectory: largest distance against size, from the same start.

Writes fluid_gap.md beside this file and pictures/fluid_gap.png (or both to the folder named).

    python experiments/fluid_gap.py [FOLDER]
"""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np
import xarray as xr

from lagjax import gallery
from lagjax.cli.terminal import progress_bar, use_all_cores
from lagjax.fluid.compare import compare_with_simulation
from lagjax.plots.fluid_gap import plot_fluid_gap
from lagjax.policies import build_policy
from lagjax.stats import log_log_slope
from lagjax.studies.convergence import sizes_of

INSTANCES = ("priority", "unfriendly", "low-rank")
LOAD = 0.8
POLICY = "lag"
MEAN_DURATIONS = 3  # followed
TOGETHER = sizes_of([4**j for j in range(1, 9)])  # m = floor(sqrt(n))
DISPATCHERS = sizes_of([4096], (16, 64, 256, 1024, 4096))  # m alone
COPIES = sizes_of((16, 256, 4096, 65536), [16])  # n alone
ALONE = "unfriendly"  # the instance of the last two
LARGEST = 4  # sizes of the second slope
REPLICAS = 32
SEED = 0


def all_free(instance) -> np.ndarray:
    """(R, d+1) every copy free."""
    return np.eye(1, instance.max_duration + 1).repeat(instance.num_servers, axis=0)


def all_busy(instance) -> np.ndarray:
    """(R, d+1) no copy free, what is left of service as in a server that never rests: P(D >= i) / E[D] over all tasks."""
    law = instance.arrival_rate @ instance.service_pmf
    at_least = np.cumsum(law[::-1])[::-1]
    return np.r_[0, at_least / at_least.sum()][None].repeat(instance.num_servers, axis=0)


STARTS = {"all free": all_free, "all busy": all_busy}


def compare(name: str, start: str, sizes) -> xr.Dataset:
    """One instance from one start at all sizes."""
    instance = gallery(name, LOAD)
    steps = math.ceil(MEAN_DURATIONS * instance.mean_duration.max())
    with progress_bar(f"{name}, {start}", unit="sizes") as progress:
        return compare_with_simulation(
            instance, build_policy(POLICY, instance), sizes, STARTS[start](instance), steps, REPLICAS, SEED, progress
        )


def table(data: dict[str, xr.Dataset]) -> str:
    """Distances by size, in a Markdown table, one column for each dataset; all have the same sizes."""
    first = next(iter(data.values()))
    lines = ["| copies n | dispatchers m | " + " | ".join(data) + " |", "|--:" * (2 + len(data)) + "|"]
    for i, (n, m) in enumerate(zip(first.copies.values, first.dispatchers.values, strict=True)):
        cells = [f"{one.mean_distance[i]:.4f} ±{one.distance_ci95[i]:.4f}" for one in data.values()]
        lines.append(f"| {n:,} | {m} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def slopes(data: dict[str, xr.Dataset]) -> str:
    """Fitted slopes over all sizes and over the largest, and the steps in shortage."""
    lines = ["| | steps | slope, all sizes | slope, four largest | steps in shortage |", "|---|--:|--:|--:|--:|"]
    for label, one in data.items():
        far = log_log_slope(one.copies[-LARGEST:], one.sup_distance[-LARGEST:])
        lines.append(
            f"| {label} | {one.attrs['steps']} | {one.slope_copies.item():.3f} ±{one.slope_copies_error.item():.3f} | "
            f"{far.value:.3f} ±{far.error:.3f} | {one.shortage_steps[-1].item()} |"
        )
    return "\n".join(lines)


def main(page: Path, picture: Path) -> None:
    """Runs the comparison and writes the page and the picture."""
    use_all_cores()
    for path in (page, picture):
        path.parent.mkdir(parents=True, exist_ok=True)
    begun = time.perf_counter()
    data = {f"{i}, {s}": compare(i, s, TOGETHER) for i in INSTANCES for s in STARTS}
    copies = {f"{ALONE}, {s}": compare(ALONE, s, COPIES) for s in STARTS}
    dispatchers = {f"{ALONE}, {s}": compare(ALONE, s, DISPATCHERS) for s in STARTS}
    alone = [
        f"{label}: {one.slope_dispatchers.item():.3f} ±{one.slope_dispatchers_error.item():.3f}"
        for label, one in dispatchers.items()
    ]
    plot_fluid_gap(data).savefig(picture, dpi=110)
    text = f"""# The fluid trajectory and the scaled system

Made by `python experiments/fluid_gap.py`. LAG at load {LOAD:g}; {REPLICAS} replicas, seed {SEED}. Largest distance
max |X_ri(t) / (m n) − x_ri(t)| over servers r, steps of service left i and t = 0..T, T being {MEAN_DURATIONS} mean durations;
its mean ± the half-width of the 95% interval. Both start from the same whole numbers of copies: *all free*, or *all busy*
with P(D ≥ i) / E[D] of the copies having i steps left. Slopes are least-squares lines through log mean distance, ± their
standard error.

![Distance against n](pictures/fluid_gap.png)

## n and m together, m = ⌊√n⌋

{slopes(data)}

{table(data)}

Theory: a step has m tasks, so what it assigns fluctuates by 1/√m, which is n^(−1/4). The distance is at most 1, and while it is
not small against 1 it falls more slowly: LAG fills servers one after another, so all that the whole system fluctuates by comes to
lie on the server that is being filled. Priority and Low-rank, whose distance is 0.3 to 0.4 still at n = 1,024, show it most.

*Steps in shortage*: the fluid trajectory has some servers free but fewer than k. There the map fills tasks in part, as the paper
lets it, and the scaled system drops them whole, so the map is not its limit, and the distance has a floor.

## m alone, n = {DISPATCHERS[0].copies:,}

{table(dispatchers)}

Slope against m, where theory has −1/2: {"; ".join(alone)}. From all busy it meets the floor.

## n alone, m = {COPIES[0].dispatchers}

{table(copies)}

More copies for as many tasks do not bring the system closer to its fluid limit.
"""
    page.write_text(text, encoding="utf-8")
    print(text)
    print(f"{time.perf_counter() - begun:.0f} s")


if __name__ == "__main__":
    here = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    main(here / "fluid_gap.md", here / "pictures" / "fluid_gap.png")
