"""The compatibility graph: which servers can do tasks of which type, and whether they can carry the load."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import connected_components

from lagjax.engine.checks import whole_number
from lagjax.errors import InputError

MAX_SIZE = 2**16  # servers, and types: they are drawn by 16-bit multiplications
MIN_LOAD = 1e-6  # arrivals are drawn with a probability that is right to 2^-32
MAX_EDGES = 50_000_000  # of the distinct neighbourhoods


@dataclasses.dataclass(frozen=True, eq=False)
class Graph:
    """A bipartite graph of N servers and M task types; types with the same servers share one row.

    Attributes:
      name: for tables.
      neighbours: (K, c) int32 servers of each distinct neighbourhood in increasing order, padded with 0.
      size: (K,) int32 servers in each.
      row: (M,) int32 neighbourhood of each task type.
      num_servers: N.
    """

    name: str
    neighbours: np.ndarray
    size: np.ndarray
    row: np.ndarray
    num_servers: int

    @property
    def num_types(self) -> int:
        """M."""
        return len(self.row)

    @property
    def types_per_row(self) -> np.ndarray:
        """(K,) task types that share each neighbourhood."""
        return np.bincount(self.row, minlength=len(self.size))

    def biadjacency(self) -> csr_array:
        """Returns the (K, N) matrix of the distinct neighbourhoods, rows summing to 1: B of the certificate, rows merged."""
        filled = np.arange(self.neighbours.shape[1]) < self.size[:, None]
        start = np.r_[0, np.cumsum(self.size)]
        values = np.repeat(1 / self.size, self.size)
        return csr_array((values, self.neighbours[filled], start), shape=(len(self.size), self.num_servers))

    def random_routing_load(self, load: float) -> np.ndarray:
        """Returns (N,) loads of the servers if every task went to a random compatible one: lambda N / M sum_w 1 / |N_w|."""
        return load * self.num_servers / self.num_types * (self.biadjacency().T @ self.types_per_row)

    def pools(self, load: float) -> tuple[np.ndarray, np.ndarray]:
        """Returns servers and loads of the connected parts of the graph: how many servers share how much work at best."""
        edges = self.biadjacency()
        parts, of = connected_components(block_array([[None, edges], [edges.T, None]]), directed=False)
        types, servers = np.split(of, [len(self.size)])
        count = np.bincount(servers, minlength=parts)
        tasks = np.bincount(types, self.types_per_row, parts) * load * self.num_servers / self.num_types
        return count, tasks / count

    def server_degree(self) -> np.ndarray:
        """Returns (N,) task types that each server can do."""
        return ((self.biadjacency() > 0).T @ self.types_per_row).astype(np.int64)


def graph_of(name: str, neighbourhoods: Sequence[np.ndarray], num_servers: int, row=None) -> Graph:
    """Makes a graph of the servers of every type, or of every distinct neighbourhood if `row` says which type has which.

    Args:
      neighbourhoods: for each an array of different servers in 0, ..., N - 1, at least one.

    Raises:
      InputError: a type without a server, a server that does not exist or is listed twice, or too large a graph.
    """
    check_size(num_servers, len(neighbourhoods) if row is None else len(row))
    size = np.array([len(servers) for servers in neighbourhoods], dtype=np.int32)
    if (size == 0).any():
        raise InputError(
            f"graph '{name}': task type {int(np.argmin(size))} has no server; {_count(size == 0)}. Give every type a server "
            "(a larger degree, or --graph regular)"
        )
    if len(size) * int(size.max()) > MAX_EDGES:
        raise InputError(
            f"graph '{name}': {len(size)} types with up to {size.max()} servers are too many; use fewer edges"
        )
    neighbours = np.zeros((len(size), int(size.max())), dtype=np.int32)
    for place, servers in enumerate(neighbourhoods):
        servers = np.sort(np.asarray(servers))
        if servers[0] < 0 or servers[-1] >= num_servers:
            raise InputError(f"graph '{name}': task type {place} has a server outside 0 to {num_servers - 1}")
        if (servers[1:] == servers[:-1]).any():
            twice = servers[1:][servers[1:] == servers[:-1]][0]
            raise InputError(f"graph '{name}': task type {place} has server {twice} twice; name it once")
        neighbours[place, : len(servers)] = servers
    if row is None:
        distinct, row = np.unique(np.column_stack([size, neighbours]), axis=0, return_inverse=True)
        size, neighbours, row = distinct[:, 0], distinct[:, 1:], row.reshape(-1)
    return Graph(name, np.ascontiguousarray(neighbours), size.astype(np.int32), np.asarray(row, np.int32), num_servers)


def check_size(num_servers, num_types):
    """Raises InputError unless there are 1 to 2^16 of each."""
    whole_number("servers", num_servers, 1, MAX_SIZE)
    whole_number("types", num_types, 1, MAX_SIZE)


def generator(seed) -> np.random.Generator:
    """Returns NumPy's generator of a seed; raises InputError unless it is a whole number in [0, 2^64)."""
    whole_number("seed", seed, 0, 2**64 - 1)
    return np.random.default_rng(seed)


@dataclasses.dataclass(frozen=True)
class Margin:
    """Whether the servers carry the load.

    Attributes:
      margin: 1 less the largest load of a server under random routing, the slack of the paper's subcriticality condition;
        at most 0 if a server is overloaded.
      busiest: that server.
      overloaded, unused: how many servers have load 1 or more, and none, under random routing.
    """

    margin: float
    busiest: int
    overloaded: int
    unused: int


def subcriticality(graph: Graph, load: float) -> Margin:
    """Finds the busiest server under random routing at load lambda."""
    loads = graph.random_routing_load(load)
    busiest = int(np.argmax(loads))
    return Margin(float(1 - loads[busiest]), busiest, int((loads >= 1 - 1e-12).sum()), int((loads == 0).sum()))


def check_load(graph: Graph, load: float, allow_overloaded: bool = False) -> Margin:
    """Returns the margin.

    Raises:
      InputError: lambda is not in [MIN_LOAD, 1), or a server is overloaded under random routing and that was not allowed.
    """
    if not MIN_LOAD <= load < 1:
        raise InputError(f"load is {load:g}; give the arrival rate per server, from {MIN_LOAD:g} to below 1")
    margin = subcriticality(graph, load)
    if margin.overloaded and not allow_overloaded:
        raise InputError(
            f"graph '{graph.name}': server {margin.busiest} is overloaded under random routing (load {1 - margin.margin:.4g}, "
            f"{margin.overloaded} of {graph.num_servers} servers at 1 or more); use a load below "
            f"{load / (1 - margin.margin):.4g}, a more even graph (regular) or a larger degree, or allow it "
            "(--allow-overloaded) for policies that look at queues"
        )
    return margin


def _count(flags):
    return f"{int(flags.sum())} of {len(flags)} have none"
