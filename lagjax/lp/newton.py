"""The Newton system that every barrier on the two programs shares, reduced to min(V, R) unknowns."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import scipy.linalg

Multipliers = Callable[[np.ndarray, np.ndarray, np.ndarray], tuple[np.ndarray, ...]]
_ROUND_OFF = 1e-15  # what cancellation leaves of a diagonal entry, relative to it
_ABSENT = 1e-12  # length, or its square, below which a vector is not there
_WORST = 1e-6  # most damping tried before a matrix is given up


@dataclasses.dataclass(frozen=True)
class Curvature:
    """Second derivatives of a separable barrier, w eliminated; what its face fixes has no freedom left.

    Let w_vr have the curvature l from its bound 0 and h from its bound above, which is idle_r in OCC-LP. The barrier's part in
    (w, idle), for a force f on w and multipliers t_v, s_r of the two equations, is stationary where

        l dw + h (dw - d idle) = f + t_v + a_v s_r,    so    dw = W (f + t_v + a_v s_r) + F d idle,

    with W = 1 / (l + h) and F = h / (l + h). Put back, idle_r keeps the curvature of its own bound and of sum_v l h / (l + h).
    In KIID the bound above is 1: F = 0, and idle_r keeps its own curvature alone.

    Attributes:
      inverse_w: (V, R) 1 / curvature in w, 0 where w is fixed or follows idle.
      follow: (V, R) d w / d idle with the multipliers held (1 where w = idle_r, 0 where w is fixed), or None if it is 0.
      inverse_idle: (R,) 1 / curvature left in idle_r, 0 where idle_r is fixed.
      inverse_spare: (V,) 1 / curvature in spare_v, 0 where there is none.
    """

    inverse_w: np.ndarray
    follow: np.ndarray | None
    inverse_idle: np.ndarray
    inverse_spare: np.ndarray


class NewtonSystem:
    """The factorised system of one barrier step.

    Linearised, the equations sum_r w_vr + spare_v = demand and idle_r + sum_v a_v w_vr = 1 ask for changes that close their gaps;
    with dw as `Curvature` has it, and d spare = inverse_spare (force + t) likewise, the multipliers t of types, s of servers and
    the change i of idle solve

        [ D    A    F ] [t]   [rhs_type   ]      D = diag(sum_r W + inverse_spare)    A = a W
        [ A'   Q    G ] [s] = [rhs_server ]      Q = diag(sum_v a^2 W)                G = diag(1 + sum_v a F)
        [ F'   G   -H ] [i]   [-grad_idle ]      H = diag(1 / inverse_idle)

    Each right side is the gap, or the force, less what the forces on w and spare move by themselves. Where types are few, i and
    then s are eliminated: i = (grad_idle + G s + F' t) / H turns Q into Q + G^2 / H, still diagonal, and V unknowns are left.
    Where servers are few, t goes first and R by R matrices are left. Either way a factorisation costs O(V R min(V, R)).
    """

    def __init__(
        self, occupancy: np.ndarray, curvature: Curvature, dependent: tuple[np.ndarray, np.ndarray] | None = None
    ) -> None:
        """Factorises the system.

        Args:
          occupancy: (V,) a_v.
          curvature: of the barrier at the current point.
          dependent: ((V, f), (R, f)) the type and server parts of a basis of the dependences between the equations, none by
            default. What of the multipliers lies in their span is arbitrary, and kept small.
        """
        c = self.curvature = curvature
        self.occupancy = occupancy
        self.aw = occupancy[:, None] * c.inverse_w
        self.type_diagonal = c.inverse_w.sum(1) + c.inverse_spare
        self.server_diagonal = np.einsum("v,vr->r", occupancy, self.aw)
        self.gain = 1.0 if c.follow is None else 1 + occupancy @ c.follow
        whole_type, whole_server = self.type_diagonal, self.server_diagonal + self.gain**2 * c.inverse_idle
        if c.follow is not None:
            whole_type = whole_type + np.einsum("vr,r,vr->v", c.follow, c.inverse_idle, c.follow)
        few_types = c.inverse_w.shape[0] <= c.inverse_w.shape[1]
        null = None
        if dependent is not None and dependent[0].size:
            scale = np.sqrt(np.concatenate([whole_type, whole_server]))
            null = _orthonormal(np.vstack(dependent) * scale[:, None])
        build = self._over_types if few_types else self._over_servers
        self.multipliers = build(whole_type, whole_server, null)

    def solve(
        self, grad_w: np.ndarray, grad_idle: np.ndarray, grad_spare: np.ndarray, gap_type: np.ndarray,
        gap_server: np.ndarray,
    ) -> tuple[np.ndarray, ...]:  # fmt: skip
        """Returns (dw, d_idle, d_spare, d_type, d_server) with H dx = grad + A' d_multiplier."""
        c = self.curvature
        pushed = c.inverse_w * grad_w
        if c.follow is not None:
            grad_idle = grad_idle + np.einsum("vr,vr->r", c.follow, grad_w)
        left_type = gap_type - pushed.sum(1) - c.inverse_spare * grad_spare
        d_type, d_server, d_idle = self.multipliers(left_type, gap_server - self.occupancy @ pushed, grad_idle)
        return *self._moved(pushed, c.inverse_spare * (grad_spare + d_type), d_type, d_server, d_idle), d_type, d_server

    def correct(
        self, dw: np.ndarray, d_idle: np.ndarray, d_spare: np.ndarray, gap_type: np.ndarray, gap_server: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        """Returns (dw, d_idle, d_spare) with what round-off left of the two gaps closed."""
        c = self.curvature
        left_type = gap_type - dw.sum(1) - d_spare
        left_server = gap_server - d_idle - self.occupancy @ dw
        d_type, d_server, more = self.multipliers(left_type, left_server, np.zeros_like(d_idle))
        extra = self._moved(0.0, c.inverse_spare * d_type, d_type, d_server, more)
        return dw + extra[0], d_idle + extra[1], d_spare + extra[2]

    def _moved(
        self, pushed: np.ndarray | float, d_spare: np.ndarray, d_type: np.ndarray, d_server: np.ndarray,
        d_idle: np.ndarray,
    ) -> tuple[np.ndarray, ...]:  # fmt: skip
        c = self.curvature
        dw = pushed + c.inverse_w * d_type[:, None] + self.aw * d_server
        if c.follow is not None:
            dw += c.follow * d_idle
        return dw, d_idle, d_spare

    def _over_types(self, whole_type: np.ndarray, whole_server: np.ndarray, null: np.ndarray | None) -> Multipliers:
        c, gain = self.curvature, self.gain
        inverse_q = _inverse(whole_server)
        cross = self.aw
        if c.follow is None:
            matrix = -(cross * inverse_q) @ cross.T
        else:
            cross = self.aw + c.follow * (gain * c.inverse_idle)
            pulled = c.follow * np.sqrt(c.inverse_idle)
            matrix = pulled @ pulled.T - (cross * inverse_q) @ cross.T
        matrix[np.diag_indices_from(matrix)] += self.type_diagonal
        solve_types = _factor(matrix, whole_type, null, slice(len(whole_type)))

        def multipliers(rhs_type: np.ndarray, rhs_server: np.ndarray, grad_idle: np.ndarray) -> tuple[np.ndarray, ...]:
            moved = c.inverse_idle * grad_idle
            rhs_server = rhs_server - gain * moved
            if c.follow is not None:
                rhs_type = rhs_type - c.follow @ moved
            d_type = solve_types(rhs_type - cross @ (inverse_q * rhs_server))
            d_server = inverse_q * (rhs_server - d_type @ cross)
            pull = 0.0 if c.follow is None else d_type @ c.follow
            return d_type, d_server, moved + c.inverse_idle * (gain * d_server + pull)

        return multipliers

    def _over_servers(self, whole_type: np.ndarray, whole_server: np.ndarray, null: np.ndarray | None) -> Multipliers:
        c, gain, aw = self.curvature, self.gain, self.aw
        inverse_type = _inverse(self.type_diagonal)
        weighted = aw * inverse_type[:, None]
        if c.follow is None:
            matrix = -(aw.T @ weighted)
            matrix[np.diag_indices_from(matrix)] += whole_server
            solve_servers = _factor(matrix, whole_server, null, slice(len(whole_type), None))

            def of_servers(
                rhs_type: np.ndarray, rhs_server: np.ndarray, grad_idle: np.ndarray
            ) -> tuple[np.ndarray, ...]:
                held, moved = inverse_type * rhs_type, c.inverse_idle * grad_idle
                d_server = solve_servers(rhs_server - held @ aw - moved)
                return held - inverse_type * (aw @ d_server), d_server, moved + c.inverse_idle * d_server

            return of_servers

        # i = root * j and (1 + root F'D^-1 F root) j = root grad_idle + pull (s, t): t of the types that only idle servers serve
        stiff = np.flatnonzero(self.type_diagonal == 0)
        root, servers, num = np.sqrt(c.inverse_idle), np.arange(len(whole_server)), len(whole_server)
        idle = root[:, None] * (c.follow.T @ (c.follow * inverse_type[:, None])) * root
        idle[servers, servers] += 1
        solve_idle = _factor(idle, np.diag(idle).copy())
        pull = np.hstack([-(c.follow.T @ weighted), c.follow[stiff].T])
        pull[servers, servers] += gain
        pull *= root[:, None]
        matrix = pull.T @ solve_idle(pull)
        matrix[:num, :num] -= aw.T @ weighted
        matrix[servers, servers] += self.server_diagonal
        kept = np.concatenate([len(whole_type) + servers, stiff])
        solve_kept = _factor(matrix, np.concatenate([whole_server, whole_type[stiff]]), null, kept)

        def of_kept(rhs_type: np.ndarray, rhs_server: np.ndarray, grad_idle: np.ndarray) -> tuple[np.ndarray, ...]:
            held = inverse_type * rhs_type
            force = root * (grad_idle + held @ c.follow)
            rhs = np.concatenate([rhs_server - held @ aw, rhs_type[stiff]])
            both = solve_kept(rhs - pull.T @ solve_idle(force))
            d_server, d_idle = both[:num], root * solve_idle(force + pull @ both)
            d_type = inverse_type * (rhs_type - aw @ d_server - c.follow @ d_idle)
            d_type[stiff] = both[num:]
            return d_type, d_server, d_idle

        return of_kept


def _inverse(x: np.ndarray) -> np.ndarray:
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0)


def _factor(
    matrix: np.ndarray, diagonal: np.ndarray, null: np.ndarray | None = None, kept: np.ndarray | slice | None = None
) -> Callable[[np.ndarray], np.ndarray]:
    """Solves with a positive semidefinite matrix, scaled by the diagonal it had before anything cancelled.

    The rows `kept` of the orthonormal columns of `null` span the scaled matrix's null space.
    """
    weight = np.sqrt(_inverse(diagonal))
    scaled = matrix * weight
    scaled *= weight[:, None]
    places = np.diag_indices_from(scaled)
    scaled[places] += np.where(weight > 0, _ROUND_OFF, 1.0)
    if null is not None:
        part = _orthonormal(null[kept])
        scaled += part @ part.T
    damping = _ROUND_OFF
    while True:
        try:
            factor = scipy.linalg.cholesky(scaled, lower=True, check_finite=False)
            break
        except np.linalg.LinAlgError:
            if damping > _WORST:
                raise
            scaled[places] += 9 * damping
            damping *= 10

    def solve(rhs: np.ndarray) -> np.ndarray:
        shaped = weight if rhs.ndim == 1 else weight[:, None]
        return shaped * scipy.linalg.cho_solve((factor, True), shaped * rhs, check_finite=False)

    return solve


def _orthonormal(vectors: np.ndarray) -> np.ndarray:
    """An orthonormal basis of their span, less what is round-off beside vectors of length 1."""
    size = np.sqrt(np.square(vectors).sum(0))
    present = size > _ABSENT
    vectors = vectors[:, present] / size[present]
    values, directions = np.linalg.eigh(vectors.T @ vectors)
    some = values > _ABSENT
    return vectors @ (directions[:, some] / np.sqrt(values[some]))
