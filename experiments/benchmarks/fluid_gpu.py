"""Steps of the fluid map per second on an accelerator against its memory's floor: prepared, not yet run on one.

    python experiments/benchmarks/fluid_gpu.py [--starts 1024 16384] [--steps 200] [--seconds 100]
    python experiments/benchmarks/fluid_gpu.py --lower     on any machine: the loop of steps lowers for CUDA

Journal, LAG, in float32 and float64: G on all starts at once, and `find_attractor`, whose blocks follow one another. The floor
moves the states once in and once out per step at the bandwidth of a large copy measured here. The last line is JSON.
"""

from __future__ import annotations

import argparse
import functools
import json
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.fluid import find_attractor, fluid_map, fluid_system, iterate, lp_fixed_point, make_starts
from lagjax.gallery import gallery
from lagjax.lp import solve_occ
from lagjax.policies import build_policy

TYPES = (np.float32, np.float64)


def journal():
    """The map, and its fixed point."""
    instance = gallery("journal", 0.7)
    step = jax.tree_util.Partial(fluid_map, fluid_system(instance, build_policy("lag", instance)))
    return step, lp_fixed_point(instance, solve_occ(instance))


def lower():
    """Proves that the loop lowers for CUDA in both precisions."""
    step, point = journal()
    for dtype in TYPES:
        with jax.enable_x64(dtype == np.float64):
            shape = jax.ShapeDtypeStruct((1024, *point.shape), dtype)
            loop = jax.jit(functools.partial(iterate, steps=100))
            exported = jax.export.export(loop, platforms=["cuda"])(step, shape)
        assert exported.platforms == ("cuda",) and "callback" not in exported.mlir_module()
        print(f"{np.dtype(dtype).name}: lowers for cuda, {len(exported.mlir_module_serialized)} bytes")


def best(run, repeats=3):
    """Seconds of the fastest run after one that compiles."""
    run()
    spent = []
    for _ in range(repeats):
        begin = time.perf_counter()
        run()
        spent.append(time.perf_counter() - begin)
    return min(spent)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--starts", nargs="+", type=int, default=[1024, 16384])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=100, help="begin no case after this many")
    parser.add_argument("--lower", action="store_true")
    args = parser.parse_args(argv)
    if args.lower:
        return lower()
    device, started = jax.devices()[0], time.perf_counter()
    if device.platform == "cpu":
        return "JAX finds no accelerator here: run this on one, or with --lower"
    from gpu_speed import copy_bandwidth

    bandwidth = copy_bandwidth(1 << 30)
    print(f"{device.device_kind} ({device.platform}), jax {jax.__version__}, copy {bandwidth / 1e9:.0f} GB/s")
    step, point = journal()
    rows = []
    for count, dtype in ((n, t) for n in args.starts for t in TYPES):
        if time.perf_counter() - started > args.seconds:
            print(f"out of time before {count} starts in {np.dtype(dtype).name}")
            continue
        with jax.enable_x64(dtype == np.float64):
            made = make_starts(count, point)
            state, target = jnp.asarray(made.state, dtype), point.astype(dtype)
            loop = jax.jit(functools.partial(iterate, steps=args.steps))
            together = best(lambda loop=loop, state=state: loop(step, state).block_until_ready())
            search = functools.partial(find_attractor, step, target, made, args.steps)
            searched = best(search, 1) if count == min(args.starts) else None
        floor = 2 * state.nbytes / bandwidth
        row = {"starts": count, "dtype": np.dtype(dtype).name, "step_us": together / args.steps * 1e6,
               "floor_us": floor * 1e6, "times_floor": together / args.steps / floor,
               "find_attractor_step_us": searched and searched / args.steps * 1e6}  # fmt: skip
        print(row, flush=True)
        rows.append(row)
    print(json.dumps({"device": device.device_kind, "copy_gb_per_s": bandwidth / 1e9, "rows": rows}))


if __name__ == "__main__":
    sys.exit(main())
