"""What a jitted function becomes on an H100, read from the compiled program, on a machine without one.

XLA compiles for a described device. Its scheduled program shows which kernels one iteration of a loop launches and
which arrays they read and write. Bytes are upper bounds: who takes one row of an array is charged with all of it.

Needs a jax with its CUDA plug-in, in an environment of its own:
    pip install 'jax==0.10.1' 'jax-cuda12-plugin==0.10.1' 'jax-cuda12-pjrt==0.10.1' nvidia-cuda-nvcc-cu12
"""

from __future__ import annotations

import math
import os
import re
from typing import NamedTuple

os.environ.setdefault("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
from jax.experimental import topologies
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

H100 = {
    "threads_per_block_limit": 1024, "threads_per_warp": 32, "shared_memory_per_block": 48 << 10,
    "shared_memory_per_core": 228 << 10, "threads_per_core_limit": 2048, "core_count": 132, "fpus_per_core": 128,
    "block_dim_limit_x": 2**31 - 1, "block_dim_limit_y": 65535, "block_dim_limit_z": 65535,
    "memory_bandwidth": 3_352_320_000_000, "l2_cache_size": 50 << 20, "clock_rate_ghz": 1.98,
    "device_memory_size": 84_978_434_048, "shared_memory_per_block_optin": 227 << 10,
    "registers_per_core_limit": 65536, "registers_per_block_limit": 65536,
}  # fmt: skip
_NOT_LAUNCHED = re.compile(r"parameter|constant|tuple|get-tuple-element|bitcast|while|after-all|call|conditional")
_INSTRUCTION = re.compile(r"(?:ROOT )?%(?P<name>\S+) = (?P<shape>\(.*?\)|\S+) (?P<op>[\w-]+)\((?P<operands>[^)]*)\)")
_ARRAY = re.compile(r"\b(pred|[a-z]+(\d+)[a-z0-9]*)\[([\d,]*)\]")


class Kernel(NamedTuple):
    """One launch of a loop's body and the bytes it reads and writes at most."""

    name: str
    bytes: int


class Loop(NamedTuple):
    """One `while` of the program: iterations (None: not known) and the kernels of one of them, inner loops apart."""

    body: str
    iterations: int | None
    kernels: list[Kernel]


def compile_for_h100(function, *args) -> str:
    """Returns the scheduled program of `function` compiled for one H100; args are arrays or shapes."""
    described = " ".join(f"{name}: {value}" for name, value in H100.items())
    target = (
        f"gpu_device_info {{ {described} cuda_compute_capability {{ major: 9 }} }} platform_name: 'CUDA' "
        "dnn_version_info { major: 9 minor: 8 } device_description_str: 'NVIDIA H100 80GB HBM3'"
    )
    device = topologies.get_topology_desc("h100", "cuda", target_config=target, topology="1x1x1").devices[0]
    mesh = Mesh([device], ("x",), axis_types=(AxisType.Auto,))
    whole = NamedSharding(mesh, PartitionSpec())
    return jax.jit(function, in_shardings=whole, out_shardings=whole).lower(*args).compile().as_text()


def loops(program: str) -> list[Loop]:
    """Lists the loops of a scheduled program in the order of their text."""
    bodies = {m[1]: m[2] for m in re.finditer(r"^(?:ENTRY )?%(\S+) \(.*\{\n((?:  .*\n)*)\}", program, re.MULTILINE)}
    found = []
    for line in program.splitlines():
        if body := re.search(r"\bbody=%?([\w.-]+)", line):
            count = re.search(r"known_trip_count\D+(\d+)", line)
            found.append(Loop(body[1], int(count[1]) if count else None, _kernels(bodies[body[1]])))
    return found


def _kernels(body):
    size, kernels = {}, []
    for m in _INSTRUCTION.finditer(body):
        size[m["name"]] = sum(_bytes(*a) for a in _ARRAY.findall(m["shape"]))
        if not _NOT_LAUNCHED.fullmatch(m["op"]):
            operands = re.findall(r"%([^\s,)]+)", m["operands"])
            kernels.append(Kernel(m["name"], size[m["name"]] + sum(size.get(o, 0) for o in operands)))
    return kernels


def _bytes(kind, bits, dims):
    return (1 if kind == "pred" else int(bits) // 8) * math.prod(int(d) for d in dims.split(",") if d)
