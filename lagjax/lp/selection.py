"""Which optimum of a linear program is reported: the optimal set can be a whole face, primal and dual.

`canonical`: the analytic centre of the optimal face, primal and dual. Of all optimal (u, phi) it maximises
the sum of log(x) over the inequalities x >= 0 of the program as it is stated (u_vr >= 0, u_vr <= its bound,
phi_r >= 0, and for KIID the room in sum_r x_vr <= k lambda_v and in sum_v E[D_v] x_vr <= 1) that are not
equalities on the whole face; of all optimal prices it maximises the same sum over the inequalities of the
dual. Both are strictly concave programs, so the point is unique, does not depend on the solver nor on the
order of types, servers, rows or columns, gives identical servers identical values, and is strictly
complementary: an index is zero only where it is zero in every dual optimum, and then w_vr lies strictly
between its bounds. It is the limit of the central path, to which an interior-point method without crossover
converges.

`interior`: the same point together with what the last iterates of that method still hold: entries that
vanish along the central path keep their limiting proportions (the limit of u / mu is 1 / reduced cost),
which ALG-SC-LP can draw from.

`vertex`: the basic solution where HiGHS's dual simplex stops; it depends on the order of types and servers.

At the largest feasible load the OCC-LP has a single feasible point and an unbounded dual face; the dual is
then that of the limit of slightly lower demand, which is a fixed face, and its centre.

Every solution is polished: once it is known which inequalities bind, the point solves linear equations, so
zeros are exact and solver noise decides nothing. It is returned only with its residuals measured and small.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np

from lagjax.errors import InputError, SolverError
from lagjax.lp import interior
from lagjax.lp.centre import Face, dual_centre, partition, primal_centre
from lagjax.lp.program import Program
from lagjax.lp.vertex import HighsError, polish, solve_highs

SELECTIONS = ("canonical", "interior", "vertex")
ZERO_TOLERANCE = 1e-9  # a reduced value this small relative to max s_vr is zero; polished ones err by 1e-14
RESIDUAL_AIM = 1e-9  # relative residuals with which a solution is taken at once; usual ones are 1e-15
RESIDUAL_TOLERANCE = 1e-7  # largest accepted; needed when rates or scores differ by many orders of magnitude
BOUNDARY = 1e-4  # relative room in the demand below which the face is taken from a slightly lower demand
_LIMIT_STEPS = (1e-3, 2e-4)  # relative decreases of the demand that are tried
_TRY_PARTITION = 1e-7  # complementarity from which partitions are tried
_TRY_AGAIN = 0.03  # decrease of the complementarity until the next trial
_CUTOFFS = (1e-11, 1e-14)
_REMEMBERED = 512


@dataclasses.dataclass(frozen=True, eq=False)
class Optimum:
    """An optimal point in scaled units (prices in units of max s_vr).

    Attributes:
      w: (V, R) u_vr / lambda_v. idle: (R,). price: (V,). server_price: (R,).
      reduced: (V, R) s_vr - price_v - E[D_v] q_r, exactly 0 where it is zero.
      residuals: (primal, dual, gap), each relative.
    """

    w: np.ndarray
    idle: np.ndarray
    price: np.ndarray
    server_price: np.ndarray
    reduced: np.ndarray
    residuals: tuple[float, float, float]


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


def select(program: Program, selection: str) -> Optimum:
    """Solves a feasible program and returns the selected optimum; equal numbers are solved once.

    Raises:
      SolverError: no point within RESIDUAL_TOLERANCE was found.
    """
    return _solve(program.key(), "vertex" if selection == "vertex" else "canonical")


@functools.lru_cache(maxsize=_REMEMBERED)
def _solve(key, selection):
    program = Program.from_key(key)
    if program.coupled and room(program) < BOUNDARY:
        optimum = _near_boundary(program, selection)
    else:
        optimum = _vertex(program) if selection == "vertex" else _centre(program)
    for array in (optimum.w, optimum.idle, optimum.price, optimum.server_price, optimum.reduced):
        array.setflags(write=False)
    return optimum


def _centre(program):
    left, best, attempt = np.inf, None, _TRY_PARTITION
    for point, left in interior.path(program):
        if left > attempt:
            continue
        attempt = left * _TRY_AGAIN
        face = partition(program, point)
        dual = dual_centre(program, face, point.type_price / program.rate, point.server_price)
        if dual is None:
            continue
        for cutoff in _CUTOFFS:
            primal = primal_centre(program, face, point.w, point.idle, point.spare, cutoff)
            if primal is None:
                continue
            optimum = certify(program, *_symmetric(program, primal, dual))
            if best is None or max(optimum.residuals) < max(best.residuals):
                best = optimum
            if max(optimum.residuals) <= RESIDUAL_AIM:
                return optimum
    if best is not None and max(best.residuals) <= RESIDUAL_TOLERANCE:
        return best
    raise SolverError(
        f"no optimal face of the {_name(program)} was certified (complementarity reached {left:.1e}); "
        "use selection='vertex'"
    )


def _symmetric(program, primal, dual):
    """Gives servers with equal scores equal values to the bit, which the centre has up to round-off."""
    (w, idle), (price, server_price, reduced) = primal, dual
    _, group, count = np.unique(program.scores, axis=1, return_inverse=True, return_counts=True)
    if len(count) == program.scores.shape[1]:
        return w, idle, price, server_price, reduced
    group = group.ravel()
    first = np.unique(group, return_index=True)[1][group]

    share = (group[:, None] == np.arange(len(count))) / count

    def mean(x):
        return (x @ share)[..., group]

    zero = reduced[:, first] == 0
    return mean(w), mean(idle), price, mean(server_price), np.where(zero, 0.0, mean(reduced))


def _vertex(program):
    try:
        point = solve_highs(program)
    except HighsError as error:
        raise SolverError(f"{_name(program)}: {error}") from None
    optimum = certify(program, *polish(program, point, ZERO_TOLERANCE))
    if max(optimum.residuals) > RESIDUAL_TOLERANCE:
        raise SolverError(f"{_name(program)}: residuals {optimum.residuals} are above {RESIDUAL_TOLERANCE:g}")
    return optimum


def _near_boundary(program, selection):
    """The optimum between the only point of the largest demand and one of slightly lower demand."""
    num_servers = program.scores.shape[1]
    even = 1 / (1 + program.occupancy.sum())
    largest = even * num_servers
    for step in _LIMIT_STEPS:
        near = select(dataclasses.replace(program, demand=largest * (1 - step)), selection)
        if near.reduced.min() >= 0:
            break
    part = max(0.0, (1 - program.demand / largest) / step)
    w, idle = even + part * (near.w - even), even + part * (near.idle - even)
    free = near.reduced == 0
    if selection != "vertex" and part > 0:
        face = Face(free, ~free, np.ones_like(idle, dtype=bool), np.zeros_like(near.price, dtype=bool))
        for cutoff in _CUTOFFS:
            centre = primal_centre(program, face, w, idle, np.zeros_like(near.price), cutoff)
            if centre is not None:
                w, idle = _symmetric(program, centre, (near.price, near.server_price, near.reduced))[:2]
                break
    optimum = certify(program, w, idle, near.price, near.server_price, near.reduced)
    if max(optimum.residuals) > RESIDUAL_TOLERANCE:
        raise SolverError(f"{_name(program)} near its largest load: residuals {optimum.residuals}")
    return optimum


def certify(program: Program, w, idle, price, server_price, reduced) -> Optimum:
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


def _name(program):
    return "OCC-LP" if program.coupled else "KIID LP"
