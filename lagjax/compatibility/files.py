"""Graphs from files: an edge list with one `type,server` pair a line."""

from __future__ import annotations

import numpy as np

from lagjax.compatibility.graph import Graph, check_size, graph_of
from lagjax.errors import InputError
from lagjax.given import expanded, printable


def read_graph(path, servers: int | None = None, types: int | None = None) -> Graph:
    """Reads `type,server` lines, numbers from 0, separated by a comma, a tab or spaces; a header line and # comments are allowed.

    Args:
      servers, types: N and M; by default one more than the largest number in the file.

    Raises:
      InputError: no such file, a line that is no pair, a pair twice, a number out of range, or a type without a server.
    """
    path = expanded(path)
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give an edge list or one of the graph families") from None
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: not a readable text file ({error}); give lines of type,server") from None
    edges: dict[tuple[int, int], int] = {}
    for number, line in enumerate(text.splitlines(), 1):
        fields = line.split("#")[0].replace(",", " ").split()
        if not fields or (not edges and number == 1 and not any(field.lstrip("-").isdigit() for field in fields)):
            continue
        if len(fields) != 2 or not all(field.isascii() and field.isdigit() and len(field) < 10 for field in fields):
            raise InputError(f"{path}, line {number}: '{line.strip()}' is no pair of whole numbers; write type,server")
        pair = int(fields[0]), int(fields[1])
        if pair in edges:
            raise InputError(f"{path}, line {number}: pair {pair[0]},{pair[1]} is already on line {edges[pair]}")
        for what, value, least in (("type", pair[0], types), ("server", pair[1], servers)):
            if least is not None and value >= least:
                raise InputError(
                    f"{path}, line {number}: {what} {value} is not below {least}, as asked for; numbers start at 0"
                )
        edges[pair] = number
    if not edges:
        raise InputError(f"{path}: no edges; write one type,server pair a line")
    table = np.array(list(edges))
    types = int(table[:, 0].max()) + 1 if types is None else types
    servers = int(table[:, 1].max()) + 1 if servers is None else servers
    check_size(servers, types)
    table = table[np.argsort(table[:, 0], kind="stable")]
    cuts = np.searchsorted(table[:, 0], np.arange(1, types))
    return graph_of(printable("graph", path.stem), np.split(table[:, 1], cuts), servers)
