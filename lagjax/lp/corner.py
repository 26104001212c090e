"""Basic solutions: a corner of an optimal face, and any point near one with its round-off removed."""

from __future__ import annotations

import numpy as np
import scipy.sparse

from lagjax.lp.face import Face, primal_centre, settle
from lagjax.lp.highs import run_highs
from lagjax.lp.price_face import PriceFace
from lagjax.lp.program import Program
from lagjax.lp.watching import Progress

_WEIGHTS_SEED, _RANDOM_PART = 2610, 1e-3
_TIGHT = 1e-9  # of what HiGHS returns, in units of w and of max s_vr


def corner(
    program: Program, face: Face, point: tuple[np.ndarray, ...], progress: Progress | None = None
) -> tuple[np.ndarray, ...]:
    """The corner of a face, primal and dual, at which fixed weights are largest.

    The weights grow along types and servers from 1 to 2, each with a small random part from a stated generator, so that the
    corner is unique and does not depend on the solver; it does depend on the order of types and servers.

    Args:
      program: the program.
      face: an optimal partition.
      point: (w, idle, price, server_price) inside the face.
      progress: told while it runs.

    Returns:
      (w, idle, price, server_price, reduced).

    Raises:
      SolverError: HiGHS found no corner.
    """
    w, idle, price, server_price = point
    prices = PriceFace(program, face, price, server_price)
    if primal_dimension(face, prices):
        w, idle = _primal_corner(program, face, progress)
    if prices.directions.shape[1]:
        price, server_price = _dual_corner(prices, progress)
    return settled(program, (w, idle, price, server_price), _TIGHT)


def primal_dimension(face: Face, prices: PriceFace) -> int:
    """Dimension of the primal optima: the variables that move, less the independent equations."""
    equations = len(prices.price) + len(prices.server_price) - prices.directions.shape[1]
    return int(face.free.sum() + face.idle.sum() + face.spare.sum()) - equations


def _primal_corner(program: Program, face: Face, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
    num_types, num_servers = program.scores.shape
    rows, cols = np.nonzero(face.free)
    moving, idle, spare = rows.size, np.flatnonzero(face.idle), np.flatnonzero(face.spare)
    size = moving + idle.size + spare.size
    at = np.arange(size)
    entries = [  # (row, column, value) of the equations, types above servers
        (rows, at[:moving], np.ones(moving)),
        (num_types + cols, at[:moving], program.occupancy[rows]),
        (num_types + idle, at[moving : moving + idle.size], np.ones(idle.size)),
        (spare, at[moving + idle.size :], np.ones(spare.size)),
    ]
    right = np.concatenate([np.full(num_types, program.demand), np.ones(num_servers)])
    full_rows, full_cols = np.nonzero(face.full)
    if program.coupled:  # w = idle there, and idle bounds the free ones
        follows = moving + full_cols  # every server is idle at times
        entries += [(full_rows, follows, np.ones(full_rows.size))]
        entries += [(num_types + full_cols, follows, program.occupancy[full_rows])]
        both = np.concatenate([at[:moving], moving + cols])
        signs = np.repeat([1.0, -1.0], moving)
        above = scipy.sparse.coo_array((signs, (np.tile(at[:moving], 2), both)), shape=(moving, size)).tocsr()
        extra = {"A_ub": above, "b_ub": np.zeros(moving)} if moving else {}
        upper = np.full(size, np.inf)
    else:
        right[:num_types] -= face.full.sum(1)
        right[num_types:] -= program.occupancy @ face.full
        extra, upper = {}, np.concatenate([np.ones(moving), np.full(size - moving, np.inf)])
    row, column, value = (np.concatenate(x) for x in zip(*entries, strict=True))
    equations = scipy.sparse.coo_array((value, (row, column)), shape=(right.size, size)).tocsr()
    weights = np.zeros(size)
    weights[:moving] = _weights(program.scores.shape)[rows, cols]
    answer = run_highs(
        -weights, progress=progress, A_eq=equations, b_eq=right,
        bounds=np.stack([np.zeros(size), upper], axis=1), **extra,
    )  # fmt: skip
    w, whole = np.zeros(program.scores.shape), np.zeros(num_servers)
    w[rows, cols], whole[idle] = answer.x[:moving], answer.x[moving : moving + idle.size]
    return settle(program, face, w, whole)


def _dual_corner(prices: PriceFace, progress: Progress | None) -> tuple[np.ndarray, np.ndarray]:
    """One inequality for each pair of components and sign: the tightest."""
    program, face = prices.program, prices.face
    count, directions = len(prices.directions), scipy.sparse.csr_array(prices.directions)
    sign = np.where(face.full, 1.0, np.where(face.free, 0.0, -1.0))
    reduced = program.reduced(prices.price, prices.server_price)
    room = np.abs(reduced) / program.duration[:, None]
    pair = prices.of_type[:, None] * count + prices.of_server
    limits, turns = [], []
    for side in (1.0, -1.0):
        nearest = np.full(count * count, np.inf)
        np.minimum.at(nearest, pair[sign == side], room[sign == side])
        some = np.flatnonzero(np.isfinite(nearest))
        limits.append(nearest[some])
        turns.append(-side * (directions[some // count] - directions[some % count]))
    if not program.coupled:
        types, servers = ~face.spare, ~face.idle
        limits += [(prices.price / program.duration)[types], prices.server_price[servers]]
        turns += [directions[prices.of_type[types]], -directions[prices.of_server[servers]]]
    weights = -prices.directions[prices.of_type].T @ (program.duration * _weights(program.duration.shape))
    answer = run_highs(
        -weights, progress=progress, A_ub=scipy.sparse.vstack(turns), b_ub=np.concatenate(limits),
        bounds=np.tile([-np.inf, np.inf], (weights.size, 1)),
    )  # fmt: skip
    return prices.moved(answer.x)


def _weights(shape: tuple[int, ...]) -> np.ndarray:
    part = np.random.Generator(np.random.PCG64(_WEIGHTS_SEED)).uniform(1, 2, shape)
    return 1 + np.arange(part.size).reshape(shape) / part.size + _RANDOM_PART * part


def settled(program: Program, point: tuple[np.ndarray, ...], zero: float) -> tuple[np.ndarray, ...]:
    """A basic solution with its round-off removed: what is close to a bound is there, and the rest solves the equations.

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
        unpriced_server, unpriced_type = np.ones(idle.shape, dtype=bool), np.zeros(price.shape, dtype=bool)
    else:
        unpriced_server, unpriced_type = server_price * program.duration.mean() <= zero, price <= zero
    face = Face(free, (reduced > 0) & ~free, unpriced_server, unpriced_type)
    prices = PriceFace(program, face, price, server_price)
    if prices.consistent:
        price, server_price = prices.price, prices.server_price
        reduced = program.reduced(price, server_price)
    reduced = np.where(free, 0.0, reduced)

    full = face.full | (free & tight)
    spare = (program.demand - w.sum(1)) * unpriced_type
    basis = Face(free & ~full & ~empty, full, idle > zero, spare > zero)
    dependent = PriceFace(program, basis, price, server_price).dependent
    exact = primal_centre(program, basis, w, idle, spare, dependent)
    w, idle = settle(program, basis, w, idle) if exact is None else exact
    return w, idle, price, server_price, reduced
