"""Graphs from files: an edge list with one `type,server` pair a line."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator

import numpy as np

from lagjax.compatibility.graph import Graph, check_size, graph_of
from lagjax.errors import InputError
from lagjax.given import expanded, printable
from lagjax.text import Reading, read_delimited, shown

_COLUMNS = ("type", "server")
_READINGS = tuple(map(Reading, (",", ";", "\t", " ")))


def read_graph(
    path, servers: int | None = None, types: int | None = None, *, note: Callable[[str], None] | None = None
) -> Graph:
    """Reads `type,server` lines, numbers from 0.

    Commas, semicolons, tabs or blanks separate the two, the same on every line; # and what follows is a
    comment. A first line `type,server` or `server,type` is a header. Nothing else is left out.

    Args:
      servers, types: N and M; by default one more than the largest number in the file.
      note: called with a line that says how the file was read, if not the plainest way.

    Raises:
      InputError: no such file, a line that is no pair, a pair twice, a number out of range, or a type without a server.
    """
    path = expanded(path)
    parse = functools.partial(_parse, path, servers, types)
    edges, notes = read_delimited(path, parse, _READINGS, width=2, trailing_comments=True)
    if note is not None:
        for line in notes:
            note(line)
    if not edges:
        raise InputError(f"{path}: no edges; write one type,server pair a line")
    table = np.array(list(edges))
    types = int(table[:, 0].max()) + 1 if types is None else types
    servers = int(table[:, 1].max()) + 1 if servers is None else servers
    check_size(servers, types)
    table = table[np.argsort(table[:, 0], kind="stable")]
    cuts = np.searchsorted(table[:, 0], np.arange(1, types))
    return graph_of(printable("graph", path.stem), np.split(table[:, 1], cuts), servers)


def _parse(path, servers, types, rows: Iterator[tuple[int, list[str]]], reading: Reading):
    """Returns {(type, server): line}."""
    first = next(rows, None)
    if first is None:
        return {}
    names = [field.strip().lower() for field in first[1]]
    header = sorted(names) == sorted(_COLUMNS)
    turned = header and names[0] == "server"
    edges: dict[tuple[int, int], int] = {}
    for line, row in rows if header else itertools.chain([first], rows):
        fields = [field.strip() for field in row]
        if len(fields) != 2 or not all(field.isascii() and field.isdigit() and len(field) < 10 for field in fields):
            what = (
                "no pair of whole numbers"
                if line != first[0]
                else "neither a pair of whole numbers nor the header type,server"
            )
            raise InputError(f"{path}, line {line}: {shown(reading.delimiter.join(row))} is {what}; write type,server")
        numbers = int(fields[0]), int(fields[1])
        pair = numbers[::-1] if turned else numbers
        if pair in edges:
            raise InputError(f"{path}, line {line}: pair {pair[0]},{pair[1]} is already on line {edges[pair]}")
        for what, value, least in (("type", pair[0], types), ("server", pair[1], servers)):
            if least is not None and value >= least:
                raise InputError(
                    f"{path}, line {line}: {what} {value} is not below {least}, as asked for; numbers start at 0"
                )
        edges[pair] = line
    return edges
