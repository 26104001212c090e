"""LAG from the dual method's prices beside LAG from the exact ones: bounds and rewards on the gallery and on files of scores.

    python experiments/benchmarks/dual_policies.py [--loads 0.5 0.8] [--gap 1e-4] [SCORES ...]

Rewards are of the same arrivals: a difference is paired, in points of OCC-UB, with the half-width of its 95% interval. Files are
read whole, with a geometric law of mean 80 steps and three servers a task.
"""

from __future__ import annotations

import argparse

import numpy as np

from lagjax import data
from lagjax.engine.run import simulate
from lagjax.gallery import GALLERY, gallery
from lagjax.lp import solve_occ
from lagjax.policies import build_policy
from lagjax.stats import estimate
from lagjax.studies.measure import arrivals_and_warmup

REPLICAS = 256


def systems(names, files, loads):
    """The instances at their loads."""
    for name in names:
        for load in loads:
            yield gallery(name, load)
    for path in files:
        table = data.read_scores(path, missing=0.0, conflicts="zero", normalise=True)
        for load in loads:
            yield data.instance_from_files(table, service="geometric:80", servers_per_task=3, load=load)


def main(argv=None):
    parser = argparse.ArgumentParser(description="LAG from the dual method's prices beside LAG from the exact ones.")
    parser.add_argument("files", nargs="*")
    parser.add_argument("--loads", nargs="+", type=float, default=[0.5, 0.8])
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--no-gallery", action="store_true")
    args = parser.parse_args(argv)
    print(f"{'system':28s} {'load':>5s} {'bound less exact':>17s} {'LAG less exact, points':>24s} {'undecided':>10s}")
    for instance in systems([] if args.no_gallery else GALLERY, args.files, args.loads):
        exact, dual = solve_occ(instance), solve_occ(instance, method="dual", gap=args.gap)
        policies = [build_policy("lag", instance, solution=s) for s in (dual, exact)]
        arrivals, warmup = arrivals_and_warmup(instance, None)
        counts = simulate(instance, policies, arrivals=arrivals, warmup=warmup, replicas=REPLICAS)
        reward = np.einsum("vr,pvrb->pb", instance.scores, counts.served) * instance.total_rate / arrivals
        lead = estimate(100 * (reward[0] - reward[1]) / exact.objective)
        print(
            f"{instance.name:28.28s} {instance.load:5.2f} {dual.bound / exact.objective - 1:17.1e} "
            f"{lead.mean:+15.3f} ±{lead.ci95:.3f} {dual.ties_undecided:10,d}",
            flush=True,
        )


if __name__ == "__main__":
    main()
