"""Which optimum of a linear program is reported: the optimal set can be a whole face, primal and dual.

`canonical`: the analytic centre of the optimal face, primal and dual. Of all optimal (u, phi) it maximises
the sum of log(x) over the inequalities x >= 0 of the program as it is stated (u_vr >= 0, u_vr <= its bound,
phi_r >= 0, and for KIID the room in sum_r x_vr <= k lambda_v and in sum_v E[D_v] x_vr <= 1) that are not
equalities on the whole face; of all optimal prices it maximises the same sum over the inequalities of the
dual. Both are strictly concave programs, so the point is unique, does not depend on the solver nor on the
order of types, servers, rows or columns, gives identical servers identical values, and is strictly
complementary: an index is zero only where it is zero in every dual optimum, and then w_vr lies strictly
between its bounds. It is the limit of the central path, to which an interior-point method without crossover converges.

`interior`: the same point together with what the last iterates of that method still hold: entries that
vanish along the central path keep their limiting proportions (the limit of u / mu is 1 / reduced cost),
which ALG-SC-LP can draw from.

`vertex`: a corner of the same face, as a simplex method returns one: that at which fixed weights of w, and of the prices, are
largest (`lagjax.lp.corner`). It depends on the order of types and servers.

At the largest feasible load the OCC-LP has a single feasible point and an unbounded dual face; the dual is
then that of the limit of slightly lower demand, which is a fixed face, and its centre.

Every solution is polished: once it is known which inequalities bind, the point solves linear equations, so
zeros are exact and solver noise decides nothing. It is returned only with its residuals measured and small. All of it runs on
one BLAS thread, so that the bits do not depend on their number; another BLAS, or another kernel of the same one, may change
the last ones, by about 1e-14.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

import numpy as np

from lagjax.errors import InputError, SolverError
from lagjax.lp import interior
from lagjax.lp.blas import on_one_thread
from lagjax.lp.corner import corner, primal_dimension, settled
from lagjax.lp.face import Face, partition, primal_centre
from lagjax.lp.highs import solve_highs
from lagjax.lp.memo import Memo, fingerprint
from lagjax.lp.price_face import PriceFace, dual_centre
from lagjax.lp.program import Program
from lagjax.lp.watching import Progress, Step

SELECTIONS = ("canonical", "interior", "vertex")
ZERO_TOLERANCE = 1e-9  # a reduced value this small relative to max s_vr is zero; polished ones err by 1e-14
RESIDUAL_AIM = 1e-9  # relative residuals with which a solution is taken at once; usual ones are 1e-15
RESIDUAL_TOLERANCE = 1e-7  # largest accepted; needed when rates or scores differ by many orders of magnitude
BOUNDARY = 1e-9  # relative room in the demand: with less there is one point, and prices are those of a lower demand
_LIMIT_STEPS = (1e-3, 1e-4, 1e-5, 1e-6, 1e-7)  # relative decreases of the demand that are tried
_TRY_PARTITION = 1e-7  # complementarity from which partitions are tried
_TRY_AGAIN = 0.03  # decrease of the complementarity until the next trial
_CLEAR = 1e-6  # a face in which slack or multiplier of every inequality is at least this is taken at once
_KEPT_BYTES = 1 << 28


@dataclasses.dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal point in scaled units (prices in units of max s_vr).

    Attributes:
      w: (V, R) u_vr / lambda_v. idle: (R,). price: (V,). server_price: (R,).
      reduced: (V, R) s_vr - price_v - E[D_v] q_r, exactly 0 where it is zero.
      residuals: (primal, dual, gap), each relative.
      dimensions: of the faces of primal and of dual optima; (0, 0) where the optimum is unique.
      iterations: steps that the method took.
    """

    w: np.ndarray
    idle: np.ndarray
    price: np.ndarray
    server_price: np.ndarray
    reduced: np.ndarray
    residuals: tuple[float, float, float]
    dimensions: tuple[int, int] = (0, 0)
    iterations: int = 0

    @property
    def ties_undecided(self) -> int:
        """Pairs whose reduced value is not zero, but so small that it counts as zero."""
        size = np.abs(self.reduced)
        return int(((size > 0) & (size <= ZERO_TOLERANCE)).sum())

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The five arrays."""
        return self.w, self.idle, self.price, self.server_price, self.reduced


def check_selection(selection: str) -> str:
    """Returns the name of a selection.

    Raises:
      InputError: there is no such selection; the message lists them.
    """
    if selection not in SELECTIONS:
        raise InputError(f"selection is {selection!r}; choose from {', '.join(SELECTIONS)}")
    return selection


def room(program: Program) -> float:
    """Relative room in the demand: OCC-LP is feasible when k (1 - B) (1 + sum_v lambda_v E[D_v]) <= R."""
    return 1 - program.demand * (1 + program.occupancy.sum()) / program.scores.shape[1]


MEMO = Memo(_KEPT_BYTES)


def select(program: Program, selection: str, progress: Progress | None = None, start: Optimum | None = None) -> Optimum:
    """Solves a feasible program and returns the selected optimum; equal numbers are solved once.

    Args:
      program: the program.
      selection: one of SELECTIONS; "interior" is the point of "canonical".
      progress: told after every step.
      start: the canonical optimum of a program nearby: where its partition is optimal here too, no step is needed.

    Raises:
      SolverError: no point within RESIDUAL_TOLERANCE was found.
    """
    return _select(program, "vertex" if selection == "vertex" else "canonical", progress, start)


def highs_vertex(program: Program, progress: Progress | None = None) -> Optimum:
    """The basic solution where HiGHS's dual simplex stops, with its round-off removed.

    Raises:
      SolverError: HiGHS did not report an optimum, or its residuals are above RESIDUAL_TOLERANCE.
    """
    point, iterations = solve_highs(program, progress=progress)
    best = on_one_thread(settled)(program, point, ZERO_TOLERANCE)
    return _accepted(program, dataclasses.replace(certify(program, *best), iterations=iterations))


@on_one_thread
def _select(program: Program, selection: str, progress: Progress | None, start: Optimum | None) -> Optimum:
    key = fingerprint(*dataclasses.astuple(program), selection, None if start is None else start.reduced)

    def solved() -> Optimum:
        if program.coupled and room(program) < BOUNDARY:
            optimum = _at_boundary(program, selection, progress)
        elif selection == "vertex":
            optimum = _corner(program, select(program, "canonical", progress, start), progress)
        else:
            optimum = (None if start is None else _from_face(program, start)) or _centre(program, progress)
        for array in optimum.arrays:
            array.setflags(write=False)
        return optimum

    return MEMO.get(key, solved, lambda optimum: sum(array.nbytes for array in optimum.arrays))


def _centre(program: Program, progress: Progress | None = None) -> Optimum:
    left, attempt, found = np.inf, _TRY_PARTITION, []
    for iteration, (point, left, last) in enumerate(_with_last(interior.path(program)), 1):
        if progress is not None:
            progress(Step("interior", iteration, left, interior.USUAL))
        if left > attempt and not last:
            continue
        attempt = left * _TRY_AGAIN
        inside = point.w, point.idle, point.spare, point.type_price / program.rate, point.server_price
        optimum = _face_centre(program, partition(program, point), *inside)
        if optimum is None:
            continue
        found.append(dataclasses.replace(optimum, iterations=iteration))
        if _clearness(program, optimum) >= _CLEAR and max(optimum.residuals) <= RESIDUAL_AIM:
            return found[-1]
    if not found:
        raise SolverError(
            f"no optimal face of the {_name(program)} was certified (complementarity reached {left:.1e}); use method='highs'"
        )
    exact = [optimum for optimum in found if max(optimum.residuals) <= RESIDUAL_AIM]
    if exact:
        return max(exact, key=lambda optimum: _clearness(program, optimum))
    return _accepted(program, min(found, key=lambda optimum: max(optimum.residuals)))


def _with_last(steps: Iterable[tuple[interior.Point, float]]) -> Iterator[tuple[interior.Point, float, bool]]:
    """Every step with whether it is the last one."""
    before = None
    for step in steps:
        if before is not None:
            yield *before, False
        before = step
    if before is not None:
        yield *before, True


def _face_centre(
    program: Program, face: Face, w: np.ndarray, idle: np.ndarray, spare: np.ndarray, price: np.ndarray,
    server_price: np.ndarray,
) -> Optimum | None:  # fmt: skip
    """The centre of the optimal faces with this partition, measured; None where it is no optimal partition."""
    prices = PriceFace(program, face, price, server_price)
    dual = dual_centre(prices)
    primal = None if dual is None else primal_centre(program, face, w, idle, spare, prices.dependent)
    if dual is None or primal is None:
        return None
    optimum = certify(program, *_symmetric(program, primal, dual))
    return dataclasses.replace(optimum, dimensions=(primal_dimension(face, prices), prices.directions.shape[1]))


def _from_face(program: Program, start: Optimum) -> Optimum | None:
    """The centre of this program's optimal faces if their partition is that of `start`, else None."""
    spare = program.demand - start.w.sum(1)
    optimum = _face_centre(program, _face(program, start), start.w, start.idle, spare, start.price, start.server_price)
    good = optimum is not None and max(optimum.residuals) <= RESIDUAL_AIM and _clearness(program, optimum) >= _CLEAR
    return optimum if good else None


def _face(program: Program, centre: Optimum) -> Face:
    """The partition of a strictly complementary optimum."""
    free = centre.reduced == 0
    if program.coupled:
        idle, spare = np.ones_like(centre.idle, dtype=bool), np.zeros_like(centre.price, dtype=bool)
    else:
        idle, spare = centre.server_price == 0, centre.price == 0
    return Face(free, centre.reduced > 0, idle, spare)


def _clearness(program: Program, optimum: Optimum) -> float:
    """The smallest, over all inequalities, of the larger of slack and multiplier: 0 where a partition is in doubt."""
    face, up = _face(program, optimum), program.slack_up(optimum.w, optimum.idle)
    sizes = [np.where(face.free, np.minimum(optimum.w, up), np.abs(optimum.reduced)).min()]
    sizes += [optimum.idle[face.idle].min(initial=1)]
    if not program.coupled:
        unit = program.duration.mean()
        sizes += [
            (program.demand - optimum.w.sum(1))[face.spare].min(initial=1),
            optimum.price[~face.spare].min(initial=1),
            unit * optimum.server_price[~face.idle].min(initial=1),
        ]
    return min(map(float, sizes))


def _corner(program: Program, centre: Optimum, progress: Progress | None) -> Optimum:
    if centre.dimensions == (0, 0):
        return centre
    best = corner(program, _face(program, centre), centre.arrays[:4], progress)
    optimum = certify(program, *best)
    optimum = dataclasses.replace(optimum, dimensions=centre.dimensions, iterations=centre.iterations)
    return _accepted(program, optimum)


def _accepted(program: Program, optimum: Optimum) -> Optimum:
    if max(optimum.residuals) > RESIDUAL_TOLERANCE:
        shown = ", ".join(f"{x:.1e}" for x in optimum.residuals)
        raise SolverError(f"{_name(program)}: residuals {shown} are above {RESIDUAL_TOLERANCE:g}")
    return optimum


def _symmetric(
    program: Program, primal: tuple[np.ndarray, ...], dual: tuple[np.ndarray, ...]
) -> tuple[np.ndarray, ...]:
    """Gives servers with equal scores equal values to the bit, which the centre has up to round-off."""
    (w, idle), (price, server_price, reduced) = primal, dual
    _, group, count = np.unique(program.scores, axis=1, return_inverse=True, return_counts=True)
    if len(count) == program.scores.shape[1]:
        return w, idle, price, server_price, reduced
    group = group.ravel()
    first = np.unique(group, return_index=True)[1][group]

    share = (group[:, None] == np.arange(len(count))) / count

    def mean(x: np.ndarray) -> np.ndarray:
        return (x @ share)[..., group]

    zero = reduced[:, first] == 0
    return mean(w), mean(idle), price, mean(server_price), np.where(zero, 0.0, mean(reduced))


def _at_boundary(program: Program, selection: str, progress: Progress | None) -> Optimum:
    """The only feasible point, with the prices of slightly lower demands, where no index is below zero."""
    even, num_servers = 1 / (1 + program.occupancy.sum()), program.scores.shape[1]
    for step in _LIMIT_STEPS:
        near = dataclasses.replace(program, demand=even * num_servers * (1 - step))
        prices = _centre(near, progress)
        if selection == "vertex":
            prices = _corner(near, prices, progress)
        if prices.reduced.min() >= 0:
            break
    w, idle = np.full(program.scores.shape, even), np.full(num_servers, even)
    optimum = certify(program, w, idle, prices.price, prices.server_price, prices.reduced)
    return _accepted(program, dataclasses.replace(optimum, dimensions=prices.dimensions, iterations=prices.iterations))


def certify(
    program: Program, w: np.ndarray, idle: np.ndarray, price: np.ndarray, server_price: np.ndarray, reduced: np.ndarray
) -> Optimum:
    """Measures how far a point is from primal and dual feasibility and its duality gap, all relative."""
    up = program.slack_up(w, idle)
    excess = w.sum(1) - program.demand
    primal = (
        (np.abs(excess) if program.coupled else excess).max() / program.demand,
        np.abs(idle + (program.occupancy[:, None] * w).sum(0) - 1).max(),
        -min(w.min(), up.min(), idle.min()),
    )
    gain = (program.rate[:, None] * np.maximum(reduced, 0)).sum(0)
    unit = program.duration.mean()
    dual = [np.abs(reduced - program.reduced(price, server_price)).max()]
    dual_value = program.demand * (program.rate @ price) + server_price.sum()
    if program.coupled:
        dual += [np.abs(server_price - gain).max() * unit]
    else:
        dual += [-price.min(), -server_price.min() * unit]
        dual_value += gain.sum()
    value = (program.rate[:, None] * program.scores * w).sum()
    gap = abs(dual_value - value) / (program.rate.sum() * program.demand)
    residuals = max(0.0, *map(float, primal)), max(0.0, *map(float, dual)), float(gap)
    return Optimum(w, idle, price, server_price, reduced, residuals)


def _name(program: Program) -> str:
    return "OCC-LP" if program.coupled else "KIID LP"
