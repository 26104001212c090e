"""Arrivals per second on this machine's accelerator against what its memory allows: prepared, under two minutes.

    python experiments/benchmarks/gpu_speed.py [--replicas 65536 262144] [--seconds 100]

The floor moves the state once in and once out per arrival and policy at the bandwidth of a large copy measured here.
Runs on a CPU too, to try it: --replicas 64 --chunk 1. The last line is JSON.
"""

from __future__ import annotations

import argparse
import itertools
import json
import time

import jax
import jax.numpy as jnp

from lagjax.engine.devices import default_block
from lagjax.engine.run import simulate
from lagjax.gallery import gallery
from lagjax.policies.registry import build_policy

SIX = ("lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate")


def copy_bandwidth(size, repeats=5):
    """Bytes read and written per second by x + 1 over `size` bytes."""
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = add(jnp.zeros(size // 4, jnp.int32)).block_until_ready()
    best = float("inf")
    for _ in range(repeats):
        begin = time.perf_counter()
        x = add(x).block_until_ready()
        best = min(best, time.perf_counter() - begin)
    return 2 * x.nbytes / best


def speed(instance, policies, replicas, blocks, chunk):
    """Seconds of the first chunk, which compiles, seconds per arrival of the best later one, bytes of the states."""
    block = default_block(jax.devices()[0].platform)
    stamps = [time.perf_counter()]
    done = simulate(
        instance, policies, arrivals=blocks * block, replicas=replicas, chunk=chunk,
        progress=lambda _: stamps.append(time.perf_counter()),
    )  # fmt: skip
    spent = [b - a for a, b in itertools.pairwise(stamps)]
    size = sum(x.nbytes for x in done.state if x is not None)
    return spent[0], min(spent[1:]) / (chunk * block), size


def main(argv=None):
    parser = argparse.ArgumentParser(description="Arrivals per second on this machine's accelerator.")
    parser.add_argument("--instances", nargs="+", default=["priority", "low-rank", "journal"])
    parser.add_argument("--replicas", nargs="+", type=int, default=[65536, 262144])
    parser.add_argument("--chunks", type=int, default=8, help="the best but the first is reported")
    parser.add_argument("--chunk", type=int, default=8, help="blocks of arrivals per chunk")
    parser.add_argument("--seconds", type=float, default=100, help="begin no case after this many")
    args = parser.parse_args(argv)
    begin = time.perf_counter()
    device = jax.devices()[0]
    bandwidth = copy_bandwidth(1 << 30 if device.platform == "gpu" else 1 << 26)
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}, copy {bandwidth / 1e9:.0f} GB/s")
    columns = ("replicas", "million/s", "ns", "floor ns", "times", "us a step", "first s")
    print(" " * 22 + "".join(f"{c:>11s}" for c in columns))
    rows = []
    cases = [(r, n, p) for r in args.replicas for p in (("lag",), SIX) for n in args.instances]
    for replicas, name, names in cases:
        if time.perf_counter() - begin > args.seconds:
            print(f"out of time before {name}, {len(names)} policies, {replicas} replicas")
            continue
        instance = gallery(name)
        policies = [build_policy(p, instance) for p in names]
        first, step, size = speed(instance, policies, replicas, args.chunks * args.chunk, args.chunk)
        ns = step / replicas / len(names) * 1e9
        floor = 2 * size / bandwidth / replicas / len(names) * 1e9
        label = f"{name}, {'LAG' if len(names) == 1 else f'{len(names)} policies'}"
        shown = (f"{replicas}", f"{1e3 / ns:.1f}", f"{ns:.4f}", f"{floor:.4f}", f"{ns / floor:.1f}")
        shown += (f"{step * 1e6:.2f}", f"{first:.2f}")
        print(f"{label:22s}" + "".join(f"{x:>11s}" for x in shown), flush=True)
        rows.append(
            {"instance": name, "policies": len(names), "replicas": replicas, "ns": ns, "floor_ns": floor,
             "step_us": step * 1e6, "first_seconds": first}
        )  # fmt: skip
    print(json.dumps({"device": device.device_kind, "platform": device.platform, "jax": jax.__version__,
                      "copy_gb_per_s": bandwidth / 1e9, "rows": rows}))  # fmt: skip


if __name__ == "__main__":
    main()
