"""Ground truth for small systems: exact stationary values, exact blocking, the optimum, the best fixed order, one
step of policy improvement, and bounds and prices by the number of running tasks."""

from lagjax.exact.blocking import exact_blocking, geometric_blocking
from lagjax.exact.levels import LevelBound, level_bound, level_policy
from lagjax.exact.many import KnownOptimum, known_optimum
from lagjax.exact.optimum import Improved, Optimum, improve, optimum
from lagjax.exact.orders import BestOrder, best_fixed_order
from lagjax.exact.stationary import ExactValue, evaluate

__all__ = [
    "BestOrder", "ExactValue", "Improved", "KnownOptimum", "LevelBound", "Optimum", "best_fixed_order", "evaluate",
    "exact_blocking", "geometric_blocking", "improve", "known_optimum", "level_bound", "level_policy", "optimum",
]  # fmt: skip
