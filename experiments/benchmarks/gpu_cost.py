"""Kernels and traffic of one arrival on an H100, from the program XLA compiles for it: a model, never a measurement.

    python experiments/benchmarks/gpu_cost.py [--replicas 65536] [--policies lag] [--details] [INSTANCE ...]

The innermost loop is one arrival; see h100_program.py for what it needs and how bytes are counted.
"""

from __future__ import annotations

import argparse
import functools

import h100_program  # first: it says which platforms JAX may use
import jax
import numpy as np

from lagjax.engine import program
from lagjax.engine.devices import default_block
from lagjax.engine.run import set_up
from lagjax.gallery import GALLERY, gallery
from lagjax.policies.registry import build_policy


def cost(instance, policies, replicas, block):
    """Returns the loops of the compiled program, innermost first, and the size of one state in elements and bytes."""
    run, _ = set_up(instance, [build_policy(name, instance) for name in policies], 1000, 0, 2)
    state, counts, keys = jax.tree.map(
        lambda x: jax.ShapeDtypeStruct((*x.shape[:-1], replicas), x.dtype), (run.state, run.counts, run.keys)
    )
    advance = functools.partial(program.blocks, run.model, block)
    compiled = h100_program.compile_for_h100(advance, state, counts, np.uint32(0), np.uint32(4), run.tables, keys)
    leaves = jax.tree.leaves(state)
    return h100_program.loops(compiled), sum(x.size for x in leaves), sum(x.size * x.dtype.itemsize for x in leaves)


def main(argv=None):
    parser = argparse.ArgumentParser(description="Kernels and traffic of one arrival on an H100.")
    parser.add_argument("instances", nargs="*", default=list(GALLERY))
    parser.add_argument("--policies", nargs="+", default=["lag"])
    parser.add_argument("--replicas", type=int, default=65536)
    parser.add_argument("--block", type=int, default=default_block("gpu"))
    parser.add_argument("--details", action="store_true", help="every kernel of every loop")
    args = parser.parse_args(argv)
    print(
        f"{args.replicas} replicas, {' + '.join(args.policies)}; MB at most per arrival, and as multiples of the state"
    )
    columns = ("kernels", "MB", "state MB", "times", "in int32", "times", "int32 twice")
    print(" " * 12 + "".join(f"{c:>12s}" for c in columns))
    for name in args.instances:
        found, elements, size = cost(gallery(name), args.policies, args.replicas, args.block)
        inner = next(loop for loop in found if loop.iterations == program.PIECE)
        moved = sum(kernel.bytes for kernel in inner.kernels)
        mb = [moved / 1e6, size / 1e6, moved / size, 4 * elements / 1e6, moved / elements / 4, moved / elements / 8]
        print(f"{name:12s}{len(inner.kernels):12d}" + "".join(f"{x:12.2f}" for x in mb))
        if args.details:
            for loop in found:
                print(f"  {loop.body}: {loop.iterations or '?'} iterations, {len(loop.kernels)} kernels")
                for kernel in loop.kernels:
                    print(f"    {kernel.name:45s}{kernel.bytes / 1e6:9.3f} MB")


if __name__ == "__main__":
    main()
