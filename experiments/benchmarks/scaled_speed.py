"""The scaled system's speed: hypergeometric draws against NumPy's, and tasks per second against the memory's floor.

    python experiments/benchmarks/scaled_speed.py [--replicas 128] [--one-core]

With --one-core everything is pinned to one core and timed in processor time, NumPy and lagjax in turns: quote the ratio. On an
accelerator raise --replicas (4096 and more). The floor moves the counts of free copies in and out once per task, and the row of
copies that a task sends off, at the bandwidth of a large copy measured here. The last line is JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time

COPIES, DISPATCHERS = 65536, 256
EVENTS = 16  # draws of every entry in one call, as in a simulation: the call itself must not count


def draws(replicas, servers, rounds, clock):
    """Median ns per draw at m = 256, n = 65,536 of (lagjax, NumPy's vectorised Generator.hypergeometric), in turns."""
    import jax
    import jax.numpy as jnp
    import numpy as np
    from jax import lax

    from lagjax.engine.devices import compiler_options
    from lagjax.models import streams
    from lagjax.models.hypergeometric import TRIES, hypergeometric

    total = COPIES * DISPATCHERS
    rng = np.random.default_rng(0)
    good = rng.integers(total // 20, total - total // 20, (servers, replicas)).astype(np.int32)
    keys = streams.replica_keys(0, streams.PARTITION, np.arange(replicas))
    slots = jnp.arange(servers, dtype=jnp.uint32)[:, None] * TRIES
    options = compiler_options(jax.devices()[0].platform) or None

    def draw(first, good):
        def one(event, sums):
            whole, sample = jnp.full_like(good, total), jnp.full_like(good, COPIES)
            return sums + hypergeometric(keys, event, slots, good, whole, sample)

        return lax.fori_loop(first, first + jnp.uint32(EVENTS), one, jnp.zeros_like(good))

    compiled, placed = jax.jit(draw, compiler_options=options), jnp.asarray(good)
    compiled(jnp.uint32(0), placed).block_until_ready()
    ours, theirs = [], []
    every = np.broadcast_to(good, (EVENTS, *good.shape))
    for event in range(1, rounds + 1):
        begin = clock()
        compiled(jnp.uint32(event * EVENTS), placed).block_until_ready()
        ours.append((clock() - begin) / every.size * 1e9)
        begin = clock()
        rng.hypergeometric(every, total - every, COPIES)
        theirs.append((clock() - begin) / every.size * 1e9)
    return statistics.median(ours), statistics.median(theirs)


def tasks(name, replicas, steps, clock):
    """ns per task of LAG at m = 256, n = 65,536, compilation excluded, and bytes per task at least."""
    from lagjax.engine.scaled_run import simulate_scaled
    from lagjax.fluid import lp_fixed_point
    from lagjax.gallery import gallery
    from lagjax.lp import solve_occ
    from lagjax.policies import build_policy

    instance = gallery(name, 0.8)
    policy, start = build_policy("lag", instance), lp_fixed_point(instance, solve_occ(instance))

    def run():
        return simulate_scaled(
            instance, policy, copies=COPIES, dispatchers=DISPATCHERS, steps=steps, replicas=replicas, start=start
        )

    run()
    begin = clock()
    windows = run()
    spent = clock() - begin
    count = sum(int(window.arrived.sum()) for window in windows)
    return spent / count * 1e9, 4 * 4 * instance.num_servers  # free and unseen copies, in and out


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--replicas", type=int, default=128)
    parser.add_argument("--steps", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--one-core", action="store_true")
    args = parser.parse_args(argv)
    if args.one_core:
        os.sched_setaffinity(0, [max(os.sched_getaffinity(0))])
    clock = time.process_time if args.one_core else time.perf_counter
    import jax
    from gpu_speed import copy_bandwidth

    device = jax.devices()[0]
    bandwidth = copy_bandwidth(1 << 30 if device.platform == "gpu" else 1 << 26)
    print(f"{device.device_kind}, jax {jax.__version__}, copy {bandwidth / 1e9:.0f} GB/s, {args.replicas} replicas")
    page = {"device": device.device_kind, "replicas": args.replicas, "draw": {}, "task": {}}
    for servers in (8, 30):
        ours, theirs = draws(args.replicas, servers, args.rounds, clock)
        page["draw"][servers] = {"lagjax": ours, "numpy": theirs}
        print(
            f"draw, {servers:2d} servers: {ours:7.1f} ns, NumPy {theirs:6.1f} ns, {theirs / ours:.1f} times as fast, "
            f"{1e3 / ours:.1f} million/s"
        )
    for name in ("priority", "specialist", "unfriendly", "low-rank", "journal"):
        each, least = tasks(name, args.replicas, args.steps, clock)
        floor = least / bandwidth * 1e9
        page["task"][name] = {"ns": each, "floor_ns": floor}
        print(f"task, {name:10s}: {each:8.1f} ns, memory floor {floor:.2f} ns", flush=True)
    print(json.dumps(page))


if __name__ == "__main__":
    sys.exit(main())
