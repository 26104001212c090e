"""The two linear programs in one scaled form, and the Newton system that both share.

With w_vr = u_vr / lambda_v every number below is of order one. Maximise sum_vr lambda_v s_vr w_vr over

    sum_r w_vr (+ spare_v) = demand                    one row per type      multiplier lambda_v price_v
    idle_r + sum_v lambda_v E[D_v] w_vr = 1            one row per server    multiplier q_r
    0 <= w_vr <= bound,  idle_r >= 0,  spare_v >= 0

OCC-LP(B): bound = idle_r (`coupled`), demand = k (1 - B), no spare_v. KIID: bound = 1, demand = k, spare_v
present.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.linalg

from lagjax.instance import Instance


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """One assignment program.

    Attributes:
      scores: (V, R) s_vr divided by `scale`.
      rate: (V,) lambda_v per step.
      duration: (V,) E[D_v] in steps.
      demand: sum_r w_vr asked for every type, in servers.
      coupled: True for OCC-LP (w_vr <= idle_r and an exact demand), False for KIID (w_vr <= 1, at most the
        demand).
      scale: max s_vr, or 1 when all scores are zero.
    """

    scores: np.ndarray
    rate: np.ndarray
    duration: np.ndarray
    demand: float
    coupled: bool
    scale: float

    def key(self):
        """The numbers of the program as a hashable tuple, from which `from_key` makes it again."""
        arrays = self.scores.tobytes(), self.rate.tobytes(), self.duration.tobytes()
        return (*arrays, self.scores.shape, self.demand, self.coupled, self.scale)

    @staticmethod
    def from_key(key) -> Program:
        """The program of a `key`."""
        scores, rate, duration, shape, *rest = key
        return Program(np.frombuffer(scores).reshape(shape), np.frombuffer(rate), np.frombuffer(duration), *rest)

    @property
    def occupancy(self) -> np.ndarray:
        """(V,) a_v = lambda_v E[D_v]."""
        return self.rate * self.duration

    def slack_up(self, w, idle):
        """(V, R) room below the upper bound of w."""
        return (idle if self.coupled else 1.0) - w

    def reduced(self, price, server_price):
        """(V, R) s_vr - price_v - E[D_v] q_r, in units of `scale`."""
        return self.scores - price[:, None] - np.outer(self.duration, server_price)


def occ_program(instance: Instance, blocking: float) -> Program:
    """OCC-LP(B) of an instance (Lag, eq. 2-4)."""
    return _program(instance, instance.servers_per_task * (1 - blocking), coupled=True)


def kiid_program(instance: Instance) -> Program:
    """KIID LP of an instance (Lag, section 5.1)."""
    return _program(instance, float(instance.servers_per_task), coupled=False)


def _program(instance, demand, coupled):
    scores = np.asarray(instance.scores, dtype=np.float64)
    scale = float(scores.max()) or 1.0
    rate = np.asarray(instance.arrival_rate, dtype=np.float64)
    duration = np.asarray(instance.mean_duration, dtype=np.float64)
    return Program(scores / scale, rate, duration, float(demand), coupled, scale)


@dataclasses.dataclass(frozen=True)
class Curvature:
    """Second derivatives of a separable barrier, w eliminated; what its face fixes has no freedom left.

    Attributes:
      inverse_w: (V, R) 1 / curvature in w, 0 where w is fixed or follows idle.
      follow: (V, R) d w / d idle with the multipliers held (1 where w = idle_r, 0 where w is fixed).
      inverse_idle: (R,) 1 / curvature left in idle_r, 0 where idle_r is fixed.
      inverse_spare: (V,) 1 / curvature in spare_v, 0 where there is none.
    """

    inverse_w: np.ndarray
    follow: np.ndarray
    inverse_idle: np.ndarray
    inverse_spare: np.ndarray


class NewtonSystem:
    """Factorised KKT system of one barrier step, reduced to V unknowns in O(V^2 R + V^3)."""

    def __init__(self, program: Program, curvature: Curvature, cutoff: float | None = None):
        """Factorises the system.

        Args:
          program: the program.
          curvature: of the barrier at the current point.
          cutoff: None when the equality rows are independent; else the relative size below which an
            eigenvalue of the reduced system is a dependence between rows, and the least-norm multipliers are
            used.
        """
        a = program.occupancy[:, None]
        c = self.curvature = curvature
        self.a = a
        self.gain = 1 + (a * c.follow).sum(0)
        q = (a**2 * c.inverse_w).sum(0) + self.gain**2 * c.inverse_idle
        self.inverse_q = np.divide(1.0, q, out=np.zeros_like(q), where=q > 0)
        self.cross = a * c.inverse_w + c.follow * (self.gain * c.inverse_idle)
        matrix = (c.follow * c.inverse_idle) @ c.follow.T - (self.cross * self.inverse_q) @ self.cross.T
        matrix[np.diag_indices_from(matrix)] += c.inverse_w.sum(1) + c.inverse_spare
        self.solve_types = _positive(matrix) if cutoff is None else _least_norm(matrix, cutoff)

    def solve_refined(self, grad_w, grad_idle, grad_spare, gap_type, gap_server):
        """Like `solve`, returning (dw, d_idle, d_spare) after two corrections of the equations' round-off."""
        total = self.solve(grad_w, grad_idle, grad_spare, gap_type, gap_server)[:3]
        for _ in range(2):
            dw, d_idle, d_spare = total
            left_type = gap_type - dw.sum(1) - d_spare
            left_server = gap_server - d_idle - (self.a * dw).sum(0)
            more = self.solve(0 * grad_w, 0 * grad_idle, 0 * grad_spare, left_type, left_server)[:3]
            total = tuple(x + y for x, y in zip(total, more, strict=True))
        return total

    def solve(self, grad_w, grad_idle, grad_spare, gap_type, gap_server):
        """Returns (dw, d_idle, d_spare, d_type, d_server) with H dx = grad + A' d_multiplier."""
        c = self.curvature
        pushed = c.inverse_w * grad_w
        idle_grad = grad_idle + (c.follow * grad_w).sum(0)
        rhs_server = gap_server - (self.a * pushed).sum(0) - self.gain * c.inverse_idle * idle_grad
        rhs_type = gap_type - pushed.sum(1) - c.follow @ (c.inverse_idle * idle_grad)
        rhs_type = rhs_type - c.inverse_spare * grad_spare
        d_type = self.solve_types(rhs_type - self.cross @ (self.inverse_q * rhs_server))
        d_server = self.inverse_q * (rhs_server - d_type @ self.cross)
        d_idle = c.inverse_idle * (idle_grad + self.gain * d_server + d_type @ c.follow)
        dw = pushed + c.inverse_w * (d_type[:, None] + self.a * d_server) + c.follow * d_idle
        return dw, d_idle, c.inverse_spare * (grad_spare + d_type), d_type, d_server


def _positive(matrix):
    lower = 1e-15 * np.trace(matrix) / len(matrix)
    matrix[np.diag_indices_from(matrix)] += lower
    try:
        factor = scipy.linalg.cho_factor(matrix, check_finite=False)
    except np.linalg.LinAlgError:
        return _least_norm(matrix, 1e-14)
    return lambda rhs: scipy.linalg.cho_solve(factor, rhs, check_finite=False)


def _least_norm(matrix, cutoff):
    diagonal = np.sqrt(np.maximum(np.diag(matrix), 0))
    present = diagonal > 1e-14 * max(diagonal.max(), 1e-300)
    weight = np.divide(1.0, diagonal, out=np.zeros_like(diagonal), where=present)
    values, vectors = np.linalg.eigh(weight[:, None] * matrix * weight)
    inverse = np.divide(1.0, values, out=np.zeros_like(values), where=values > cutoff)
    return lambda rhs: weight * (vectors @ (inverse * (vectors.T @ (weight * rhs))))
