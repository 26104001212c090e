"""Every test runs on two host devices with strict dtype promotion: both are set before JAX starts a backend."""

import sys
from pathlib import Path

import jax
import pytest

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "oracles"))  # for the tests of every folder

# Tests of what is printed and written: they compile many programs and run each for moments, and what they look at is the same
# however well a program was optimised. All others run the programs that users run.
BRIEF = ("cli", "report", "test_readme.py")


@pytest.fixture(scope="module", autouse=True)
def optimisation(request):
    """Nearly none for the brief tests, which halves what compiling costs."""
    jax.config.update("jax_disable_most_optimizations", request.path.relative_to(HERE).parts[0] in BRIEF)


@pytest.fixture(scope="session")
def small_sweep():
    """Two instances at loads of their own, three policies: a Dataset with missing cells."""
    from lagjax.gallery import priority, specialist
    from lagjax.sweep import sweep

    loads = {"priority": [0.8, 0.3], "specialist": [0.5, 0.8]}
    return sweep(
        [specialist(), priority()], loads=lambda instance: loads[instance.name],
        policies=["whittle", "lag", "greedy"], steps=3000, replicas=48, seed=1,
    )  # fmt: skip
