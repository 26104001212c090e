"""Every test runs on two host devices and with strict dtype promotion; both must be set before JAX starts a backend."""

import sys
from pathlib import Path

import jax

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")

sys.path.insert(0, str(Path(__file__).parent / "oracles"))  # busy_chain and event_simulator, for every folder of tests
