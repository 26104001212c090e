"""The csv of a solution: index.csv and shares.csv are tables of task types by servers, tasks.csv and servers.csv are lists."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from lagjax.prices.stored import Stored
from lagjax.runs.files import write_whole

TABLES = {"index.csv": "index", "shares.csv": "tie_weight"}  # file: array
TASKS = {"price": "task_price", "arrival rate": "arrival_rate", "mean duration": "mean_duration"}  # column: array
SERVERS = {"price": "server_price", "free fraction": "free_fraction"}
NAMES = (*TABLES, "tasks.csv", "servers.csv")


def write_text(folder: Path, page: Stored, arrays: dict[str, np.ndarray]) -> None:
    """Writes the four files; numbers are the shortest that read back to the same bits."""
    for name, key in TABLES.items():
        _write(folder / name, ["task", *page.servers], zip(page.tasks, arrays[key], strict=True))
    for name, ids, one, columns in (
        ("tasks.csv", page.tasks, "task", TASKS),
        ("servers.csv", page.servers, "server", SERVERS),
    ):
        lines = zip(*(arrays[key] for key in columns.values()), strict=True)
        _write(folder / name, [one, *columns], zip(ids, lines, strict=True))


def read_text(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, np.ndarray]]:
    """Returns task ids, server ids and the arrays of a folder.

    Raises:
      OSError: a file is missing or cannot be read.
      ValueError: a file is not as `write_text` makes them; the message names it, and the line.
    """
    arrays: dict[str, np.ndarray] = {}
    found: dict[str, tuple[str, ...]] = {}
    for name, one, columns in (("tasks.csv", "task", TASKS), ("servers.csv", "server", SERVERS)):
        found[one], header, table = _read(folder / name)
        if header != [one, *columns]:
            raise ValueError(f"{name} has the columns {', '.join(header)}; expected {', '.join([one, *columns])}")
        arrays |= {key: table[:, place] for place, key in enumerate(columns.values())}
    for name, key in TABLES.items():
        tasks, header, arrays[key] = _read(folder / name)
        if tasks != found["task"]:
            raise ValueError(f"{name} has other tasks than tasks.csv")
        if header != ["task", *found["server"]]:
            raise ValueError(f"{name} has other servers than servers.csv")
    return found["task"], found["server"], arrays


def _write(path: Path, header: list[str], lines: Iterable[tuple[str, Iterable[float]]]) -> None:
    def write(temporary):
        with open(temporary, "w", encoding="utf-8", newline="") as out:
            writer = csv.writer(out, lineterminator="\n")
            writer.writerow(header)
            writer.writerows([name, *map(repr, map(float, values))] for name, values in lines)

    write_whole(path, write)


def _read(path: Path) -> tuple[tuple[str, ...], list[str], np.ndarray]:
    """Names in the first column, the header, and the numbers in the others."""
    with path.open(encoding="utf-8", newline="") as text:
        lines = _lines(csv.reader(text, strict=True), path.name)
        _, header = next(lines, (0, []))
        names, rows = [], []
        for number, line in lines:
            if len(line) != len(header):
                raise ValueError(f"{path.name} line {number} has {len(line)} fields, not {len(header)}")
            names.append(line[0])
            try:
                rows.append(np.array(line[1:], dtype=np.float64))
            except ValueError:
                raise ValueError(f"{path.name} line {number} holds what is no number") from None
    if not rows:
        raise ValueError(f"{path.name} holds no lines")
    return tuple(names), header, np.stack(rows)


def _lines(reader, name) -> Iterator[tuple[int, list[str]]]:
    try:
        for line in reader:
            yield reader.line_num, line
    except (csv.Error, UnicodeDecodeError) as error:
        raise ValueError(f"{name} line {reader.line_num + 1}: {error}") from None
