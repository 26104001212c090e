"""The smoothed dual of OCC-LP(B) at one width: the prices that minimise it, and how nearly they meet the demands.

L-BFGS comes first, in units in which rare types weigh as much as frequent ones. It ends at the round-off of the value, where
demands are met to about 1e-5; with few types damped Newton steps go on from there, which look at the demands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.optimize

from lagjax.lp.server_blocks import ServerBlocks

Evaluate = Callable[[np.ndarray], tuple[float, np.ndarray, bool]]  # prices to value, served, and whether they do
_SINGLE_WIDTH = 2e-4  # from this mu on indices are told apart in float32, on large systems
_SINGLE_PAIRS = 2**20
_MEMORY = 20  # pairs of vectors that L-BFGS keeps
_EVALUATIONS = 1500  # of L-BFGS at one width
_DENSE_TYPES = 1000  # up to this many types Newton's method follows
_DENSE_EVALUATIONS = 150  # of L-BFGS at one width before that
_NEWTON_STEPS = 50
_TURNS = 4  # of both at one width
_MIN_DAMPING, _MAX_DAMPING = 1e-9, 1e2
_MIN_CURVATURE = 0.002  # of demand lambda_v / mu: a type with no pair inside the width takes a step of a few widths
_ROUND_OFF = 1e-13  # relative, of a value
_REPAIR_SHARE = 0.2  # a stage ends when repairing its point costs this part of what its smoothing costs


@dataclasses.dataclass(frozen=True, eq=False)
class Demand:
    """The equalities sum_r w_vr = demand, and the even point that meets them."""

    rate: np.ndarray
    occupancy: np.ndarray  # (V,) lambda_v E[D_v]
    total_scores: np.ndarray  # (V,) sum_r s_vr
    demand: float
    servers: int

    @property
    def room(self) -> float:
        """1 - B' of the even point: what its servers are free more than it needs, in [0, 1]."""
        return 1 - self.demand * (1 + self.occupancy.sum()) / self.servers

    def repair(self, served: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(keep (V,), extra (V,)): keep w_vr + extra is feasible when sum_r w_vr is `served`."""
        keep = np.minimum(1, self.demand / np.maximum(served, 1e-300))
        lack = np.maximum(self.demand - keep * served, 0)
        need = lack.max() + self.occupancy @ lack
        room = max(self.room, 0) * self.servers
        mixed = need / (need + room) if need > 0 else 0.0
        keep = (1 - mixed) * keep
        return keep, (self.demand - keep * served) / self.servers

    def value(self, reward: np.ndarray, keep: np.ndarray, extra: np.ndarray) -> float:
        """Reward per step of the repaired point; `reward` is (V,) sum_r s_vr w_vr."""
        return float(self.rate @ (keep * reward + extra * self.total_scores))


def newton_tolerance(width: float, price: np.ndarray, duration: np.ndarray, dtype: np.dtype) -> float:
    """Newton step of the worths that is not taken: small against the smoothing, above the round-off of an index."""
    round_off = 8 * float(np.finfo(dtype).eps) * (1 + np.abs(price).max())
    return max(1e-7 * width, round_off) / duration.max()


def minimise(
    blocks: ServerBlocks, target: Demand, price: np.ndarray, width: float, gap: float, max_evaluations: int
) -> np.ndarray:
    """Prices that minimise at one width, by L-BFGS-B and, with few types, Newton's method in turns.

    Each ends when repairing the point costs little, or where it comes no further; the turns end with the former.
    """
    large = target.rate.size * target.servers >= _SINGLE_PAIRS
    dtype = np.dtype(np.float32 if large and width >= _SINGLE_WIDTH else np.float64)
    total = target.rate.sum()
    unit = np.sqrt(total / target.rate)  # of the prices that L-BFGS sees
    dense = dtype == np.float64 and target.rate.size <= _DENSE_TYPES

    def evaluate(price: np.ndarray) -> tuple[float, np.ndarray, bool]:
        tolerance = newton_tolerance(width, price, blocks.duration, dtype)
        worth, served, bend = blocks.smooth(price, width, tolerance, dtype)
        value = target.demand * float(target.rate @ price) + worth
        allowed = _REPAIR_SHARE * max(width * float(target.rate @ bend), gap * abs(value))
        enough = _repair_cost(target, served, price, value) <= allowed or blocks.evaluations >= max_evaluations
        return value, served, enough

    last = [False]

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, served, last[0] = evaluate(x * unit)
        return value / total, (target.demand - served) / unit

    def stop(intermediate_result: object) -> None:
        if last[0]:
            raise StopIteration

    calls = max(1, min(_DENSE_EVALUATIONS if dense else _EVALUATIONS, max_evaluations - blocks.evaluations))
    options = {"maxcor": _MEMORY, "maxfun": calls, "maxiter": calls, "ftol": 0.0, "gtol": 0.0}
    for _ in range(_TURNS if dense else 1):
        found = scipy.optimize.minimize(
            objective, price / unit, jac=True, method="L-BFGS-B", callback=stop, options=options
        )
        price, met = found.x * unit, last[0]
        if dense and not met:
            price, met = _newton(blocks, target, price, width, evaluate)
        if met:
            break
    return price


def _newton(
    blocks: ServerBlocks, target: Demand, price: np.ndarray, width: float, evaluate: Evaluate
) -> tuple[np.ndarray, bool]:
    """Prices after damped Newton steps, and whether the demands are near enough.

    They go on where L-BFGS has come to the round-off of the value: the demands decide between equal values.
    """
    value, served, enough = evaluate(price)
    damping = _MIN_DAMPING
    for _ in range(_NEWTON_STEPS):
        if enough:
            break
        matrix = blocks.curvature(price, width)
        own = np.diag(matrix)
        inner = np.maximum(own, _MIN_CURVATURE * target.rate * target.demand / width)
        off = np.abs(served - target.demand) @ target.rate
        while damping < _MAX_DAMPING:
            step = _solved(matrix + np.diag(damping * inner + inner - own), target.rate * (served - target.demand))
            found, tried, ends = evaluate(price + step)
            if found < value - _ROUND_OFF * abs(value) or np.abs(tried - target.demand) @ target.rate < off:
                price, value, served, enough = price + step, found, tried, ends
                damping = max(damping / 100, _MIN_DAMPING)
                break
            damping *= 10
        else:
            break
    return price, enough


def _solved(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """The solution of a positive semidefinite system, or zeros where round-off made it indefinite."""
    try:
        return scipy.linalg.cho_solve(scipy.linalg.cho_factor(matrix, check_finite=False), rhs, check_finite=False)
    except np.linalg.LinAlgError:
        return np.zeros_like(rhs)


def _repair_cost(target: Demand, served: np.ndarray, price: np.ndarray, value: float) -> float:
    """About what the repair of a point that serves `served` takes from its reward."""
    mixed = 1 - target.repair(served)[0].max()
    off = np.abs(served - target.demand)
    mean = abs(value) / (target.demand * target.rate.sum())
    return mixed * abs(value) + float(target.rate @ (off * np.maximum(np.abs(price), mean)))
