"""OCC-LP(B): the upper bound on the reward of every policy, and the prices from which LAG's index is made."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.memo import fingerprint
from lagjax.lp.program import occ_program
from lagjax.lp.progress import Progress, Step
from lagjax.lp.selection import MEMO, ZERO_TOLERANCE, Optimum, check_selection, highs_vertex, room, select
from lagjax.lp.watching import solving

METHODS = ("auto", "interior", "highs", "dual")
MOST_INTERIOR_WORK = 3e9  # V R min(V, R) up to which "auto" factorises: about two minutes on one core, 2 GiB
DUAL_GAP = 1e-4
_LOAD_SLACK = 1e-9


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class OccSolution:
    """An optimal primal and dual solution of OCC-LP(B) (Lag, eq. 2-4); all arrays are read-only.

    Attributes:
      objective: sum s_vr u_vr, reward per step: OPT(OCC-LP(B)), or by the dual method at most a relative gap below it.
      bound: the value of the prices, no less than OPT(OCC-LP(B)); equal to `objective` but for the dual method.
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
      duality_gap: |primal - dual value| relative to k (1 - B) sum(lambda) max s_vr, or by the dual method to the bound.
      zero_tolerance: an index smaller than this was taken as zero.
      method: what solved the program; one of `METHODS` but "auto".
      iterations: steps that the method took.
      ties_undecided: pairs whose index is not zero but within `zero_tolerance`.
      face_dimensions: of the sets of primal and of dual optima, of which `selection` names a point; (0, 0) where both are unique.
    """

    objective: float
    bound: float
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
    method: str
    iterations: int
    ties_undecided: int
    face_dimensions: tuple[int, int]

    def __repr__(self) -> str:
        types, servers = self.index.shape
        how = f"B = {self.blocking:g}, {self.selection}, by {self.method}"
        return f"OccSolution(objective {self.objective:.9g}: V = {types} task types, R = {servers} servers, {how})"


def largest_feasible_load(instance: Instance, blocking: float = 0.0) -> float:
    """The largest load rho at which OCC-LP(B) is feasible, 1 / (1 - B) - k / R.

    Summed over r, (3) gives sum phi = R - (1 - B) rho R and (4) with (2) gives k (1 - B) <= sum phi;
    conversely u_vr = k lambda_v (1 - B) / R is feasible then.
    """
    return 1 / (1 - blocking) - instance.servers_per_task / instance.num_servers


def solve_occ(
    instance: Instance,
    blocking: float = 0.0,
    selection: str = "canonical",
    *,
    method: str = "auto",
    gap: float = DUAL_GAP,
    progress: Progress | None = None,
    start: OccSolution | None = None,
) -> OccSolution:
    """Solves OCC-LP(B).

    Args:
      instance: the system.
      blocking: B in [0, 1), the stationary blocking probability; 0 gives the fluid limit of LAG's index.
      selection: which optimum; one of `lagjax.lp.selection.SELECTIONS`.
      method: "interior" reaches round-off in O(V R min(V, R)) operations an iteration and gives the selection asked for;
        "dual" approaches an optimum, in O(V R) operations an evaluation, to a certified `gap`, and selects none;
        "highs" is the sparse simplex method of HiGHS, slow, whose vertex is what it is; "auto" takes "interior" while
        V R min(V, R) is at most MOST_INTERIOR_WORK, else "dual".
      gap: relative duality gap at which "dual" stops.
      progress: called with a `lagjax.lp.progress.Step` again and again.
      start: the solution of a program nearby (another load or B, slightly other scores), to go on from. The optimum is the
        same to round-off, not to the bit.

    Returns:
      The solution; equal numbers are solved once.

    Raises:
      InputError: B is outside [0, 1), the load is above `largest_feasible_load`, or there is no such
        selection or method.
      SolverError: the solution missed the stated residuals.
    """
    check_selection(selection)
    if method not in METHODS:
        raise InputError(f"method is {method!r}; choose from {', '.join(METHODS)}")
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
    if not gap > 0:
        raise InputError(f"gap is {gap!r}; give a relative duality gap above 0, such as {DUAL_GAP:g}")
    if method == "auto":
        method = method_for(instance.num_types, instance.num_servers)
    if start is not None and start.index.shape != instance.scores.shape:
        raise InputError(f"start is of shape {start.index.shape}; the instance has {instance.scores.shape}")
    with solving(f"OCC-LP({blocking:.3g}) of '{instance.name}' at load {instance.load:.4g}", progress) as tell:
        if method == "dual":
            demand = program.demand
            del program  # a copy of the scores
            return _by_dual(instance, blocking, demand, gap, tell, start)
        if method == "interior":
            best = select(program, selection, tell, None if start is None else _in_units_of(program, start))
        else:
            best, selection = highs_vertex(program, tell), "vertex"
    scale = program.scale
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
    value = float(np.einsum("vr,vr->v", assigned, program.scores).sum() * scale)
    return OccSolution(
        value, value, *arrays, blocking, selection, "optimal", *best.residuals, ZERO_TOLERANCE * scale, method, best.iterations,
        best.ties_undecided, best.dimensions,
    )  # fmt: skip


def method_for(num_types: int, num_servers: int) -> str:
    """The method that "auto" takes for V types and R servers."""
    work = num_types * num_servers * min(num_types, num_servers)
    return "interior" if work <= MOST_INTERIOR_WORK else "dual"


def _in_units_of(program, start):
    """A solution's point in the units of a program."""
    prices = start.task_price / program.scale, start.server_price / program.scale
    return Optimum(start.tie_weight, start.free_fraction, *prices, start.index / program.scale, (0.0, 0.0, 0.0))


def _by_dual(instance, blocking, demand, gap, tell, start):
    from lagjax.lp.dual import solve_dual  # JAX

    scores, rate = instance.scores, np.asarray(instance.arrival_rate, dtype=np.float64)
    duration = np.asarray(instance.mean_duration, dtype=np.float64)
    prices = None if start is None else start.task_price
    key = fingerprint("dual", scores, rate, duration, demand, gap, prices)

    def solved():
        return solve_dual(
            scores, rate, duration, demand, gap=gap, start=prices,
            progress=lambda iteration, reached: tell(Step("dual", iteration, reached, gap)),
        )  # fmt: skip

    found = MEMO.get(key, solved, lambda solution: solution.share.nbytes)
    assigned = rate[:, None] * found.share
    index = scores - found.price[:, None]
    index -= duration[:, None] * found.server_price
    for array in (assigned, index, found.price):
        array.setflags(write=False)
    lacking = np.abs(found.share.sum(1) / demand - 1).max()
    busy = np.abs(found.free_fraction + duration @ assigned - 1).max()
    return OccSolution(
        found.objective, found.bound, assigned, found.free_fraction, found.price, found.server_price, index, found.share,
        blocking, "none", "optimal", float(max(lacking, busy)), 0.0, found.relative_gap, found.zero_tolerance, "dual",
        found.iterations, found.ties_undecided, (0, 0),
    )  # fmt: skip


def occ_bound(instance: Instance, blocking: float = 0.0) -> tuple[float, float]:
    """Returns OPT(OCC-LP(B)) in reward per step and d OPT / d B = -k sum_v lambda_v ell*_v.

    Where the program is so large that the dual method solves it, the value of its prices: a bound, at most a relative
    DUAL_GAP above.
    """
    solution = solve_occ(instance, blocking)
    slope = -instance.servers_per_task * float(np.asarray(instance.arrival_rate) @ solution.task_price)
    return solution.bound, slope


def occ_upper_bound(instance: Instance, blocking: float) -> float:
    """Returns OPT(OCC-LP(B)), an upper bound on the reward per step when a fraction B is blocked."""
    return solve_occ(instance, blocking).bound
