"""The engine against two compiled scalar simulators on one core, in one run: ns per arrival in processor time.

    python experiments/benchmarks/loss_speed.py [--core 0] [--instances all] [--six] [--json FILE]

Strict orders (LAG) are run by all three: the engine, the tuned simulator of numba_loss.py (every method) and the plain
one of numba_plain.py. Rounds of the competitors alternate, so that a slower minute of the machine hits all of them.
Compilation is reported apart and excluded. Rewards per arrival must agree (false alarm 6e-5), or the run fails.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

LOAD = 0.7
SIX = ("lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate")


def options(argv):
    parser = argparse.ArgumentParser(description="The engine against compiled scalar simulators on one core.")
    parser.add_argument("--core", type=int, default=0)
    parser.add_argument("--instances", nargs="+", default=["priority", "low-rank", "journal"], help="or: all")
    parser.add_argument("--policies", nargs="*", default=[], help="also time these alone, without a competitor")
    parser.add_argument("--six", action="store_true", help="also time all six policies together")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--replicas", type=int, default=1024)
    parser.add_argument("--arrivals", type=int, default=32768, help="of the engine, per replica")
    parser.add_argument("--scalar-arrivals", type=int, default=2_000_000, help="of the scalar simulators")
    parser.add_argument("--json", type=Path)
    return parser.parse_args(argv)


def main(argv=None):
    args = options(argv)
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {args.core})  # before JAX counts its threads
    sys.path.insert(0, str(Path(__file__).parent))
    from lagjax.gallery import GALLERY

    names = list(GALLERY) if args.instances == ["all"] else args.instances
    table = {name: measure(name, args) for name in names}
    show(table, args)
    if args.json:
        args.json.write_text(
            json.dumps({"load": LOAD, "options": vars(args) | {"json": None}, "table": table}, indent=1)
        )


def measure(name, args):
    import numba_loss
    import numba_plain
    import numpy as np

    from lagjax.gallery import gallery
    from lagjax.policies.registry import build_policy
    from lagjax.policies.table import strict_order

    instance = gallery(name, LOAD)
    lag = build_policy("lag", instance)
    rank = strict_order(lag)
    order = np.argsort(rank, axis=1)
    many, few = args.scalar_arrivals, max(args.scalar_arrivals // 10, 1000)

    runs = {"engine": engine(instance, [lag], args)}
    for name in args.policies:
        runs[f"engine {name}"] = engine(instance, [build_policy(name, instance)], args)
    if args.six:
        runs["engine six"] = engine(instance, [build_policy(p, instance) for p in SIX], args)
    for method in numba_loss.METHODS:
        runs[f"numba {method}"] = (
            many + few, lambda seed, m=method: numba_loss.simulate(instance, rank, None, many, few, seed, method=m)[0]
        )  # fmt: skip
    runs["numba plain"] = many + few, lambda seed: numba_plain.simulate(instance, order, many, few, seed)[0]

    result = {}
    for label, (_, run) in runs.items():
        begin = time.process_time()
        run(0)
        result[label] = {"first_s": time.process_time() - begin, "ns": [], "reward": []}
    for seed in range(1, args.rounds + 1):
        for label, (arrivals, run) in runs.items():
            begin = time.process_time()
            counts = run(seed)
            spent = time.process_time() - begin
            counted = many if label.startswith("numba") else args.arrivals * args.replicas
            value = (counts * instance.scores).sum() / counted
            result[label]["ns"].append(spent / arrivals * 1e9)
            result[label]["reward"].append(float(value))
    check(result)
    tuned = [f"numba {m}" for m in numba_loss.METHODS]
    best = min(tuned, key=lambda m: np.median(result[m]["ns"]))
    for entry in result.values():
        entry["median"], entry["min"] = float(np.median(entry["ns"])), min(entry["ns"])
        entry["per_second"] = 1e9 / entry["median"]
    for label in ("numba scan", "numba plain", best):
        result[label]["ratio"] = result[label]["median"] / result["engine"]["median"]
    result["best_tuned"] = best
    result["parts_ns"] = parts(instance, lag, args)
    return result


def parts(instance, policy, args, blocks=32):
    """ns per arrival of the engine's parts, draws and steps compiled alone (the least of the rounds)."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    from lagjax.engine import program
    from lagjax.engine.devices import compiler_options, default_block
    from lagjax.engine.run import set_up
    from lagjax.models import loss

    block = default_block("cpu")
    run, _ = set_up(instance, [policy], 2**30, 0, args.replicas, block=block)
    tables, carry = jax.device_put((run.tables, (run.state, run.counts)))

    def draw(tables, index):
        return loss.draw(tables, run.keys, index * np.uint32(block) + jnp.arange(block, dtype=jnp.uint32))

    def draws(tables):
        return lax.fori_loop(1, blocks + 1, lambda i, _: draw(tables, i.astype(jnp.uint32)), draw(tables, np.uint32(0)))

    def steps(state, arrival, tables):
        def one_block(last, _):
            return lax.scan(lambda s, a: loss.step(s, a, tables), last[0], arrival), None

        first = lax.scan(lambda s, a: loss.step(s, a, tables), state, arrival)
        return lax.scan(one_block, first, None, length=blocks - 1)[0]

    def whole(carry, tables):
        return program.blocks(run.model, block, *carry, np.uint32(0), np.uint32(blocks), tables, run.keys)

    def clock(function, *given):
        compiled = jax.jit(function, compiler_options=compiler_options("cpu"))
        out = jax.block_until_ready(compiled(*given))
        spent = []
        for _ in range(args.rounds):
            begin = time.process_time()
            jax.block_until_ready(compiled(*given))
            spent.append(time.process_time() - begin)
        return min(spent) / (blocks * block * args.replicas) * 1e9, out

    ns = {}
    ns["draws"], arrival = clock(draws, tables)
    ns["steps"], _ = clock(steps, carry[0], arrival, tables)
    total, _ = clock(whole, carry, tables)
    ns["tally and the rest"] = total - ns["draws"] - ns["steps"]
    ns["whole loop"] = total
    return ns


def engine(instance, policies, args):
    """Arrivals per call and the call: the whole of `simulate`, tables and transfers included."""
    from lagjax.engine.run import simulate

    def run(seed):
        done = simulate(instance, policies, arrivals=args.arrivals, replicas=args.replicas, warmup=warmup, seed=seed)
        return done.served[0].sum(axis=-1)

    warmup = args.arrivals // 10
    return (args.arrivals + warmup) * args.replicas, run


def check(result):
    """All simulators estimate one number: their means over the rounds agree within 4 standard errors ."""
    import numpy as np
    from scipy.stats import t as student_t

    def mean_and_error(label):
        x = np.array(result[label]["reward"])
        return x.mean(), x.std(ddof=1) / np.sqrt(x.size) if x.size > 2 else np.inf

    ours, our_error = mean_and_error("engine")
    for label in result:
        if label.startswith("numba"):
            theirs, their_error = mean_and_error(label)
            limit = student_t.isf(3e-5, len(result["engine"]["reward"]) - 1) * np.hypot(our_error, their_error)
            if abs(ours - theirs) > limit:
                raise SystemExit(
                    f"rewards per arrival differ: engine {ours:.6f}, {label} {theirs:.6f} +- {their_error:.6f}"
                )


def show(table, args):
    print(f"one core, processor time, load {LOAD}, {args.rounds} rounds; first: the call that compiles")
    print(f"{'':34s}{'median':>9s}{'min':>8s}{'million':>10s}{'ratio to':>10s}{'first':>8s}{'reward per':>12s}")
    print(f"{'':34s}{'ns':>9s}{'ns':>8s}{'per s':>10s}{'engine':>10s}{'s':>8s}{'arrival':>12s}")
    for name, result in table.items():
        base = result["engine"]["median"]
        for label, entry in result.items():
            if label in ("best_tuned", "parts_ns"):
                continue
            mark = " *" if label == result["best_tuned"] else ""
            reward = sum(entry["reward"]) / len(entry["reward"])
            numbers = f"{entry['median']:9.2f}{entry['min']:8.2f}{entry['per_second'] / 1e6:10.1f}"
            numbers += f"{entry['median'] / base:10.2f}{entry['first_s']:8.2f}{reward:12.5f}"
            print(f"{name + ', ' + label + mark:34s}{numbers}")
        print(
            f"{name + ', parts of the engine':34s}" + ", ".join(f"{k} {v:.2f}" for k, v in result["parts_ns"].items())
        )
    print("* the fastest tuned method")


if __name__ == "__main__":
    main()
