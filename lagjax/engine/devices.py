"""Where replicas live: spread over local devices, bitwise the same on any number of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from lagjax.engine.fork import jax_starts


class Placement(NamedTuple):
    """A mesh of devices over which the last axis (replicas) of arrays is split."""

    mesh: Mesh

    @property
    def platform(self) -> str:
        """ "cpu", "gpu" or another JAX platform name."""
        return self.mesh.devices.flat[0].platform

    def by_replica(self, tree):
        """Places arrays split along their last axis.

        On the CPU from the host's view of them: to cut an array of a device, XLA compiles a program for every shape.
        """

        def put(x):
            x = np.asarray(x) if self.platform == "cpu" else x
            return jax.device_put(x, NamedSharding(self.mesh, PartitionSpec(*[None] * (np.ndim(x) - 1), "replica")))

        return jax.tree.map(put, tree)

    def everywhere(self, tree):
        """Places arrays whole on every device."""
        return jax.device_put(tree, NamedSharding(self.mesh, PartitionSpec()))


def place_replicas(replicas: int, devices: Sequence[jax.Device] | None = None) -> Placement:
    """Uses the given (by default all local) devices, as many of them as divide the number of replicas.

    Raises:
      RunError: this process was forked from one in which JAX had started; see `lagjax.engine.fork`.
    """
    jax_starts()
    devices = list(jax.local_devices() if devices is None else devices)
    count = max(n for n in range(1, len(devices) + 1) if replicas % n == 0)
    return Placement(Mesh(np.array(devices[:count]), ("replica",), axis_types=(AxisType.Auto,)))


def compiler_options(platform: str) -> dict:
    """On CPUs with 512-bit vectors XLA uses half of them unless told; 15 to 30% faster here, harmless elsewhere."""
    return {"xla_cpu_prefer_vector_width": 512} if platform == "cpu" else {}


def default_block(platform: str) -> int:
    """Arrivals drawn and tallied together: on the CPU a longer block amortises the counts, on GPUs it is traffic."""
    return 128 if platform == "cpu" else 32


def device_name() -> str:
    """What the local devices are called, for results to name."""
    return str(jax.local_devices()[0].device_kind)
