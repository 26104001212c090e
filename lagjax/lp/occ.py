"""OCC-LP(B): the upper bound on the reward of every policy, and the prices from which LAG's index is made."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.program import occ_program
from lagjax.lp.selection import ZERO_TOLERANCE, check_selection, room, select
from lagjax.lp.watching import solving

METHODS = ("auto", "interior", "highs", "dual")
_LOAD_SLACK = 1e-9


@dataclasses.dataclass(frozen=True, eq=False)
class OccSolution:
    """An optimal primal and dual solution of OCC-LP(B) (Lag, eq. 2-4); all arrays are read-only.

    Attributes:
      objective: OPT(OCC-LP(B)) = sum s_vr u_vr, reward per step.
      assignment_rate: (V, R) u*_vr >= 0, assignments per step.
      free_fraction: (R,) phi*_r in [0, 1], fraction of the time that server r is free.
      task_price: (V,) ell*_v, multiplier of (2), reward per server and task; any sign.
      server_price: (R,) q*_r >= 0, multiplier of (3), reward per step.
      index: (V, R) L(v, r) = s_vr - ell*_v - E[D_v] q*_r, exactly 0 where it is zero.
      tie_weight: (V, R) w_vr = u*_vr / lambda_v; rows sum to k (1 - B).
      blocking: B.
      selection: which optimum this is; see `lagjax.lp.selection`.
      status: "optimal"; anything else is raised.
      primal_residual: largest violation of (2)-(4) and signs, in units of w (servers).
      dual_residual: largest violation of the dual equations, relative to max s_vr.
      duality_gap: |primal - dual value| relative to k (1 - B) sum(lambda) max s_vr.
      zero_tolerance: an index smaller than this was taken as zero; `ZERO_TOLERANCE` times max s_vr.
      method: what solved the program; one of `METHODS` but "auto".
      iterations: steps that the method took.
      ties_undecided: pairs whose index may be zero or not at the accuracy that was reached.
    """

    objective: float
    assignment_rate: np.ndarray
    free_fraction: np.ndarray
    task_price: np.ndarray
    server_price: np.ndarray
    index: np.ndarray
    tie_weight: np.ndarray
    blocking: float
    selection: str
    status: str
    primal_residual: float
    dual_residual: float
    duality_gap: float
    zero_tolerance: float
    method: str = "interior"
    iterations: int = 0
    ties_undecided: int = 0


def largest_feasible_load(instance: Instance, blocking: float = 0.0) -> float:
    """The largest load rho at which OCC-LP(B) is feasible, 1 / (1 - B) - k / R.

    Summed over r, (3) gives sum phi = R - (1 - B) rho R and (4) with (2) gives k (1 - B) <= sum phi;
    conversely u_vr = k lambda_v (1 - B) / R is feasible then.
    """
    return 1 / (1 - blocking) - instance.servers_per_task / instance.num_servers


def solve_occ(instance: Instance, blocking: float = 0.0, selection: str = "canonical") -> OccSolution:
    """Solves OCC-LP(B).

    Args:
      instance: the system.
      blocking: B in [0, 1), the stationary blocking probability; 0 gives the fluid limit of LAG's index.
      selection: which optimum; one of `lagjax.lp.selection.SELECTIONS`.

    Returns:
      The solution; equal numbers are solved once.

    Raises:
      InputError: B is outside [0, 1), the load is above `largest_feasible_load`, or there is no such
        selection.
      SolverError: the solution missed the stated residuals.
    """
    check_selection(selection)
    blocking = float(blocking)
    if not (math.isfinite(blocking) and 0 <= blocking < 1):
        raise InputError(f"blocking is {blocking!r}; give a probability in [0, 1)")
    program = occ_program(instance, blocking)
    if room(program) < -_LOAD_SLACK:
        largest = largest_feasible_load(instance, blocking)
        raise InputError(
            f"load {instance.load:.6g} of instance '{instance.name}' is too large for OCC-LP({blocking:g}); "
            f"the largest feasible load is {largest:.6g}"
        )
    with solving(f"OCC-LP({blocking:.3g}) of '{instance.name}' at load {instance.load:.4g}"):
        best, scale = select(program, selection), program.scale
    assigned = program.rate[:, None] * best.w
    arrays = (
        assigned,
        best.idle,
        best.price * scale,
        best.server_price * scale,
        best.reduced * scale,
        best.w,
    )
    for array in arrays:
        array.setflags(write=False)
    value = float((assigned * program.scores).sum() * scale)
    return OccSolution(value, *arrays, blocking, selection, "optimal", *best.residuals, ZERO_TOLERANCE * scale)


def occ_bound(instance: Instance, blocking: float = 0.0) -> tuple[float, float]:
    """Returns OPT(OCC-LP(B)) in reward per step and d OPT / d B = -k sum_v lambda_v ell*_v."""
    solution = solve_occ(instance, blocking)
    slope = -instance.servers_per_task * float(np.asarray(instance.arrival_rate) @ solution.task_price)
    return solution.objective, slope


def occ_upper_bound(instance: Instance, blocking: float) -> float:
    """Returns OPT(OCC-LP(B)), an upper bound on the reward per step when a fraction B is blocked."""
    return solve_occ(instance, blocking).objective
