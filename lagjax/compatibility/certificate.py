"""Is a graph proportionally sparse? A bound from above by a singular value, and from below by sets of servers found."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import ArpackError, LinearOperator, eigsh

from lagjax.compatibility.graph import Graph
from lagjax.errors import InputError, SolverError

DENSE = (
    1500  # rows or servers up to which singular values come from a full decomposition, if both make at most 20 DENSE^2
)
STARTS = 3  # of the iteration for larger ones, until one ends well
MIN_EPSILON = 1e-9  # smallest epsilon: deviations of shares are rounded in the 16th digit
SWEEPS = 31  # sets tried along each singular vector
ROUNDS = 12  # of improvement of the best sets
VECTORS = 6


class Certificate(NamedTuple):
    """Bounds of sup over sets U of servers of the fraction of types w with | |N_w and U| / |N_w| - |U| / N | >= epsilon.

    Attributes:
      sigma: largest singular value of the row-normalised biadjacency B on vectors orthogonal to the all-ones vector.
      epsilon: the deviation that counts.
      at_most: min(1, sigma^2 N / (4 M epsilon^2)), which no U exceeds.
      at_least: what the best U found reaches.
      servers: (N,) bool, that U.
    """

    sigma: float
    epsilon: float
    at_most: float
    at_least: float
    servers: np.ndarray


def singular_value(graph: Graph) -> float:
    """Returns sigma, the largest singular value of B (I - 1 1^T / N), to about 1e-9.

    B maps the all-ones vector to itself whatever the graph, since its rows sum to 1; so for a set U with u = |U| / N the
    deviations are B (1_U - u 1), with 1_U - u 1 orthogonal to the all-ones vector: their squares sum to at most
    sigma^2 |U| (1 - u) <= sigma^2 N / 4, and each type that counts has epsilon^2 of that. B need not be doubly stochastic.
    """
    return float(_singular(graph)[0][0])


def check_epsilon(epsilon: float) -> None:
    """Raises InputError unless epsilon is a deviation that can be told from rounding."""
    if not MIN_EPSILON <= epsilon < 1:
        raise InputError(f"epsilon is {epsilon:g}; give a deviation from {MIN_EPSILON:g} to below 1")


def certify(graph: Graph, epsilon: float = 0.2) -> Certificate:
    """Bounds the worst fraction of badly connected types from both sides.

    The search cuts the leading singular vectors at many places, and improves the best sets: given the types that should see too
    much of U and those that should see too little, the best U of each size is a sort of the servers by their weight among them.

    Raises:
      InputError: epsilon is not in [MIN_EPSILON, 1).
      SolverError: the iteration for the singular values of a large graph failed from every start.
    """
    check_epsilon(epsilon)
    values, vectors = _singular(graph)
    weight = graph.types_per_row / graph.num_types
    matrix = graph.biadjacency()
    n = graph.num_servers
    sizes = np.unique(np.linspace(1, n - 1, min(n - 1, SWEEPS)).astype(int)) if n > 1 else np.zeros(0, int)
    best, nearest, chosen = 0.0, 0.0, np.zeros(n, bool)
    orders = [np.argsort(sign * vector, kind="stable") for vector in vectors.T for sign in (1, -1)]
    for _ in range(ROUNDS):
        found = []
        for order in orders:
            rank = np.empty(n, int)
            rank[order] = np.arange(n)
            for some in np.array_split(sizes, -(-len(sizes) * n // 2_000_000) or 1):
                inside = rank[:, None] < some
                off = matrix @ inside - some / n
                bad = weight @ (np.abs(off) >= epsilon - 1e-12)
                soft = weight @ np.minimum(np.abs(off), epsilon)  # how near the others are
                for place in range(len(some)):
                    found.append((bad[place], soft[place], inside[:, place], off[:, place]))
        found.sort(key=lambda entry: (entry[0], entry[1]), reverse=True)
        if not found or (found[0][0] <= best and found[0][1] <= nearest):
            break
        if found[0][0] > best:
            best, chosen = float(min(found[0][0], 1)), found[0][2].copy()
        nearest = found[0][1]
        orders = []
        for _, _, _, off in found[:VECTORS]:
            reach = np.sign(off) * np.minimum(np.abs(off), epsilon)
            for target in (reach, np.where(np.abs(off) >= epsilon / 2, np.sign(off), 0)):
                orders.append(np.argsort(-(matrix.T @ (graph.types_per_row * target)), kind="stable"))
    at_most = min(1.0, (values[0] / (2 * epsilon)) ** 2 * n / graph.num_types)
    return Certificate(float(values[0]), epsilon, float(at_most), best, chosen)


def _singular(graph):
    """Leading singular values of sqrt(multiplicity) B (I - 1 1^T / N), largest first, and right singular vectors as columns."""
    n = graph.num_servers
    matrix = graph.biadjacency() * np.sqrt(graph.types_per_row)[:, None]
    if min(matrix.shape) <= DENSE and matrix.shape[0] * n <= 20 * DENSE**2:
        dense = matrix.toarray()
        dense -= dense.mean(axis=1, keepdims=True)
        small = dense @ dense.T if dense.shape[0] < n else dense.T @ dense
        values, vectors = np.linalg.eigh(small)
        values, vectors = np.maximum(values[::-1][:VECTORS], 0), vectors[:, ::-1][:, :VECTORS]
        if dense.shape[0] < n:
            vectors = dense.T @ vectors
        return np.sqrt(values), vectors

    def apply(x):
        x = x - x.mean()
        y = matrix.T @ (matrix @ x)
        return y - y.mean()

    operator = LinearOperator((n, n), matvec=apply, dtype=float)
    for seed in range(STARTS):
        start = np.random.default_rng(seed).standard_normal(n)
        try:
            values, vectors = eigsh(operator, k=min(VECTORS, n - 1), which="LA", v0=start, tol=1e-10)
        except ArpackError as error:
            failure = error
        else:
            return np.sqrt(np.maximum(values[::-1], 0)), vectors[:, ::-1]
    raise SolverError(f"singular values of graph '{graph.name}' ({graph.num_types} types, {n} servers): {failure}")
