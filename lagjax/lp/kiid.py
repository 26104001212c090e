"""The KIID linear program, the fluid bound of online matching, and ALG-SC-LP's weights."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.instance import Instance
from lagjax.lp.program import kiid_program
from lagjax.lp.progress import Progress
from lagjax.lp.selection import check_selection, select
from lagjax.lp.watching import solving


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class KiidSolution:
    """An optimal solution of the KIID LP (Lag, section 5.1); all arrays are read-only.

    Maximise sum s_vr x_vr over sum_r x_vr <= k lambda_v, sum_v E[D_v] x_vr <= 1, 0 <= x_vr <= lambda_v.

    Attributes:
      objective: OPT(KIID), reward per step; no policy exceeds it, and OPT(OCC-LP(B)) does not either.
      assignment_rate: (V, R) x*_vr, assignments per step.
      task_price: (V,) alpha_v >= 0, multiplier of sum_r x_vr <= k lambda_v, reward per server and task.
      server_price: (R,) beta_r >= 0, multiplier of sum_v E[D_v] x_vr <= 1, reward per step.
      reduced: (V, R) s_vr - alpha_v - E[D_v] beta_r, exactly 0 where it is zero.
      vanishing_weight: (V, R) for selection "interior", the proportions in which the entries with x* = 0
        vanish along the central path (-1 / reduced there, 0 elsewhere); all 0 for the other selections.
      selection: which optimum this is; see `lagjax.lp.selection`.
      status: "optimal"; anything else is raised.
      primal_residual: largest violation of the constraints, in units of x / lambda_v.
      dual_residual: largest violation of the dual constraints, relative to max s_vr.
      duality_gap: |primal - dual value| relative to k sum(lambda) max s_vr.
    """

    objective: float
    assignment_rate: np.ndarray
    task_price: np.ndarray
    server_price: np.ndarray
    reduced: np.ndarray
    vanishing_weight: np.ndarray
    selection: str
    status: str
    primal_residual: float
    dual_residual: float
    duality_gap: float

    def __repr__(self) -> str:
        types, servers = self.reduced.shape
        sizes = f"V = {types} task types, R = {servers} servers"
        return f"KiidSolution(objective {self.objective:.9g}: {sizes}, {self.selection})"


def solve_kiid(instance: Instance, selection: str = "canonical", *, progress: Progress | None = None) -> KiidSolution:
    """Solves the KIID LP.

    Args:
      instance: the system.
      selection: which optimum; one of `lagjax.lp.selection.SELECTIONS`.
      progress: called with a `lagjax.lp.progress.Step` again and again.

    Raises:
      InputError: there is no such selection.
      SolverError: the solution missed the stated residuals.
    """
    program = kiid_program(instance)
    check_selection(selection)
    with solving(f"KIID LP of '{instance.name}' at load {instance.load:.4g}", progress) as tell:
        best = select(program, selection, tell)
    assigned = program.rate[:, None] * best.w
    vanishing = np.zeros_like(assigned)
    if selection == "interior":
        gone = best.reduced < 0
        vanishing[gone] = -1 / best.reduced[gone]
    scale = program.scale
    arrays = (assigned, best.price * scale, best.server_price * scale, best.reduced * scale, vanishing)
    for array in arrays:
        array.setflags(write=False)
    value = float((assigned * program.scores).sum() * scale)
    return KiidSolution(value, *arrays, selection, "optimal", *best.residuals)
