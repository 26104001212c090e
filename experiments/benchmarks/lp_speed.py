"""OCC-LP by the interior method against HiGHS (dual simplex and interior point) through SciPy, in one run on one core.

    python experiments/benchmarks/lp_speed.py [--sizes 100x100,300x300] [--scores FILE --per-task 3] [--no-highs]

Processor time, objectives to 1e-9. HiGHS takes minutes at 300 x 300. With --scores, a real file (geometric(40), load 0.6) and
every selection of both programs.
"""

from __future__ import annotations

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import time

import numpy as np

import lagjax
from lagjax.data import instance_from_files, read_scores
from lagjax.lp import SELECTIONS, solve_kiid, solve_occ
from lagjax.lp.highs import solve_highs
from lagjax.lp.program import occ_program

SEED = 1


def random_instance(num_types, num_servers):
    """Uniform scores, k = 3, load 0.6."""
    rng = np.random.default_rng(SEED)
    service, mix = lagjax.geometric(max(40, num_servers)), rng.random(num_types) + 0.1
    return lagjax.make_instance(
        rng.random((num_types, num_servers)), service, servers_per_task=3, load=0.6, mix=mix, name="random"
    )


def timed(function, *arguments, **options):
    """(result, seconds of processor time)."""
    start = time.process_time()
    return function(*arguments, **options), time.process_time() - start


def compare(instance, highs):
    """Prints one line."""
    found, ours = timed(solve_occ, instance, method="interior")
    line = f"{instance.num_types} x {instance.num_servers}: {ours:.2f} s in {found.iterations} steps, gap {found.duality_gap:.0e}"
    program = occ_program(instance, 0.0)
    for method in ("highs-ds", "highs-ipm") if highs else ():
        (point, _), theirs = timed(solve_highs, program, method)
        value = float((program.rate[:, None] * program.scores * point[0]).sum() * program.scale)
        off = abs(value / found.objective - 1)
        line += f"; {method} {theirs:.1f} s ({theirs / ours:.0f} times ours, objectives {off:.0e} apart)"
    print(line, flush=True)


def main():
    """Runs the comparison."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", default="100x100,300x300")
    parser.add_argument("--scores")
    parser.add_argument("--per-task", type=int, default=3)
    parser.add_argument("--no-highs", action="store_true")
    options = parser.parse_args()
    solve_occ(lagjax.gallery("priority"))
    if options.scores:
        instance = instance_from_files(
            read_scores(options.scores), None, servers_per_task=options.per_task, load=0.6, service="geometric:40"
        )
        for solve in (solve_occ, solve_kiid):
            for (
                selection
            ) in SELECTIONS:  # "interior" is the point of "canonical", which is kept: change the load a little
                at = instance.with_load(0.6 + 1e-6 * SELECTIONS.index(selection))
                print(f"{solve.__name__} {selection}: {timed(solve, at, selection=selection)[1]:.2f} s", flush=True)
        compare(instance.with_load(0.59), not options.no_highs)
    for size in options.sizes.split(",") if options.sizes else ():
        compare(random_instance(*map(int, size.split("x"))), not options.no_highs)


if __name__ == "__main__":
    main()
