"""The dual method on large systems: seconds, evaluations, peak memory, cost per pair against the memory's floor.

    python experiments/benchmarks/dual_speed.py [--sizes 1000 3000 10000] [--kinds uniform] [--loads 0.6] [--gap 1e-4] [--double]

Each system is solved in a process of its own, whose peak memory is its own. Times are processor seconds of all threads: on a
machine that others use, divide by the cores. The floor is one read of the scores in an evaluation at the bandwidth of a large
sum, measured in the same process. One JSON line a system.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import sys
import time

KINDS = ("uniform", "rank-one", "sparse", "grid", "copies")


def system(kind, size, load, tasks, dtype):
    """(scores, rate, duration, demand): equal rates, durations of 5 to 60 steps, `load` of the largest feasible."""
    import numpy as np

    rng = np.random.default_rng(1)
    scores = rng.random((size, size), dtype=dtype)
    if kind == "rank-one":
        scores *= dtype(0.1)
        scores += np.outer(rng.random(size, dtype=dtype), rng.random(size, dtype=dtype))
    elif kind == "sparse":
        scores = np.maximum(scores - dtype(0.9), 0)
        scores *= 10
    elif kind == "grid":
        scores = np.floor(scores * 5) / dtype(4)
    elif kind == "copies":
        scores = scores[:, rng.integers(0, max(1, size // 20), size)]
    duration = rng.uniform(5, 60, size)
    rate = np.full(size, load * (size / tasks - 1) / duration.sum())
    return scores, rate, duration, float(tasks)


def measure(kind, size, load, tasks, gap, double):
    """Solves one system and prints its line."""
    import numpy as np

    from lagjax.lp import dual, dual_descent, server_blocks

    given = system(kind, size, load, tasks, np.float64 if double else np.float32)
    started = time.process_time()
    reads = [0.0] * 3
    for i in range(3):
        begin = time.process_time()
        given[0].sum()
        reads[i] = time.process_time() - begin
    stages, evaluation = [], {"seconds": 0.0, "count": 0, "steps": 0.0}
    certify, smooth = dual._certify, server_blocks.ServerBlocks.smooth

    def certified(blocks, target, price, width):
        result = certify(blocks, target, price, width)
        stages.append((width, blocks.evaluations, float(f"{result.gap:.3g}"), round(time.process_time() - started, 1)))
        print(stages[-1], file=sys.stderr, flush=True)
        return result

    def timed(blocks, price, width, tolerance, dtype):
        begin, steps = time.process_time(), blocks.steps
        result = smooth(blocks, price, width, tolerance, dtype)
        if blocks.shape == given[0].shape and dtype == np.float32 and blocks.evaluations > 1:
            evaluation["seconds"] += time.process_time() - begin
            evaluation["count"] += 1
            evaluation["steps"] += blocks.steps - steps
        return result

    dual._certify, server_blocks.ServerBlocks.smooth = certified, timed
    begin, wall = time.process_time(), time.perf_counter()
    s = dual.solve_dual(*given, gap=gap)
    line = {
        "kind": kind, "size": size, "load": load, "k": tasks, "gap": s.relative_gap, "evaluations": s.iterations,
        "cpu_s": round(time.process_time() - begin, 1), "wall_s": round(time.perf_counter() - wall, 1),
        "peak_gib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "scores_gib": round(given[0].nbytes / 2**30, 3), "ties_undecided": s.ties_undecided, "stages": stages,
    }  # fmt: skip
    if evaluation["count"]:
        pairs = size * size
        line["ns_per_pair"] = round(evaluation["seconds"] / evaluation["count"] / pairs * 1e9, 2)
        line["newton_steps"] = round(evaluation["steps"] / evaluation["count"], 2)
        line["read_ns_per_pair"] = round(min(reads) / pairs * 1e9, 3)
    line["single_width"] = dual_descent._SINGLE_WIDTH
    print(json.dumps(line), flush=True)


def main():
    """Reads the command line and measures every combination."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1000, 3000, 10000])
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=["uniform"])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.6])
    parser.add_argument("--per-task", type=int, default=1)
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--double", action="store_true", help="scores in float64")
    args = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    for size in args.sizes:
        for kind in args.kinds:
            for load in args.loads:
                process = spawn.Process(target=measure, args=(kind, size, load, args.per_task, args.gap, args.double))
                process.start()
                process.join()


if __name__ == "__main__":
    main()
