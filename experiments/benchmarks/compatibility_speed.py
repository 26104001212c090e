"""JSQ(2) on graphs against a compiled scalar simulator on one core, in one run; how the cost of an event grows with N.

    python experiments/benchmarks/compatibility_speed.py [--core 0] [--rounds 5] [--json FILE]

Everything is pinned to one core and timed in processor time; rounds alternate. Compilation is excluded. "effective" divides by
the design effect: 64 replicas share addresses, so their mean is worth fewer than 64 independent ones; it is measured here, as the
variance of bundle means times 64 over the variance within bundles, of the time average of tasks per server. Mean queue lengths
must agree within 5 standard errors, or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from pathlib import Path

LOAD = 0.9
BUNDLES = 4


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.core})
    import jax
    import numpy as np
    from numba_compatibility import Scalar

    from lagjax.compatibility import FAMILIES, bundle_means, fixed_point, jsq, simulate
    from lagjax.compatibility.draws import LANES
    from lagjax.compatibility.families import default_degree

    print(f"jax {jax.__version__}, load {LOAD}, {BUNDLES * LANES} replicas, ns per event in processor time")
    print(f"{'graph':10s}{'N':>7s}{'lagjax':>9s}{'Numba':>9s}{'ratio':>8s}{'design effect':>15s}{'effective':>11s}")
    page = []
    for family, servers in (
        ("complete", 1000),
        ("regular", 1000),
        ("complete", 100),
        ("complete", 10000),
        ("regular", 10000),
    ):
        graph = FAMILIES[family](servers, servers, default_degree(family, servers, servers), 0)
        span = max(10, 150_000 // servers)  # mean service times a round
        scalar = Scalar(graph, LOAD, 1)
        star = fixed_point(jsq(2), LOAD, 64)
        per_replica = round(servers * (1 + LOAD))

        def ours(seed, time, graph=graph, star=star):
            return simulate(graph, jsq(2), LOAD, time=time, replicas=BUNDLES * LANES, seed=seed, start=star)

        ours(0, span)
        scalar.run(50 * per_replica)
        spent, theirs, lengths, scalar_lengths = [], [], [], []
        for seed in range(1, args.rounds + 1):
            begin = time.process_time()
            windows = ours(seed, span)
            spent.append((time.process_time() - begin) / (span * per_replica * BUNDLES * LANES) * 1e9)
            lengths.append(sum(w.tasks for w in windows) / (span * servers))
            events = 20_000_000
            begin = time.process_time()
            levels = scalar.run(events)
            theirs.append((time.process_time() - begin) / events * 1e9)
            scalar_lengths.append(levels[1:].sum() / servers)
        lanes = np.concatenate(lengths).reshape(-1, LANES)
        effect = LANES * lanes.mean(axis=1).var(ddof=1) / lanes.var(axis=1, ddof=1).mean()
        error = np.hypot(
            lanes.mean(axis=1).std(ddof=1) / np.sqrt(len(lanes)), np.std(scalar_lengths, ddof=1) / np.sqrt(args.rounds)
        )
        gap = bundle_means(np.concatenate(lengths)).mean() - np.mean(scalar_lengths)
        assert abs(gap) < 5 * error + 1e-3, (gap, error)
        mine, other = statistics.median(spent), statistics.median(theirs)
        page.append({"graph": family, "servers": servers, "lagjax": mine, "numba": other, "design_effect": effect})
        print(
            f"{family:10s}{servers:7d}{mine:9.2f}{other:9.2f}{other / mine:8.1f}{effect:15.2f}{other / mine / effect:11.1f}",
            flush=True,
        )
    if args.json:
        args.json.write_text(json.dumps(page, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
