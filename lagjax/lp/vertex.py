"""The basic optimal solution where HiGHS's dual simplex stops, with its round-off removed."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lagjax.lp.centre import DualFace, Face, settle
from lagjax.lp.outside import stoppable_linprog
from lagjax.lp.program import Curvature, NewtonSystem, Program

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


class HighsError(RuntimeError):
    """HiGHS did not report an optimum."""


def solve_highs(program: Program, method: str = "highs-ds"):
    """Runs HiGHS on the sparse program as it is stated; returns (w, idle, price, server_price).

    Raises:
      HighsError: with HiGHS's status and message.
    """
    shape = num_types, num_servers = program.scores.shape
    size, eye_servers = num_types * num_servers, scipy.sparse.eye_array(num_servers)
    one_per_type = scipy.sparse.kron(scipy.sparse.eye_array(num_types), np.ones((1, num_servers)))
    types = scipy.sparse.hstack([one_per_type, scipy.sparse.csr_array((num_types, num_servers))])
    servers = scipy.sparse.hstack([scipy.sparse.kron(program.occupancy[None], eye_servers), eye_servers])
    unit = program.rate.max()
    cost = np.concatenate([-(program.rate[:, None] * program.scores).ravel() / unit, np.zeros(num_servers)])
    demand, ones = np.full(num_types, program.demand), np.ones(num_servers)
    upper = np.full(size + num_servers, np.inf)
    if program.coupled:
        below = scipy.sparse.kron(np.ones((num_types, 1)), eye_servers)
        at_most = scipy.sparse.hstack([scipy.sparse.eye_array(size), -below]), np.zeros(size)
        exact = scipy.sparse.vstack([types, servers]), np.concatenate([demand, ones])
    else:
        at_most, exact = (types, demand), (servers, ones)
        upper[:size] = 1
    answer = stoppable_linprog(
        c=cost,
        A_ub=at_most[0].tocsr(),
        b_ub=at_most[1],
        A_eq=exact[0].tocsr(),
        b_eq=exact[1],
        bounds=np.stack([np.zeros_like(upper), upper], axis=1),
        method=method,
        options=_OPTIONS,
    )
    if answer.status != 0:
        raise HighsError(f"HiGHS stopped with status {answer.status}: {answer.message}")
    by_row = [answer.eqlin.marginals] if program.coupled else [answer.ineqlin.marginals, answer.eqlin.marginals]
    prices = -np.concatenate(by_row) * unit
    return (
        answer.x[:size].reshape(shape),
        answer.x[size:],
        prices[:num_types] / program.rate,
        prices[num_types:],
    )


def polish(program: Program, point, zero: float):
    """Removes round-off: what is close to a bound is put there, the rest moves least to meet the equations.

    Args:
      program: the program.
      point: (w, idle, price, server_price), optimal up to round-off.
      zero: tolerance in units of w and of max s_vr; a reduced value that w contradicts is zero as well.

    Returns:
      (w, idle, price, server_price, reduced).
    """
    w, idle, price, server_price = point
    reduced = program.reduced(price, server_price)
    empty, tight = w <= zero, program.slack_up(w, idle) <= zero
    free = (np.abs(reduced) <= zero) | (~empty & (reduced < 0)) | (~tight & (reduced > 0))
    if program.coupled:
        unpriced = np.ones(idle.shape, dtype=bool), np.zeros(price.shape, dtype=bool)
    else:
        unpriced = server_price * program.duration.mean() <= zero, price <= zero
    face = Face(free, (reduced > 0) & ~free, *unpriced)
    price, server_price = DualFace(program, face).project(price, server_price)
    reduced = np.where(free, 0.0, program.reduced(price, server_price))

    full = face.full | (free & tight)
    spare = np.zeros_like(price) if program.coupled else (program.demand - w.sum(1)) * face.spare
    spare, idle = np.where(spare > zero, spare, 0.0), np.where(idle > zero, idle, 0.0)
    face = Face(free & ~full & ~empty, full, idle > 0, spare > 0)
    curvature = Curvature(1.0 * face.free, 1.0 * (full & program.coupled), 1.0 * face.idle, 1.0 * face.spare)
    system = NewtonSystem(program, curvature, 1e-10)
    still = np.zeros_like(w), np.zeros_like(idle), np.zeros_like(price)
    for _ in range(3):
        w, idle = settle(program, face, w, idle)
        gap_server = 1 - idle - (program.occupancy[:, None] * w).sum(0)
        dw, d_idle, d_spare = system.solve(*still, program.demand - w.sum(1) - spare, gap_server)[:3]
        w, idle, spare = w + dw, idle + d_idle, spare + d_spare
    return *settle(program, face, w, idle), price, server_price, reduced
