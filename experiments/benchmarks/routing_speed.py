"""lagjax.loss_routing against compiled scalar simulators on one core, in one run: ns per routed arrival, processor time.

    python experiments/benchmarks/routing_speed.py [--core 0] [--queues 10] [--traffic 0.95] [--json FILE]

One frozen system of K queues with 1 to 3 servers, up to 5 waiting places and rates from 0.5 to 2. The restless-bandit index
is run by all; rounds alternate, so that a slower minute of the machine hits all of them. Compilation is reported apart and
excluded; tables and transfers are not. Fractions lost must agree (false alarm 1e-4), or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path


def options(argv):
    parser = argparse.ArgumentParser(description="Routing against compiled scalar simulators on one core.")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--queues", type=int, default=10)
    parser.add_argument("--traffic", type=float, default=0.95)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--replicas", type=int, default=1024)
    parser.add_argument("--arrivals", type=int, default=10_000, help="of lagjax, per replica")
    parser.add_argument("--scalar-arrivals", type=int, default=3_000_000, help="of the scalar simulators")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def frozen_system(queues, traffic):
    """The system of the benchmark."""
    import numpy as np

    from lagjax.loss_routing import make_system

    rng = np.random.default_rng(0)
    servers = rng.integers(1, 4, queues)
    room = servers + rng.integers(0, 6, queues)
    rate = rng.uniform(0.5, 2.0, queues).round(4)
    system = make_system(servers, room, rate, 1.0)
    return system.with_arrival_rate(traffic * system.capacity)


def main(argv=None):
    args = options(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.core})  # before JAX counts its threads
    sys.path.insert(0, str(Path(__file__).parent))
    import numba_route
    import numpy as np

    from lagjax.loss_routing import POLICIES, build_routing, simulate_routing
    from lagjax.loss_routing.policies import FULL

    system = frozen_system(args.queues, args.traffic)
    (rb,) = build_routing(["rb"], system)
    every = build_routing(list(POLICIES), system)
    # Numba's tables want different ranks within a queue too; ties of one queue with itself never matter.
    has_room = rb.rank < FULL
    strict = np.where(has_room, 0, FULL)
    strict[has_room] = np.argsort(np.argsort(rb.rank[has_room], kind="stable"))

    def batched(policies):
        warmup = args.arrivals // 5  # counted as work, not in the fraction lost

        def run(seed):
            done = simulate_routing(
                system, policies, arrivals=args.arrivals, warmup=warmup, replicas=args.replicas, seed=seed
            )
            events = int(done.events.sum()) * args.replicas
            jobs = events * system.arrival_rate / system.event_rate
            return jobs * (1 + warmup / args.arrivals), done.lost[:, 0].sum() / events

        return run

    def scalar(method):
        def run(seed):
            arrived, lost = numba_route.simulate(system, strict, args.scalar_arrivals, seed, method=method)
            return arrived, lost / arrived

        return run

    methods = [m for m in numba_route.METHODS if m != "mask" or has_room.sum() <= 64]
    runs = {
        "lagjax rb": batched([rb]),
        "lagjax all seven": batched(every),
        **{f"numba {m}": scalar(m) for m in methods},
    }
    result = {}
    for label, run in runs.items():
        begin = time.process_time()
        run(0)
        result[label] = {"first_s": time.process_time() - begin, "ns": [], "lost": []}
    for seed in range(1, args.rounds + 1):
        for label, run in runs.items():
            begin = time.process_time()
            arrived, lost = run(seed)
            result[label]["ns"].append((time.process_time() - begin) / arrived * 1e9)
            result[label]["lost"].append(float(lost))
    check(result)
    base = float(np.median(result["lagjax rb"]["ns"]))
    places, per = int(has_room.sum()), system.event_rate / system.arrival_rate
    print(f"K = {args.queues}, traffic {args.traffic}, {places} places with room, {per:.2f} events per arrival; one core, "
          f"processor time, {args.rounds} rounds")  # fmt: skip
    print(f"{'':20s}{'median ns':>11s}{'min':>8s}{'million/s':>11s}{'ratio':>8s}{'first s':>9s}{'lost':>11s}")
    for label, entry in result.items():
        entry["median"] = float(np.median(entry["ns"]))
        entry["ratio"] = entry["median"] / base
        print(f"{label:20s}{entry['median']:11.2f}{min(entry['ns']):8.2f}{1e3 / entry['median']:11.1f}{entry['ratio']:8.2f}"
              f"{entry['first_s']:9.2f}{np.mean(entry['lost']):11.3e}")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"options": vars(args) | {"json": None}, "result": result}, indent=1))


def check(result):
    """All estimate one fraction: the means over the rounds agree within Student's limit at 1e-4 in all."""
    import numpy as np
    from scipy.stats import t as student_t

    ours = np.array(result["lagjax rb"]["lost"])
    for label, entry in result.items():
        theirs = np.array(entry["lost"])
        error = np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(len(ours))
        if label.startswith("numba") and abs(ours.mean() - theirs.mean()) > student_t.isf(2e-5, len(ours) - 1) * error:
            raise SystemExit(f"fractions lost differ: lagjax {ours.mean():.3e}, {label} {theirs.mean():.3e}")


if __name__ == "__main__":
    main()
