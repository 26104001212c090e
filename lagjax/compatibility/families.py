"""Graph families: complete, random, regular, ring and blocks. Degrees are those of servers, in task types."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lagjax.compatibility.graph import Graph, check_size, generator, graph_of
from lagjax.errors import InputError

SWAPS = 10  # tries per edge to undo a double edge of a regular graph


def complete(servers: int, types: int, degree: float | None = None, seed: int = 0) -> Graph:
    """Every server can do every task; `degree` and `seed` are ignored."""
    check_size(servers, types)
    return graph_of("complete", [np.arange(servers)], servers, np.zeros(types, np.int32))


def random(servers: int, types: int, degree: float, seed: int = 0) -> Graph:
    """Every pair is compatible with probability degree / M, independently: c(N) / M in the paper.

    Raises:
      InputError: a degree outside (0, M], or a type that happens to have no server.
    """
    _check(servers, types, degree, types)
    rng = generator(seed)
    counts = rng.binomial(servers, degree / types, types)
    return graph_of("random", [rng.choice(servers, n, replace=False, shuffle=False) for n in counts], servers)


def regular(servers: int, types: int, degree: int, seed: int = 0) -> Graph:
    """A random graph in which every server can do `degree` types and every type has degree N / M servers.

    Stubs are paired at random and double edges removed by random swaps; degrees are exact, the law is close to uniform.

    Raises:
      InputError: degree is not a whole number in 1..M, or M does not divide degree N.
    """
    per_type = _whole(servers, types, degree)
    rng = generator(seed)
    if per_type == servers:
        return graph_of("regular", [np.arange(servers)], servers, np.zeros(types, np.int32))
    sparse = 2 * per_type <= servers  # else the complement is drawn, which has fewer edges
    few = per_type if sparse else servers - per_type
    table = _pair(rng, servers, types, few)
    if not sparse:
        table = [np.setdiff1d(np.arange(servers), absent) for absent in table]
    return graph_of("regular", list(table), servers)


def ring(servers: int, types: int, degree: int, seed: int = 0) -> Graph:
    """Type w has the degree N / M servers next to place w N / M on a circle: not proportionally sparse. `seed` is ignored."""
    per_type = _whole(servers, types, degree)
    first = np.arange(types) * servers // types
    return graph_of("ring", list((first[:, None] + np.arange(per_type)) % servers), servers)


def blocks(servers: int, types: int, degree: int, seed: int = 0) -> Graph:
    """Disjoint complete graphs of `degree` types each: not proportionally sparse. `seed` is ignored.

    Raises:
      InputError: degree does not divide M, or the blocks are no whole number of servers.
    """
    per_type = _whole(servers, types, degree)
    if types % degree or servers % per_type:
        raise InputError(f"graph 'blocks': degree {degree} does not divide {types} types into blocks; use a divisor")
    parts = np.arange(servers).reshape(-1, per_type)
    return graph_of("blocks", list(parts), servers, np.repeat(np.arange(len(parts)), int(degree)))


FAMILIES: dict[str, Callable[..., Graph]] = {
    "complete": complete, "random": random, "regular": regular, "ring": ring, "blocks": blocks,
}  # fmt: skip


def default_degree(family: str, servers: int, types: int) -> int:
    """Returns the task types per server that fit about ln(N)^2 servers to every type, or the next number that shares out evenly.

    That many, rather than N, are enough for the performance of the complete graph.
    """
    check_size(servers, types)
    wanted = min(servers, max(2, round(np.log(servers) ** 2)))
    for per_type in range(wanted, servers + 1):
        degree, rest = divmod(per_type * types, servers)
        if not rest and (family != "blocks" or (servers % per_type == 0 and types % degree == 0)):
            return degree
    return types


def _pair(rng, servers, types, per_type):
    """(M, per_type) table of servers, each as often as any other, rows without repeats."""
    table = rng.permutation(np.repeat(np.arange(servers), types * per_type // servers)).reshape(types, per_type)
    for _ in range(SWAPS * per_type + 100):
        table.sort(axis=1)
        rows, places = np.nonzero(table[:, 1:] == table[:, :-1])
        if not len(rows):
            return table
        for row, place in zip(rows, places + 1, strict=True):
            other, at = rng.integers(types), rng.integers(per_type)
            if table[row, place] not in table[other] and table[other, at] not in table[row]:
                table[row, place], table[other, at] = table[other, at], table[row, place]
    raise InputError(f"graph 'regular': no simple graph of degree {per_type} found; use another degree or seed")


def _check(servers, types, degree, most):
    check_size(servers, types)
    if degree is None:
        raise InputError("this graph needs a degree; give --degree")
    if not 0 < degree <= most:
        raise InputError(f"degree is {degree:g}; give the task types per server, above 0 and at most {most}")


def _whole(servers, types, degree):
    _check(servers, types, degree, types)
    if degree != int(degree) or int(degree) * servers % types:
        raise InputError(
            f"degree {degree:g} of {servers} servers does not share out evenly among {types} types; degree N / M is whole"
        )
    return int(degree) * servers // types
