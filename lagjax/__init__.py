"""lagjax: online assignment of reusable, unequal resources, from a match matrix to policies against their upper bound.

The flat entry points below cover the common path: an instance, a bound, a policy, a sweep. Each is imported when it is first
used, so that `import lagjax` costs next to nothing. No JAX work happens at import.
"""

import sys
from types import ModuleType

TYPE_CHECKING = False
if TYPE_CHECKING:  # what type checkers and editors read; `_HOMES` says the same at run time
    from lagjax.durations import deterministic, from_pmf, from_sample, geometric
    from lagjax.engine.run import simulate
    from lagjax.errors import InputError
    from lagjax.gallery import GALLERY, gallery
    from lagjax.instance import Instance, make_instance
    from lagjax.lp import occ_upper_bound, solve_kiid, solve_occ
    from lagjax.plots import plot_load_sweep
    from lagjax.policies import POLICIES, Policy, build_policy, from_priorities, make_policy
    from lagjax.studies.dataset import load, save
    from lagjax.studies.load_sweep import sweep
    from lagjax.studies.measure import measure

    __version__: str

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
    "load",
    "make_instance",
    "make_policy",
    "measure",
    "occ_upper_bound",
    "plot_load_sweep",
    "save",
    "simulate",
    "solve_kiid",
    "solve_occ",
    "sweep",
]

_HOMES = {  # module -> the entry points that it defines
    "durations": ("deterministic", "from_pmf", "from_sample", "geometric"),
    "engine.run": ("simulate",),
    "errors": ("InputError",),
    "gallery": ("GALLERY", "gallery"),
    "instance": ("Instance", "make_instance"),
    "lp": ("occ_upper_bound", "solve_kiid", "solve_occ"),
    "plots": ("plot_load_sweep",),
    "policies": ("POLICIES", "Policy", "build_policy", "from_priorities", "make_policy"),
    "studies.dataset": ("load", "save"),
    "studies.load_sweep": ("sweep",),
    "studies.measure": ("measure",),
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
