"""The optimal prices that go with a partition: all of them, and their analytic centre.

Take types and servers as the nodes of a graph and the pairs of zero reduced value as its edges. Along an edge
price_v + E[D_v] q_r = s_vr, so in a connected component one number t moves everything: q_r by t and price_v by -E[D_v] t.
For KIID a component with a price that the face holds at zero does not move at all. For OCC-LP every server adds

    q_r = sum over full pairs of lambda_v (s_vr - price_v - E[D_v] q_r),

a linear equation in the t. Of the components that hold a server the largest |t| cannot exceed the largest of the others, types
with no pair of zero reduced value (the equations are diagonally dominant); so where there is no such type, prices are unique.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg
from scipy.sparse import coo_array
from scipy.sparse.csgraph import breadth_first_order, connected_components

from lagjax.lp.face import ACCEPTED, CONVERGED, MAX_STEPS, Face
from lagjax.lp.program import Program

_DEPENDENT = 1e-10  # relative singular value of equations that depend on others
_CONSISTENT = 1e-9  # what may be left of an equation that the partition says holds, relative to max s_vr


class PriceFace:
    """Prices with zero reduced value on the free pairs, and what else the partition says of them.

    Attributes:
      price: (V,), server_price: (R,): a point of the face, if `consistent`.
      consistent: whether the partition's equations have a solution.
      directions: (C, f) moves t of the components that stay on the face; the face has dimension f.
      of_type: (V,), of_server: (R,): each node's component.
    """

    def __init__(self, program: Program, face: Face, price: np.ndarray, server_price: np.ndarray) -> None:
        num_types, num_servers = program.scores.shape
        self.program, self.face = program, face
        fixed = np.zeros(num_types + num_servers, dtype=bool)
        if not program.coupled:
            fixed = np.concatenate([face.spare, face.idle])
        rows, cols = np.nonzero(face.free)
        graph = coo_array((np.ones(rows.size), (rows, num_types + cols)), shape=(fixed.size,) * 2).tocsr()
        count, component = connected_components(graph, directed=False)
        self.of_type, self.of_server = component[:num_types], component[num_types:]
        held = np.zeros(count, dtype=bool)
        held[component[fixed]] = True
        x = np.concatenate([price, server_price])
        x[fixed] = 0.0
        start = _first_of_each(component, ~fixed)
        self._spread(graph, start, x)
        if program.coupled:
            self._balance(x, count, component)
        else:
            self.directions = np.eye(count)[:, ~held]
        self.price, self.server_price = x[:num_types], x[num_types:]
        self.consistent = self._holds(fixed)

    def _spread(self, graph: scipy.sparse.csr_array, start: np.ndarray, x: np.ndarray) -> None:
        """Values of all nodes from the first one of each component, along a spanning tree."""
        num_types = len(self.program.rate)
        scores, duration = self.program.scores, self.program.duration
        rooted = graph.copy()
        rooted.resize((x.size + 1,) * 2)
        root = coo_array((np.ones(start.size), (np.full(start.size, x.size), start)), shape=rooted.shape)
        order, before = breadth_first_order(rooted + root.tocsr(), x.size, directed=False)
        for node in order[1 + start.size :]:
            parent = before[node]
            if node < num_types:
                x[node] = scores[node, parent - num_types] - duration[node] * x[parent]
            else:
                x[node] = (scores[parent, node - num_types] - x[parent]) / duration[parent]

    def _balance(self, x: np.ndarray, count: int, component: np.ndarray) -> None:
        """Moves the components so that every server's price is what its full pairs earn; finds the free moves."""
        program, full = self.program, self.face.full
        num_types, num_servers = program.scores.shape
        load = full * program.occupancy[:, None]
        grouped = np.zeros((num_servers, count))
        np.add.at(grouped.T, self.of_type, load)
        matrix = -grouped
        servers = np.arange(num_servers)
        matrix[servers, self.of_server] += 1 + load.sum(0)
        for _ in range(3):  # a linear equation, and two corrections of round-off
            gain = np.where(full, program.reduced(x[:num_types], x[num_types:]), 0.0)
            left = program.rate @ gain - x[num_types:]
            move, self.directions = _solve_free(matrix, left, self.of_server, count)
            x[:num_types] -= program.duration * move[self.of_type]
            x[num_types:] += move[self.of_server]

    def _holds(self, fixed: np.ndarray) -> bool:
        program, unit = self.program, self.program.duration.mean()
        reduced = program.reduced(self.price, self.server_price)
        left = [np.abs(reduced[self.face.free]).max(initial=0)]
        if program.coupled:
            gain = program.rate @ np.where(self.face.full, reduced, 0.0)
            left.append(np.abs(gain - self.server_price).max() * unit)
        else:
            left.append(np.abs(np.concatenate([self.price, self.server_price * unit])[fixed]).max(initial=0))
        return max(left) <= _CONSISTENT

    def moved(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(price, server_price) after the move `directions @ y`."""
        t = self.directions @ y
        return self.price - self.program.duration * t[self.of_type], self.server_price + t[self.of_server]

    def within(self, form: np.ndarray) -> np.ndarray:
        """directions.T @ form @ directions; of many unit vectors, the rows and columns that they name."""
        if self.program.coupled:
            return self.directions.T @ form @ self.directions
        kept = np.flatnonzero(self.directions.any(axis=1))
        return form[np.ix_(kept, kept)]

    @property
    def dependent(self) -> tuple[np.ndarray, np.ndarray]:
        """The dependences between the primal equations: moves of the prices, those of types times their rates."""
        of_types = -self.program.occupancy[:, None] * self.directions[self.of_type]
        return of_types, self.directions[self.of_server]

    def finish(self, price: np.ndarray, server_price: np.ndarray) -> tuple[np.ndarray, ...] | None:
        """(price, server_price, reduced) with exact zeros, or None where a reduced value has the wrong sign."""
        face, program = self.face, self.program
        if not program.coupled:
            price, server_price = np.where(face.spare, 0.0, price), np.where(face.idle, 0.0, server_price)
        reduced = np.where(face.free, 0.0, program.reduced(price, server_price))
        right = np.where(face.full, reduced > 0, np.where(face.free, True, reduced < 0)).all()
        return (price, server_price, reduced) if right else None


def dual_centre(prices: PriceFace) -> tuple[np.ndarray, ...] | None:
    """Returns (price, server_price, reduced), the face's analytic centre, or None when it has no interior.

    Newton's method on the sum of log |reduced| over the pairs that are not free and, when not coupled, of the logs of the
    prices that the face leaves positive. Its Hessian is the Laplacian of a weighted graph on the components.
    """
    program, face = prices.program, prices.face
    if not prices.consistent:
        return None
    count, freedom = prices.directions.shape
    if not freedom:
        return prices.finish(prices.price, prices.server_price)
    sign = np.where(face.full, 1.0, np.where(face.free, 0.0, -1.0))
    signed = sign * program.duration[:, None]
    strict = sign != 0
    priced_type = ~face.spare & (not program.coupled)
    priced_server = ~face.idle & (not program.coupled)
    pair = (prices.of_type[:, None] * count + prices.of_server)[strict]
    y, change = np.zeros(freedom), np.inf
    for _ in range(MAX_STEPS):
        price, server_price = prices.moved(y)
        slack = np.where(strict, sign * program.reduced(price, server_price), 1.0)
        some_price, some_server = np.where(priced_type, price, 1.0), np.where(priced_server, server_price, 1.0)
        if min(slack.min(), some_price.min(), some_server.min()) <= 0:
            return None
        pull = signed / slack
        by_type = priced_type * -program.duration / some_price
        by_server = priced_server / some_server
        gradient = np.bincount(prices.of_type, pull.sum(1) + by_type, count)
        gradient += np.bincount(prices.of_server, by_server - pull.sum(0), count)
        between = np.bincount(pair, np.square(pull[strict]), count * count).reshape(count, count)
        between = between + between.T
        own = between.sum(1) + np.bincount(prices.of_type, by_type**2, count)
        hessian = np.diag(own + np.bincount(prices.of_server, by_server**2, count)) - between
        step = _solve(prices.within(hessian), prices.directions.T @ gradient)
        t = prices.directions @ step
        ratios = pull * (t[prices.of_type][:, None] - t[prices.of_server])
        drops = np.concatenate([ratios.ravel(), by_type * t[prices.of_type], by_server * t[prices.of_server]])
        y = y + min(1.0, 0.9 / max(1e-300, -drops.min())) * step
        before, change = change, np.abs(drops).max()
        if change < CONVERGED or before < min(change, ACCEPTED):
            break
    return prices.finish(*prices.moved(y)) if change <= ACCEPTED else None


def _first_of_each(component: np.ndarray, movable: np.ndarray) -> np.ndarray:
    """One node of every component, one that is not movable where there is one."""
    order = np.argsort(movable, kind="stable")
    return order[np.unique(component[order], return_index=True)[1]]


def _solve_free(
    matrix: np.ndarray, left: np.ndarray, of_server: np.ndarray, count: int
) -> tuple[np.ndarray, np.ndarray]:
    """A small solution of matrix @ t = left, and a basis of the solutions of matrix @ t = 0.

    Components with servers follow the others through a diagonally dominant system; what is left is small.
    """
    with_server, first = np.unique(of_server, return_index=True)
    others = np.setdiff1d(np.arange(count), with_server)
    rest = np.setdiff1d(np.arange(len(of_server)), first)
    square = scipy.linalg.lu_factor(matrix[np.ix_(first, with_server)], check_finite=False)
    follow = -scipy.linalg.lu_solve(square, matrix[np.ix_(first, others)], check_finite=False)
    direct = scipy.linalg.lu_solve(square, left[first], check_finite=False)
    move, directions = np.zeros(count), np.zeros((count, 0))
    move[with_server] = direct
    if others.size:
        unit = np.linalg.norm(matrix[:, others], axis=0)  # a rare type pulls little
        unit[unit == 0] = 1.0
        follow = follow / unit
        remaining = matrix[np.ix_(rest, others)] / unit + matrix[np.ix_(rest, with_server)] @ follow
        basis = np.eye(others.size)
        if rest.size:
            u, values, basis = np.linalg.svd(remaining, full_matrices=True)
            kept = int((values > _DEPENDENT * max(1.0, values[0])).sum())
            error = left[rest] - matrix[np.ix_(rest, with_server)] @ direct
            free = basis[:kept].T @ ((u[:, :kept].T @ error) / values[:kept])
            basis = basis[kept:]
            move[others] = free / unit
            move[with_server] += follow @ free
        directions = np.zeros((count, len(basis)))
        directions[others] = basis.T / unit[:, None]
        directions[with_server] = follow @ basis.T
    return move, directions


def _solve(matrix: np.ndarray, rhs: np.ndarray) -> np.ndarray:
    """Solves a positive definite system, scaled to a unit diagonal."""
    weight = 1 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
    scaled = weight[:, None] * matrix * weight
    scaled[np.diag_indices_from(scaled)] += 1e-14
    factor = scipy.linalg.cho_factor(scaled, lower=True, overwrite_a=True, check_finite=False)
    return weight * scipy.linalg.cho_solve(factor, weight * rhs, check_finite=False)
