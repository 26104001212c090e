"""lagjax: online assignment of reusable, unequal resources, from a match matrix to policies against their upper bound.

The flat entry points below cover the common path: an instance, a bound, a policy, a sweep. No JAX work happens at import.
"""

from importlib.metadata import version as _version

from lagjax.durations import deterministic, from_pmf, from_sample, geometric
from lagjax.engine.run import simulate
from lagjax.errors import InputError
from lagjax.gallery import GALLERY, gallery
from lagjax.instance import Instance, make_instance
from lagjax.lp import occ_upper_bound, solve_kiid, solve_occ
from lagjax.measure import measure
from lagjax.plots import plot_load_sweep
from lagjax.policies import POLICIES, Policy, build_policy, from_priorities, make_policy
from lagjax.sweep import sweep

__version__ = _version("lagjax")

__all__ = [
    "GALLERY",
    "POLICIES",
    "InputError",
    "Instance",
    "Policy",
    "build_policy",
    "deterministic",
    "from_pmf",
    "from_priorities",
    "from_sample",
    "gallery",
    "geometric",
    "make_instance",
    "make_policy",
    "measure",
    "occ_upper_bound",
    "plot_load_sweep",
    "simulate",
    "solve_kiid",
    "solve_occ",
    "sweep",
]
