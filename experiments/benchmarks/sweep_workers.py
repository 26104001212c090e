"""Two Dask workers against one on the default sweep's cells, and what checkpoints, progress and files cost.

python experiments/benchmarks/sweep_workers.py [REPETITIONS] [INSTANCE ...]

On a machine that others use, wall time measures them too. So the speed-up is also given in processor time: what one worker
spends on all cells, over what the busier of two spends. It counts what two workers do twice (start, compile) and what
they leave to each other at the end, and would be the wall time's on two free cores.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import psutil

from lagjax.cli.inputs import default_loads
from lagjax.cli.terminal import use_all_cores
from lagjax.gallery import GALLERY, gallery
from lagjax.runs.progress import lines
from lagjax.runs.running import Running
from lagjax.studies.load_sweep import sweep


def with_workers(count: int, names) -> tuple[float, list[float]]:
    """Wall time from the first cell's start to the last one's end, and each worker's processor time in it."""
    spent: dict[int, float] = {}
    before: dict[int, float] = {}
    moments = []

    def view(status):
        moments.append(time.perf_counter())
        if status.event not in ("started", "finished"):
            return
        for child in psutil.Process().children(recursive=True):
            try:
                if "resource_tracker" not in " ".join(child.cmdline()):
                    spent[child.pid] = sum(child.cpu_times()[:2])
                    before.setdefault(child.pid, spent[child.pid])
            except psutil.Error:
                pass

    with tempfile.TemporaryDirectory() as out:
        sweep([gallery(n) for n in names], loads=default_loads, out=out, running=Running(workers=count, views=[view]))
    return moments[-1] - moments[0], sorted((spent[pid] - before[pid] for pid in spent), reverse=True)[:count]


def overhead(name: str, steps: int, kept: bool) -> tuple[float, float]:
    """Wall and processor time of one long cell, with everything that keeps and shows it or with nothing."""
    begun, spent = time.perf_counter(), time.process_time()
    with tempfile.TemporaryDirectory() as out:
        how = Running(out=Path(out), views=[lines(lambda line: None, "arrivals")]) if kept else Running()
        sweep([gallery(name)], loads=[0.7], steps=steps, running=how)
    return time.perf_counter() - begun, time.process_time() - spent


def main(repetitions: int = 3, *names: str) -> None:
    use_all_cores()
    speed_up(int(repetitions), names or tuple(GALLERY))
    cost(2 * int(repetitions) - 1)


def speed_up(repetitions, names) -> None:
    found = []
    for _ in range(repetitions):
        (wall1, one), (wall2, two) = with_workers(1, names), with_workers(2, names)
        found.append((wall1 / wall2, one[0] / two[0]))
        print(
            f"wall {wall1:.1f} s and {wall2:.1f} s: {found[-1][0]:.2f} times; processor {one[0]:.1f} s and "
            f"{two[0]:.1f} + {two[1]:.1f} s: {found[-1][1]:.2f} times; load average {psutil.getloadavg()[0]:.1f}", flush=True,
        )  # fmt: skip
    wall, processor = (statistics.median(column) for column in zip(*found, strict=True))
    print(f"two workers over one, medians: wall {wall:.2f}, processor {processor:.2f}", flush=True)


def cost(repetitions, cells=(("priority", 400_000), ("journal", 100_000))) -> None:
    for name, steps in cells:
        overhead(name, 1000, False)  # compile
        pairs = [(overhead(name, steps, True), overhead(name, steps, False)) for _ in range(repetitions)]
        ratios = [[a / b - 1 for a, b in zip(kept, bare, strict=True)] for kept, bare in pairs]
        wall, processor = (100 * statistics.median(column) for column in zip(*ratios, strict=True))
        print(
            f"{name}, {steps} steps, {statistics.median(bare[0] for _, bare in pairs):.0f} s: checkpoints, progress and files "
            f"cost {wall:+.1f}% of wall and {processor:+.1f}% of processor time", flush=True,
        )  # fmt: skip


if __name__ == "__main__":
    main(*sys.argv[1:])
