"""lagjax: online assignment of reusable, unequal resources, from a match matrix to policies against their upper bound.

The flat entry points below cover the common path: an instance, a bound, a policy, and every study. Each is imported when it is
first used, so that `import lagjax` costs next to nothing. No JAX work happens at import.
"""

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:  # what type checkers and editors read; `_HOMES` says the same at run time
    from lagjax.durations import deterministic, from_pmf, from_sample, geometric
    from lagjax.engine.compiled import keep_compiled
    from lagjax.engine.run import simulate
    from lagjax.errors import InputError
    from lagjax.fluid.verify import verify
    from lagjax.gallery import GALLERY, gallery
    from lagjax.instance import Instance, make_instance
    from lagjax.lp import occ_upper_bound, solve_kiid, solve_occ
    from lagjax.plots import plot_load_sweep
    from lagjax.policies import POLICIES, Policy, build_policy, from_priorities, make_policy
    from lagjax.prices import load_policy, read_solution, save_solution
    from lagjax.runs.running import Running
    from lagjax.studies.compatibility import compat
    from lagjax.studies.convergence import converge, sizes_of
    from lagjax.studies.dataset import load, save
    from lagjax.studies.dispatching import dispatch
    from lagjax.studies.exact_values import exact
    from lagjax.studies.load_sweep import sweep
    from lagjax.studies.measure import measure
    from lagjax.studies.report import report
    from lagjax.studies.routing import route
    from lagjax.tune.tuned import tune

    __version__: str

__all__ = [
    "GALLERY",
    "POLICIES",
    "InputError",
    "Instance",
    "Policy",
    "Running",
    "build_policy",
    "compat",
    "converge",
    "deterministic",
    "dispatch",
    "exact",
    "from_pmf",
    "from_priorities",
    "from_sample",
    "gallery",
    "geometric",
    "keep_compiled",
    "load",
    "load_policy",
    "make_instance",
    "make_policy",
    "measure",
    "occ_upper_bound",
    "plot_load_sweep",
    "read_solution",
    "report",
    "route",
    "save",
    "save_solution",
    "simulate",
    "sizes_of",
    "solve_kiid",
    "solve_occ",
    "sweep",
    "tune",
    "verify",
]

_HOMES = {  # module -> the entry points that it defines
    "durations": ("deterministic", "from_pmf", "from_sample", "geometric"),
    "engine.compiled": ("keep_compiled",),
    "engine.run": ("simulate",),
    "errors": ("InputError",),
    "fluid.verify": ("verify",),
    "gallery": ("GALLERY", "gallery"),
    "instance": ("Instance", "make_instance"),
    "lp": ("occ_upper_bound", "solve_kiid", "solve_occ"),
    "plots": ("plot_load_sweep",),
    "policies": ("POLICIES", "Policy", "build_policy", "from_priorities", "make_policy"),
    "prices": ("load_policy", "read_solution", "save_solution"),
    "runs.running": ("Running",),
    "studies.compatibility": ("compat",),
    "studies.convergence": ("converge", "sizes_of"),
    "studies.dataset": ("load", "save"),
    "studies.dispatching": ("dispatch",),
    "studies.exact_values": ("exact",),
    "studies.load_sweep": ("sweep",),
    "studies.measure": ("measure",),
    "studies.report": ("report",),
    "studies.routing": ("route",),
    "tune.tuned": ("tune",),
}
_HOME = {name: f"lagjax.{module}" for module, names in _HOMES.items() for name in names}


class _Package(ModuleType):
    """A package whose entry points win over modules of the same name: `lagjax.gallery` is the function."""

    def __getattr__(self, name):
        if name == "__version__":
            from importlib.metadata import version

            value = version("lagjax")
        elif name in _HOME:
            from importlib import import_module

            value = getattr(import_module(_HOME[name]), name)
        else:
            raise AttributeError(f"module 'lagjax' has no attribute '{name}'")
        self.__dict__[name] = value
        return value

    def __setattr__(self, name, value):
        if name in _HOME and isinstance(value, ModuleType):
            return  # the import system binds every module that it has loaded
        super().__setattr__(name, value)

    def __dir__(self):
        return sorted({*self.__dict__, *__all__, "__version__"})


sys.modules[__name__].__class__ = _Package
