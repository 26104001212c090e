"""Writes a solution as csv and npz, and reads either back.

Of the csv, index.csv and shares.csv are tables of task types by servers, tasks.csv and servers.csv are lists.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator
from importlib.metadata import version
from pathlib import Path

import numpy as np

from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.instance import Instance
from lagjax.lp import OccSolution
from lagjax.policies import Policy
from lagjax.prices.stored import Stored, arrays_of, assembled, checksum, facts_of, stored
from lagjax.runs.files import clear_leftovers, write_bytes, write_whole

TABLES = {"index.csv": "index", "shares.csv": "tie_weight"}  # file: array
TASKS = {"price": "task_price", "arrival rate": "arrival_rate", "mean duration": "mean_duration"}  # column: array
SERVERS = {"price": "server_price", "free fraction": "free_fraction"}
NAMES = (*TABLES, "tasks.csv", "servers.csv")
FORMAT = 1  # of the files; a later one may hold what this one cannot read
NPZ, ABOUT = "solution.npz", "about.json"
FILES = (*NAMES, ABOUT, NPZ)
_AGAIN = "write it again with lagjax solve --out"


def save_solution(folder: str | Path, instance: Instance, solution: OccSolution) -> None:
    """Writes the files of `FILES`, each whole or not at all.

    Ids are the instance's own. about.json and solution.npz carry a checksum of all that is in the csv, so that a folder in which
    files of two solutions have mixed is never read.

    Args:
      folder: made if need be; files of these names are replaced.
      instance: that was solved.
      solution: of OCC-LP(B) on it.

    Raises:
      InputError: a file cannot be written, or the solution is of another shape.
    """
    folder, page = expanded(folder), stored(instance, solution)
    if solution.index.shape != instance.scores.shape:
        raise InputError(
            f"solution has an index of shape {solution.index.shape}; the instance has {instance.scores.shape}"
        )
    arrays = arrays_of(page)
    head = {"format": FORMAT, "lagjax": version("lagjax"), "checksum": checksum(page), **facts_of(page)}
    _write_text(folder, page, arrays)
    write_bytes(folder / ABOUT, (json.dumps(head, indent=1, ensure_ascii=False) + "\n").encode())
    held: dict = {"about": json.dumps(head), "tasks": np.array(page.tasks), "servers": np.array(page.servers), **arrays}
    write_whole(folder / NPZ, lambda temporary: np.savez(temporary, **held))
    clear_leftovers(folder)


def read_solution(path: str | Path) -> Stored:
    """Reads a solution that `save_solution` wrote.

    Args:
      path: the folder, whose csv and about.json are read, or a solution.npz, which stands alone.

    Raises:
      InputError: there is none, it was damaged or altered, it is something else, or a later version wrote it.
    """
    path = expanded(path)
    try:
        head, *content = _read_folder(path) if path.is_dir() else _read_npz(path)
        if head["format"] > FORMAT:
            raise InputError(
                f"{path}: written by lagjax {head['lagjax']}, in a later format ({head['format']}) than this version reads; "
                "use that version"
            )
        page = assembled(head, *content)
        whole = checksum(page) == head["checksum"]
    except FileNotFoundError as error:
        raise InputError(
            f"{error.filename}: no such file; give a folder that lagjax solve --out wrote, or its {NPZ}"
        ) from None
    except InputError:
        raise
    except Exception as error:  # what the readers of zip, npy and json raise on damaged bytes is not to be listed
        said = f"{error.args[0]} is missing" if isinstance(error, KeyError) else error
        raise InputError(f"{path}: no solution that can be read ({said}); {_AGAIN}") from None
    if not whole:
        raise InputError(f"{path}: damaged or altered since it was written (the checksum does not fit); {_AGAIN}")
    return page


def load_policy(path: str | Path) -> Policy:
    """LAG from files: the same policy, bit for bit, as from the solution that was saved.

    Raises:
      InputError: see `read_solution`.
    """
    return read_solution(path).policy()


def _read_folder(folder):
    head = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
    return head, *_read_text(folder)


def _read_npz(path):
    with path.open("rb") as file:
        held = np.load(file, allow_pickle=False)
        if not isinstance(held, np.lib.npyio.NpzFile):
            raise ValueError("it is no npz")
        arrays = {key: held[key] for key in held.files}
    tasks, servers = (tuple(map(str, arrays.pop(key))) for key in ("tasks", "servers"))
    return json.loads(str(arrays.pop("about"))), tasks, servers, arrays


def _write_text(folder: Path, page: Stored, arrays: dict[str, np.ndarray]) -> None:
    """Writes the four files; numbers are the shortest that read back to the same bits."""
    for name, key in TABLES.items():
        _write(folder / name, ["task", *page.servers], zip(page.tasks, arrays[key], strict=True))
    for name, ids, one, columns in (
        ("tasks.csv", page.tasks, "task", TASKS),
        ("servers.csv", page.servers, "server", SERVERS),
    ):
        lines = zip(*(arrays[key] for key in columns.values()), strict=True)
        _write(folder / name, [one, *columns], zip(ids, lines, strict=True))


def _read_text(folder: Path) -> tuple[tuple[str, ...], tuple[str, ...], dict[str, np.ndarray]]:
    """Returns task ids, server ids and the arrays of a folder.

    Raises:
      OSError: a file is missing or cannot be read.
      ValueError: a file is not as `_write_text` makes them; the message names it, and the line.
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
