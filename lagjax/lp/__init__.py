"""The linear programs: OCC-LP(B), which bounds every policy and makes LAG's index, and KIID."""

from lagjax.errors import SolverError
from lagjax.lp.kiid import KiidSolution, solve_kiid
from lagjax.lp.occ import OccSolution, largest_feasible_load, occ_bound, occ_upper_bound, solve_occ
from lagjax.lp.selection import SELECTIONS, check_selection

__all__ = [
    "SELECTIONS", "KiidSolution", "OccSolution", "SolverError", "check_selection", "largest_feasible_load", "occ_bound",
    "occ_upper_bound", "solve_kiid", "solve_occ",
]  # fmt: skip
