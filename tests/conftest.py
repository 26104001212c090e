"""Every test runs on two host devices with strict dtype promotion: both are set before JAX starts a backend."""

import os
import sys
from pathlib import Path

import jax
import pytest

os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"  # processes that tests start leave nothing in the user's folder
jax.config.update("jax_enable_compilation_cache", False)
jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")

sys.path.insert(0, str(Path(__file__).parent / "oracles"))  # for the tests of every folder


@pytest.fixture(scope="session")
def small_sweep():
    """Two instances at loads of their own, three policies: a Dataset with missing cells."""
    from lagjax.gallery import priority, specialist
    from lagjax.studies.load_sweep import sweep

    loads = {"priority": [0.8, 0.3], "specialist": [0.5, 0.8]}
    return sweep(
        [specialist(), priority()], loads=lambda instance: loads[instance.name],
        policies=["whittle", "lag", "greedy"], steps=3000, replicas=48, seed=1,
    )  # fmt: skip
