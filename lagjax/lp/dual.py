"""OCC-LP(B) from its dual side, for systems too large to factorise: prices, a feasible point, a certified gap.

    minimise over ell    demand sum_v lambda_v ell_v + sum_r q_r(ell),        demand = k (1 - B)

q_r is the root of the arm equation of server r (`lagjax.lp.arm_root`). With max(x, 0) smoothed over a width mu the
problem is differentiable, with gradient lambda_v (demand - sum_r w_vr), w_vr = phi_r y_vr: at its minimum the shares w
meet the demand, and 0 <= w_vr <= phi_r = 1 - sum_v lambda_v E[D_v] w_vr holds at any prices. SciPy's L-BFGS-B
minimises over the V prices, in units in which rare types weigh as much as frequent ones, while mu falls.

What is certified needs no convergence. The bound is the dual objective at the prices, each q_r exact (Newton's method
on max(x, 0), then a value above the root). The point is made feasible: types served too much are scaled down to their
demand, which only frees servers, and the rest is mixed with a share t of an even point that owes each type what it
lacks. t is (largest deficit) / (R times the room of the load), so a deficit hardly costs where R is large.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from lagjax.errors import InputError, SolverError
from lagjax.lp.dual_descent import Demand, minimise, newton_tolerance
from lagjax.lp.server_blocks import ServerBlocks

DEFAULT_GAP = 1e-4
MAX_EVALUATIONS = 20_000
_FIRST_WIDTH, _WARM_WIDTH, _MIN_WIDTH = 0.1, 1e-2, 1e-12  # mu, relative to the largest score
_FALL = 10**-0.5  # of mu from stage to stage
_SAMPLE, _SAMPLE_SERVERS = 16, 256  # the first prices come from one server in 16, of at least 256
_PATIENCE = 6  # stages without a better gap after which there is none


@dataclasses.dataclass(frozen=True, eq=False)
class DualSolution:
    """Prices, a feasible point and what lies between their values.

    Attributes:
      price: (V,) ell_v, reward per server and task; any sign.
      server_price: (R,) q_r(ell) >= 0, reward per step.
      free_fraction: (R,) phi_r in [0, 1].
      share: (V, R) float64, w_vr = u_vr / lambda_v in [0, phi_r]; rows sum to the demand.
      objective: reward per step of the point.
      bound: the dual value at `price`, no less than the optimum.
      relative_gap: (bound - objective) / |bound|.
      iterations: evaluations of all servers' roots; those of a sample, from which large systems start, do not count.
      zero_tolerance: every pair whose unrepaired share is strictly between 0 and phi_r has an index
        |s_vr - ell_v - E[D_v] q_r| up to this, in units of the scores: half the last smoothing width and what the smoothing
        moved q_r by. Signs of indices inside it are not decided.
      ties_undecided: how many more pairs than V have an index inside `zero_tolerance`; a basic solution has V.
    """

    price: np.ndarray
    server_price: np.ndarray
    free_fraction: np.ndarray
    share: np.ndarray
    objective: float
    bound: float
    relative_gap: float
    iterations: int
    zero_tolerance: float
    ties_undecided: int


@dataclasses.dataclass(frozen=True, eq=False)
class _Certificate:
    """A bound and a point at one price vector, in scaled units."""

    price: np.ndarray
    width: float
    worth: np.ndarray
    smooth_worth: np.ndarray
    keep: np.ndarray
    extra: np.ndarray
    bound: float
    value: float

    @property
    def gap(self) -> float:
        return (self.bound - self.value) / abs(self.bound) if self.bound else math.inf


def solve_dual(
    scores: ArrayLike, arrival_rate: ArrayLike, mean_duration: ArrayLike, demand: float, *, gap: float = DEFAULT_GAP,
    max_evaluations: int = MAX_EVALUATIONS, progress: Callable[[int, float], object] | None = None,
    start: ArrayLike | None = None,
) -> DualSolution:  # fmt: skip
    """Solves OCC-LP(B) to a certified relative gap.

    Args:
      scores: (V, R) s_vr >= 0, not all 0, float32 or float64; float32 stays float32 in memory.
      arrival_rate: (V,) lambda_v > 0 per step.
      mean_duration: (V,) E[D_v] > 0, steps.
      demand: k (1 - B) > 0, servers.
      gap: relative gap at which to stop.
      max_evaluations: evaluations of all roots, at most.
      progress: called with (evaluations, smallest certified gap so far) on the calling thread, several times a second;
        it may raise to stop.
      start: (V,) prices of a similar system, as a start.

    Returns:
      The solution; the same bits for any number of threads and devices.

    Raises:
      InputError: shapes disagree, or the load is above the largest feasible one.
      SolverError: the gap was not reached; the message has the one that was.
    """
    scores, rate, duration = _checked(scores, arrival_rate, mean_duration, demand, gap, start)
    best = [math.inf]
    with ServerBlocks(scores, rate, duration, pause=lambda: report()) as blocks:

        def report() -> None:
            if progress is not None:
                progress(blocks.evaluations, best[0])

        target = Demand(rate, rate * duration, blocks.total_scores(), float(demand), scores.shape[1])
        if target.room < -1e-9:
            raise InputError(
                f"demand {demand:g} is too large for OCC-LP: {scores.shape[1]} servers can give each task at most "
                f"{scores.shape[1] / (1 + target.occupancy.sum()):g}"
            )
        certificate = _even(blocks, target) if target.room < gap else None
        if certificate is None or certificate.gap > gap:
            if start is None:
                prices = _sampled(scores, blocks.scale, target, duration, gap, report)
            else:
                prices = np.asarray(start, np.float64) / blocks.scale
            certificate = _descend(blocks, target, prices, gap, max_evaluations, best)
        return _solution(blocks, target, certificate)


def _checked(
    scores: ArrayLike, rate: ArrayLike, duration: ArrayLike, demand: float, gap: float, start: ArrayLike | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    scores = np.asarray(scores)
    if scores.dtype not in (np.float32, np.float64):
        scores = scores.astype(np.float64)
    rate, duration = np.asarray(rate, np.float64), np.asarray(duration, np.float64)
    if scores.ndim != 2 or not scores.size or rate.shape != scores.shape[:1] or duration.shape != rate.shape:
        raise InputError(
            f"scores have shape {scores.shape}, arrival_rate {rate.shape} and mean_duration {duration.shape}; "
            "give (V, R), (V,) and (V,)"
        )
    if not (rate.min() > 0 and duration.min() > 0 and demand > 0 and gap > 0):
        raise InputError("arrival_rate, mean_duration, demand and gap must be positive")
    if not (np.isfinite(scores.max()) and scores.min() >= 0 and scores.max() > 0):
        raise InputError("scores must be finite, 0 or more, and not all 0")
    if start is not None and np.shape(start) != rate.shape:
        raise InputError(f"start has shape {np.shape(start)}; give one price for each of the {rate.size} types")
    return scores, rate, duration


def _certify(blocks: ServerBlocks, target: Demand, price: np.ndarray, width: float) -> _Certificate:
    tolerance = newton_tolerance(width, price, blocks.duration, np.dtype(np.float64))
    worth, smooth_worth, served, reward = blocks.recover(price, width, tolerance)
    keep, extra = target.repair(served)
    bound = target.demand * float(target.rate @ price) + float(worth.sum())
    value = target.value(reward, keep, extra)
    return _Certificate(price, width, worth, smooth_worth, keep, extra, bound, value)


def _even(blocks: ServerBlocks, target: Demand) -> _Certificate:
    """The even point, optimal at the largest feasible load, against prices at which every task is worth taking."""
    low = -blocks.duration[: len(target.rate)] * target.rate.sum()
    found = _certify(blocks, target, low, _MIN_WIDTH)
    even = np.full_like(target.rate, target.demand / target.servers)
    value = target.value(np.zeros_like(even), np.zeros_like(even), even)
    return dataclasses.replace(found, keep=np.zeros_like(even), extra=even, value=value)


def _sampled(
    scores: np.ndarray, scale: float, target: Demand, duration: np.ndarray, gap: float, pause: Callable[[], None]
) -> np.ndarray | None:
    """Prices at the width at which a warm start begins, from a sample of the servers; None for few servers.

    With rates as they are and a demand in proportion, the dual of the sample is, on average, that of the whole in proportion.
    """
    step = min(_SAMPLE, scores.shape[1] // _SAMPLE_SERVERS)
    if step < 2:
        return None
    part = np.ascontiguousarray(scores[:, ::step])
    with ServerBlocks(part, target.rate, duration, pause=pause) as blocks:
        demand = target.demand * part.shape[1] / scores.shape[1]
        aim = dataclasses.replace(target, total_scores=blocks.total_scores(), demand=demand, servers=part.shape[1])
        price, width = np.zeros_like(target.rate), _FIRST_WIDTH
        while width > _WARM_WIDTH:
            price = minimise(blocks, aim, price, width, gap, MAX_EVALUATIONS)
            width *= _FALL
        return price * blocks.scale / scale


def _descend(
    blocks: ServerBlocks, target: Demand, start: np.ndarray | None, gap: float, max_evaluations: int, best: list[float]
) -> _Certificate:
    """Minimises at falling widths until a certificate has the gap."""
    price = np.zeros_like(target.rate) if start is None else start
    width = _FIRST_WIDTH if start is None else _WARM_WIDTH
    slope, last, idle = np.zeros_like(price), None, 0
    while True:
        found = minimise(blocks, target, price, width, gap, max_evaluations)
        certificate = _certify(blocks, target, found, width)
        idle = 0 if certificate.gap < best[0] else idle + 1
        best[0] = min(best[0], certificate.gap)
        if certificate.gap <= gap:
            return certificate
        spent = blocks.evaluations >= max_evaluations
        if spent or idle >= _PATIENCE or width <= _MIN_WIDTH:
            raise SolverError(
                f"the dual method reached a relative gap of {best[0]:.2g}, not {gap:.2g}, in {blocks.evaluations} "
                f"evaluations; {'raise max_evaluations or ' if spent else ''}ask for a larger gap"
            )
        following = max(width * _FALL, _MIN_WIDTH)
        if last is not None:  # prices are nearly linear in the width once the ties are found
            slope = (last[0] - found) / (last[1] - width)
        last = found, width
        price, width = found + slope * (following - width), following


def _solution(blocks: ServerBlocks, target: Demand, c: _Certificate) -> DualSolution:
    moved = blocks.by_server(c.smooth_worth - c.worth).max() if c.keep.any() else 0.0
    duration = blocks.duration[: len(target.rate)]
    zero = c.width / 2 + max(moved, 0.0) * duration + 8 * np.finfo(np.float64).eps
    shares, free, near = blocks.shares(c.price, c.worth, c.smooth_worth, c.width, c.keep, c.extra, zero)
    worth = blocks.by_server(c.worth)
    for array in (shares, free, worth):
        array.setflags(write=False)
    return DualSolution(
        price=c.price * blocks.scale, server_price=worth * blocks.scale, free_fraction=free, share=shares,
        objective=c.value * blocks.scale, bound=c.bound * blocks.scale, relative_gap=c.gap,
        iterations=blocks.evaluations, zero_tolerance=float(zero.max()) * blocks.scale,
        ties_undecided=max(0, near - len(target.rate)),
    )  # fmt: skip
