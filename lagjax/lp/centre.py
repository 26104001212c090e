"""The analytic centre of an optimal face, once it is known which inequalities bind on the whole face."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.lp.interior import Point
from lagjax.lp.program import Curvature, NewtonSystem, Program

_MAX_STEPS = 60
_CONVERGED = 1e-12  # largest relative change of a slack in the last Newton step
_DEPENDENT = 1e-11  # relative singular value of dependent price equations
_INFEASIBLE = 1e-8  # left of the primal equations after a full Newton step
_ACCEPTED = 1e-6  # the same, when round-off on a tiny slack keeps it from falling further


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


def settle(program: Program, face: Face, w, idle):
    """Returns (w, idle) with every entry that the face fixes put on its bound."""
    idle = np.where(face.idle, idle, 0.0)
    bound = np.broadcast_to(idle if program.coupled else 1.0, w.shape)
    return np.where(face.free, w, np.where(face.full, bound, 0.0)), idle


def primal_centre(program: Program, face: Face, w, idle, spare, cutoff=1e-11):
    """Returns (w, idle), the analytic centre of the primal face, or None when the face has no interior.

    Newton's method on sum log w + sum log(bound - w) + sum log idle + sum log spare over the entries that are
    positive on the face, from a point near it that may miss the equations; `cutoff` as in `NewtonSystem`.
    """
    a, coupled = program.occupancy[:, None], program.coupled
    w, idle = settle(program, face, w, idle)
    spare = np.where(face.spare, spare, 0.0)
    follows = face.full & coupled
    logs_of_idle = 1.0 + coupled * (~face.free & ~face.full).sum(0)  # idle_r, and bound - w where w = 0
    change = np.inf
    for _ in range(_MAX_STEPS):
        up = np.where(face.free, program.slack_up(w, idle), 1.0)
        some_w, some_idle, some_spare = (np.where(x != 0, x, 1.0) for x in (w, idle, spare))
        if min(some_w.min(), up.min(), some_idle.min(), some_spare.min()) <= 0:
            return None
        low, high = 1 / some_w**2, 1 / up**2
        share = high / (low + high)
        inverse_w = np.where(face.free, 1 / (low + high), 0.0)
        follow = np.where(face.free, share, follows) if coupled else np.zeros_like(w)
        kept = np.where(face.free, low * share, np.where(follows, low, 0.0)).sum(0) if coupled else 0.0
        inverse_idle = np.where(face.idle, 1 / (logs_of_idle / some_idle**2 + kept), 0.0)
        system = NewtonSystem(program, Curvature(inverse_w, follow, inverse_idle, spare**2), cutoff)
        dw, d_idle, d_spare = system.solve_refined(
            np.where(face.free, 1 / some_w - 1 / up, np.where(follows, 1 / some_w, 0.0)),
            face.idle * (logs_of_idle / some_idle + ((face.free / up).sum(0) if coupled else 0.0)),
            face.spare / some_spare,
            program.demand - w.sum(1) - spare,
            1 - idle - (a * w).sum(0),
        )
        d_up = np.where(face.free, (d_idle if coupled else 0.0) - dw, 0.0)
        ratios = (dw / some_w, d_up / up, d_idle / some_idle, d_spare / some_spare)
        drops = np.concatenate([x.ravel() for x in ratios])
        step = min(1.0, 0.9 / max(1e-300, -drops.min()))
        w, idle = settle(program, face, w + step * dw, idle + step * d_idle)
        spare = spare + step * d_spare
        before, change = change, np.abs(drops).max()
        if step == 1 and np.abs(program.demand - w.sum(1) - spare).max() > _INFEASIBLE:
            return None
        if change < _CONVERGED or before < min(change, _ACCEPTED):
            break
    return (w, idle) if change <= _ACCEPTED else None


class DualFace:
    """Prices with zero reduced value on `free`, and the server prices that the other entries imply."""

    def __init__(self, program: Program, face: Face):
        num_types, num_servers = program.scores.shape
        self.program, self.face = program, face
        self.unit = program.duration.mean()
        share, load = program.duration / self.unit, program.rate * self.unit
        rows, cols = np.nonzero(face.free)
        zero = np.zeros((rows.size, num_types + num_servers))
        zero[np.arange(rows.size), rows] = 1
        zero[np.arange(rows.size), num_types + cols] = share[rows]
        if program.coupled:  # q_r = sum over full entries of lambda_v (s_vr - price_v - E[D_v] q_r)
            full = face.full * load[:, None]
            fixed = np.hstack([full.T, np.diag(1 + share @ full)])
            value = (full * program.scores).sum(0)
        else:  # a constraint with room has no price
            fixed = np.eye(num_types + num_servers)[np.concatenate([face.spare, face.idle])]
            value = np.zeros(len(fixed))
        self.rows = np.vstack([zero, fixed])
        self.value = np.concatenate([program.scores[face.free], value])
        triangle = np.zeros((num_types + num_servers,) * 2)
        factor = np.linalg.qr(self.rows, mode="r")
        triangle[: len(factor)] = factor
        _, values, basis = np.linalg.svd(triangle)
        kept = values > _DEPENDENT * values[0]
        self.directions = basis[~kept].T
        self._inverse = (basis[kept].T / values[kept] ** 2) @ basis[kept]

    def project(self, price, server_price):
        """The nearest (price, server_price) on the face's equations, by refined least squares."""
        x = np.concatenate([price, server_price * self.unit])
        for _ in range(4):
            x = x + self._inverse @ (self.rows.T @ (self.value - self.rows @ x))
        return self.split(x)

    def split(self, x):
        """(price, server_price) of a vector of unknowns."""
        return x[: len(self.program.rate)], x[len(self.program.rate) :] / self.unit


def dual_centre(program: Program, face: Face, price, server_price):
    """Returns (price, server_price, reduced), the dual face's analytic centre, or None when it has none.

    Newton's method on the sum of log |reduced| over the entries outside `free` and, when not coupled, of the
    logs of the prices that the face leaves positive.
    """
    dual = DualFace(program, face)
    price, server_price = dual.project(price, server_price)
    sign = np.where(face.full, 1.0, np.where(face.free, 0.0, -1.0))
    strict = sign.ravel() != 0
    priced = ~np.concatenate([face.spare | program.coupled, face.idle])
    if dual.directions.shape[1]:
        num_types = len(program.rate)
        of_type, of_server = dual.directions[:num_types], dual.directions[num_types:]
        moves = of_type[:, None] + (program.duration / dual.unit)[:, None, None] * of_server
        signed = (-sign[:, :, None] * moves).reshape(sign.size, -1)[strict]
        slope = np.vstack([signed, dual.directions[priced]])
        x = np.concatenate([price, server_price * dual.unit])
        change = np.inf
        for _ in range(_MAX_STEPS):
            slack = np.concatenate([(sign * program.reduced(*dual.split(x))).ravel()[strict], x[priced]])
            if slack.min(initial=1) <= 0:
                return None
            scaled = slope / slack[:, None]
            step = np.linalg.lstsq(scaled.T @ scaled, scaled.sum(0), rcond=1e-15)[0]
            ratios = scaled @ step
            x = x + min(1.0, 0.9 / max(1e-300, -ratios.min(initial=0))) * (dual.directions @ step)
            before, change = change, np.abs(ratios).max(initial=0)
            if change < _CONVERGED or before < min(change, _ACCEPTED):
                break
        if change > _ACCEPTED:
            return None
        price, server_price = dual.project(*dual.split(x))
    if not program.coupled:
        price, server_price = np.where(face.spare, 0.0, price), np.where(face.idle, 0.0, server_price)
    reduced = np.where(face.free, 0.0, program.reduced(price, server_price))
    if (sign * reduced).ravel()[strict].min(initial=1) <= 0:
        return None
    return price, server_price, reduced
