"""lagjax.partial_information against compiled scalar simulators on one core, in one run: ns per slot, processor time.

    python experiments/benchmarks/partial_speed.py [--core 0] [--model blocking] [--rounds 7] [--json FILE]

The published rates, N = 10 and K = 6. Rounds alternate, so that a slower minute of the machine hits all of them. Compilation is
reported apart and excluded, and so are the scalar simulators' tables; ours, transfers and the discounting on the host are
not. The rewards of every policy must agree (false alarm 1e-4), or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

RATES = {"finite": [0.05] * 4 + [0.1] * 4 + [0.5] * 2, "blocking": [0.05] * 5 + [0.1] * 4 + [0.5]}


def options(argv):
    parser = argparse.ArgumentParser(description="Dispatching against compiled scalar simulators on one core.")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--model", choices=list(RATES), default="blocking")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--replicas", type=int, default=1024)
    parser.add_argument("--slots", type=int, default=2000, help="of lagjax, per replica")
    parser.add_argument("--scalar-slots", type=int, default=1_000_000, help="of the scalar simulators")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def main(argv=None):
    args = options(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.core})  # before JAX counts its threads
    sys.path.insert(0, str(Path(__file__).parent))
    import numba_partial
    import numpy as np

    from lagjax.partial_information import POLICIES, build_policies, make_system, simulate_dispatching

    system = make_system(RATES[args.model], 6, model=args.model)
    every = build_policies(POLICIES[:5], system)  # whittle, myopic, round-robin, random, jsq

    def batched(policies):
        def run(seed):
            done = simulate_dispatching(system, policies, horizons=(args.slots,), replicas=args.replicas, seed=seed)
            return args.slots * args.replicas, done.total[-1].mean(axis=1) / args.slots

        return run

    def scalar(simulate):
        def run(seed):
            # As many slots a run as ours have, so that the start weighs the same.
            runs = max(1, args.scalar_slots // args.slots)
            taken = [np.ravel(simulate(args.slots, seed * 10**6 + i)) for i in range(runs)]
            return runs * args.slots, np.mean(taken, axis=0) / args.slots

        return run

    runs = {
        "lagjax whittle": batched(every[:1]),
        "numba slots whittle": scalar(numba_partial.compiled(system, every[:1])),
        "numba plain whittle": scalar(numba_partial.compiled(system, every[:1], plain=True)),
        "numba lazy whittle": scalar(numba_partial.compiled_lazily(system, every[0])),
        "lagjax all five": batched(every),
        "numba plain all five": scalar(numba_partial.compiled(system, every, plain=True)),
        "numba slots all five": scalar(numba_partial.compiled(system, every)),
    }
    result = {}
    for label, run in runs.items():
        begin = time.process_time()
        run(0)
        result[label] = {"first_s": time.process_time() - begin, "ns": [], "reward": []}
    for seed in range(1, args.rounds + 1):
        for label, run in runs.items():
            begin = time.process_time()
            slots, reward = run(seed)
            result[label]["ns"].append((time.process_time() - begin) / slots * 1e9)
            result[label]["reward"].append(reward.tolist())
    check(result)
    print(f"{args.model}, N = 10, K = 6, {args.replicas} replicas; one core, processor time, {args.rounds} rounds")
    print(f"{'':22s}{'median ns':>11s}{'min':>8s}{'million/s':>11s}{'ratio':>8s}{'first s':>9s}{'reward':>10s}")
    for label, entry in result.items():
        entry["median"] = float(np.median(entry["ns"]))
        base = result["lagjax all five" if label.endswith("five") else "lagjax whittle"]["ns"]
        entry["ratio"] = float(np.median(np.array(entry["ns"]) / np.array(base)))
        print(f"{label:22s}{entry['median']:11.2f}{min(entry['ns']):8.2f}{1e3 / entry['median']:11.1f}{entry['ratio']:8.2f}"
              f"{entry['first_s']:9.2f}{np.mean(entry['reward'], axis=0)[0]:10.5f}")  # fmt: skip
    if args.json:
        args.json.write_text(json.dumps({"options": vars(args) | {"json": None}, "result": result}, indent=1))


def check(result):
    """A policy's reward is one number: means over the rounds agree within Student's limit at 1e-4 in all."""
    import numpy as np
    from scipy.stats import t as student_t

    pairs = [
        (
            label,
            p,
            np.array(result[label]["reward"])[:, p],
            np.array(result[f"lagjax {label.split(' ', 2)[2]}"]["reward"])[:, p],
        )
        for label in result
        if label.startswith("numba")
        for p in range(len(result[label]["reward"][0]))
    ]
    for label, p, theirs, ours in pairs:
        error = np.hypot(ours.std(ddof=1), theirs.std(ddof=1)) / np.sqrt(len(ours))
        if abs(ours.mean() - theirs.mean()) > student_t.isf(1e-4 / len(pairs) / 2, len(ours) - 1) * error:
            raise SystemExit(f"policy {p + 1}: rewards differ: lagjax {ours.mean():.5f}, {label} {theirs.mean():.5f}")


if __name__ == "__main__":
    main()
