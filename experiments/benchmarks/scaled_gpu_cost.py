"""Kernels and traffic of the scaled step on an H100, from the program XLA compiles for it: a model, never a measurement.

    python experiments/benchmarks/scaled_gpu_cost.py [--replicas 4096] [INSTANCE ...]

Every loop is listed by what one turn of it costs: the loops of rejection and inversion are innermost, then the loop over the
tasks of a step, then the steps. See h100_program.py for what it needs and how bytes are counted.
"""

from __future__ import annotations

import argparse
import functools

import h100_program  # first: it says which platforms JAX may use
import jax
import numpy as np

from lagjax.engine import program
from lagjax.engine.scaled_run import set_up
from lagjax.gallery import gallery
from lagjax.policies import build_policy


def loops(name, replicas, copies, dispatchers):
    """Returns the loops of the compiled chunk and the bytes of the state."""
    instance = gallery(name, 0.8)
    run = set_up(instance, build_policy("lag", instance), copies, dispatchers, np.arange(2))
    with jax.enable_x64(True):
        tables = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), run.tables)
    state, counts, keys = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((*x.shape[:-1], replicas), x.dtype), (run.state, run.counts, run.keys)
    )
    advance = functools.partial(program.blocks, run.model, 1)
    compiled = h100_program.compile_for_h100(advance, state, counts, np.uint32(0), np.uint32(100), tables, keys)
    return h100_program.loops(compiled), sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("instances", nargs="*", default=["priority", "low-rank"])
    parser.add_argument("--replicas", type=int, default=4096)
    args = parser.parse_args(argv)
    for name in args.instances:
        found, size = loops(name, args.replicas, 65536, 256)
        print(f"{name}: {args.replicas} replicas, state {size / 1e6:.1f} MB")
        for loop in found:
            print(
                f"    one turn: {len(loop.kernels):3d} kernels, {sum(k.bytes for k in loop.kernels) / 1e6:10.3f} MB at most"
            )


if __name__ == "__main__":
    main()
