"""An optimal partition: which inequalities bind in every optimum, and the analytic centre of the primal optima."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.lp.interior import Point
from lagjax.lp.newton import Curvature, NewtonSystem
from lagjax.lp.program import Program

MAX_STEPS = 100
CONVERGED = 1e-12  # largest relative change of a slack in the last Newton step
ACCEPTED = 1e-6  # the same, when round-off on a tiny slack keeps it from falling further
_INFEASIBLE = 1e-8  # left of the primal equations after a full Newton step
_CORRECTIONS = 3


@dataclasses.dataclass(frozen=True, eq=False)
class Face:
    """An optimal partition.

    Attributes:
      free: (V, R) reduced value 0. full: (V, R) reduced value > 0, so w = bound. The rest has w = 0.
      idle: (R,) idle_r is positive (always, when coupled). spare: (V,) spare_v is positive.
    """

    free: np.ndarray
    full: np.ndarray
    idle: np.ndarray
    spare: np.ndarray


def partition(program: Program, p: Point) -> Face:
    """Guesses the partition from an interior point: of slack and multiplier, the smaller one vanishes."""
    low, high = p.low / program.rate[:, None], p.high / program.rate[:, None]
    empty, full = p.w < low, p.up < high
    if program.coupled:
        idle, spare = np.ones_like(p.idle, dtype=bool), np.zeros_like(p.spare, dtype=bool)
    else:
        idle = p.idle > p.idle_low * program.duration.mean()
        spare = p.spare > p.spare_low / program.rate
    return Face(~empty & ~full, full & ~empty, idle, spare)


def settle(program: Program, face: Face, w: np.ndarray, idle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (w, idle) with every entry that the face fixes put on its bound."""
    idle = np.where(face.idle, idle, 0.0)
    bound = np.broadcast_to(idle if program.coupled else 1.0, w.shape)
    return np.where(face.free, w, np.where(face.full, bound, 0.0)), idle


def primal_centre(
    program: Program, face: Face, w: np.ndarray, idle: np.ndarray, spare: np.ndarray,
    dependent: tuple[np.ndarray, np.ndarray] | None,
) -> tuple[np.ndarray, np.ndarray] | None:  # fmt: skip
    """Returns (w, idle), the analytic centre of the primal face, or None when the face has no interior.

    Newton's method on sum log w + sum log(bound - w) + sum log idle + sum log spare over the entries that are
    positive on the face, from a point near it that may miss the equations; `dependent` as in `NewtonSystem`.
    """
    a, coupled = program.occupancy, program.coupled
    w, idle = settle(program, face, w, idle)
    spare = np.where(face.spare, spare, 0.0)
    follows = face.full & coupled
    logs_of_idle = 1.0 + coupled * (~face.free & ~face.full).sum(0)  # idle_r, and bound - w where w = 0
    change = np.inf
    for _ in range(MAX_STEPS):
        up = np.where(face.free, program.slack_up(w, idle), 1.0)
        some_w, some_idle, some_spare = (np.where(x != 0, x, 1.0) for x in (w, idle, spare))
        if min(some_w.min(), up.min(), some_idle.min(), some_spare.min()) <= 0:
            return None
        low, high = 1 / some_w**2, 1 / up**2
        inverse_w = np.where(face.free, 1 / (low + high), 0.0)
        follow, kept = None, 0.0
        if coupled:
            share = high / (low + high)
            follow = np.where(face.free, share, follows)
            kept = np.where(face.free, low * share, np.where(follows, low, 0.0)).sum(0)
        inverse_idle = np.where(face.idle, 1 / (logs_of_idle / some_idle**2 + kept), 0.0)
        system = NewtonSystem(a, Curvature(inverse_w, follow, inverse_idle, spare**2), dependent)
        gaps = program.demand - w.sum(1) - spare, 1 - idle - a @ w
        dw, d_idle, d_spare = system.solve(
            np.where(face.free, 1 / some_w - 1 / up, np.where(follows, 1 / some_w, 0.0)),
            face.idle * (logs_of_idle / some_idle + ((face.free / up).sum(0) if coupled else 0.0)),
            face.spare / some_spare,
            *gaps,
        )[:3]
        for _ in range(_CORRECTIONS):
            dw, d_idle, d_spare = system.correct(dw, d_idle, d_spare, *gaps)
        d_up = np.where(face.free, (d_idle if coupled else 0.0) - dw, 0.0)
        drops = np.concatenate([x.ravel() for x in (dw / some_w, d_up / up, d_idle / some_idle, d_spare / some_spare)])
        step = min(1.0, 0.9 / max(1e-300, -drops.min()))
        w, idle = settle(program, face, w + step * dw, idle + step * d_idle)
        spare = spare + step * d_spare
        before, change = change, np.abs(drops).max()
        if step == 1 and np.abs(program.demand - w.sum(1) - spare).max() > _INFEASIBLE:
            return None
        if change < CONVERGED or before < min(change, ACCEPTED):
            break
    return (w, idle) if change <= ACCEPTED else None
