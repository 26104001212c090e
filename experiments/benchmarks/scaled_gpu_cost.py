"""Kernels and traffic of the scaled step on an H100, from the program XLA compiles for it: a model, never a measurement.

    python experiments/benchmarks/scaled_gpu_cost.py [--replicas 4096] [INSTANCE ...]

Every loop is listed by what one turn of it costs: the loops of rejection and inversion are innermost, then the loop over the
tasks of a step, then the steps. See h100_program.py for what it needs and how bytes are counted.
"""

from __future__ import annotations

import argparse

import h100_program  # first: it says which platforms JAX may use
import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.gallery import gallery
from lagjax.models import scaled
from lagjax.policies import build_policy


def loops(name, replicas, copies, dispatchers):
    """Returns the loops of the compiled chunk and the bytes of the state."""
    instance = gallery(name, 0.8)
    num_types, num_servers = instance.scores.shape
    host = scaled.scaled_tables(instance, build_policy("lag", instance), copies, dispatchers, dispatchers)
    with jax.enable_x64(True):
        tables = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), host)
    state = jax.eval_shape(lambda: scaled.empty(host, replicas))
    keys = scaled.Keys(*[jax.ShapeDtypeStruct((2, replicas), np.uint32)] * 3)
    per_type = jax.ShapeDtypeStruct((num_types, replicas), np.int32)
    counts = scaled.Counts(jax.ShapeDtypeStruct((num_types, num_servers, replicas), np.int32), per_type, per_type)

    def chunk(state, counts, tables, keys):
        def one(now, carry):
            return scaled.step(carry[0], carry[1], now, tables, keys)

        return lax.fori_loop(jnp.uint32(0), jnp.uint32(100), one, (state, counts))

    program = h100_program.compile_for_h100(chunk, state, counts, tables, keys)
    return h100_program.loops(program), sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state))


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
