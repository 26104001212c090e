"""The folder of a run: what it computes (the manifest), one file per finished job, how far unfinished ones came, a log."""

from __future__ import annotations

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from lagjax.errors import InputError
from lagjax.runs.files import clear_leftovers, write_bytes
from lagjax.runs.job import Job
from lagjax.runs.lock import only_driver
from lagjax.runs.record import Damaged, Record, digest, pack, unpack

INSIDE = "run"  # the part of the user's folder that belongs to the run
MANIFEST = "manifest.json"
LEAST_PAUSE = 10.0  # seconds between two checkpoints of a job
MOST_COST = 0.01  # share of the time that checkpoints may take


class Folder(NamedTuple):
    """A folder that this process drives.

    Attributes:
      path: the part that belongs to the run.
      run: hash of the configuration; every file of the run carries it.
    """

    path: Path
    run: str

    def finished(self, job: Job) -> Path:
        """The file of a finished job."""
        return self.path / "cells" / f"{file_name(job.name)}.cell"

    def checkpoint(self, job: Job, process: int = 0, processes: int = 1) -> FileCheckpoint:
        """Where a share of an unfinished job keeps how far it came."""
        part = "" if processes == 1 else f".{process}-of-{processes}"
        name = f"{file_name(job.name)}{part}.checkpoint"
        return FileCheckpoint(self.path / "checkpoints" / name, [self.run, job.name])

    def keep(self, job: Job, result: Record) -> None:
        """Writes a finished job, then forgets its checkpoints."""
        write_bytes(self.finished(job), sealed(result, [self.run, job.name]))
        for path in (self.path / "checkpoints").glob(f"{file_name(job.name)}.*"):
            with suppress(OSError):
                path.unlink()

    def read(self, job: Job, warn: Callable[[str], object]) -> Record | None:
        """Reads a finished job; a damaged file is reported and counts as absent."""
        return opened(self.finished(job), [self.run, job.name], warn)


@contextmanager
def open_folder(
    out: Path, configuration: dict, *, command: Sequence[str] = (), fresh: bool = False, warn: Callable[[str], object]
) -> Iterator[Folder]:
    """Locks a folder for this run and brings its manifest up to date.

    Args:
      out: the user's folder, made if need be.
      configuration: all that determines the results, readable; plain values.
      command: how the user started it, kept for readers.
      fresh: forgets whatever the folder holds of an earlier run.
      warn: called with a line for everything that was found damaged.

    Raises:
      InputError: another process writes there, it holds another configuration, or it cannot be written.
    """
    path = out / INSIDE
    configuration = json.loads(json.dumps(configuration))
    with only_driver(path / "lock"):
        try:
            if fresh:
                for old in ("cells", "checkpoints"):
                    shutil.rmtree(path / old, ignore_errors=True)
                (path / MANIFEST).unlink(missing_ok=True)
            for part in (out, path, path / "cells", path / "checkpoints"):
                part.mkdir(exist_ok=True)
                clear_leftovers(part)
        except OSError as error:
            raise InputError(
                f"{path}: cannot be written ({error.strerror}); choose a writable folder with --out"
            ) from None
        run = _enter(path, out, configuration, command, warn)
        yield Folder(path, run)


def _enter(path, out, configuration, command, warn):
    run = digest(configuration)
    try:
        manifest = read_manifest(out)
    except Damaged as error:
        warn(
            f"{path / MANIFEST} is damaged ({error}): written again; cells are kept where their own checksum says whose they are"
        )
        manifest = None
    if manifest is not None and manifest["hash"] != run:
        raise InputError(
            f"{out} holds another run: {'; '.join(differences(manifest['configuration'], configuration))}. Name another folder "
            "with --out, or replace what it holds with --fresh"
        )
    if manifest is None:
        page = {"hash": run, "command": list(command), "configuration": configuration}
        text = json.dumps(page, indent=1, ensure_ascii=False) + "\n"
        write_bytes(
            path / MANIFEST, text.encode(errors="backslashreplace")
        )  # JSON's escapes, for bytes that are no text
    return run


def read_manifest(out: Path) -> dict | None:
    """Returns the manifest of a folder, or None where there is none.

    Raises:
      Damaged: it is unreadable, or its configuration does not have its hash.
    """
    try:
        page = json.loads((Path(out) / INSIDE / MANIFEST).read_text(encoding="utf-8"))
        whole = page["hash"] == digest(page["configuration"])
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise Damaged(type(error).__name__) from None
    if not whole:
        raise Damaged("its hash does not fit")
    return page


def differences(there: object, here: object, at: str = "", most: int = 3) -> list[str]:
    """Says in words where two configurations differ; the first few places."""
    if isinstance(there, dict) and isinstance(here, dict):
        found = []
        for key in dict.fromkeys([*there, *here]):
            name = f"{at}.{key}" if at else str(key)
            found += differences(there.get(key, "absent"), here.get(key, "absent"), name, most + 1)
        return [*found[:most], "and more"] if len(found) > most else found
    return [] if there == here else [f"{at} is {_short(there)} there and {_short(here)} here"]


def _short(value):
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 90 else text[:60] + "..." + text[-25:]


def file_name(name: str) -> str:
    """A job's name as a file name: readable, and different for different jobs."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-._=") else "_" for c in name)[:80]
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def sealed(result: Record, owner: list[str]) -> bytes:
    """A record with the run and the job that it belongs to."""
    return pack(Record({"owner": owner, "head": result.head}, result.arrays))


def opened(path: Path, owner: list[str], warn: Callable[[str], object]) -> Record | None:
    """Reads what `sealed` made; None where it is absent, damaged or another's."""
    try:
        found = unpack(path.read_bytes())
    except FileNotFoundError:
        return None
    except (Damaged, OSError) as error:
        warn(f"{path} is damaged ({error}): its job runs again")
        return None
    if found.head["owner"] != owner:
        warn(f"{path} belongs to another run: its job runs again")
        return None
    return Record(found.head["head"], found.arrays)


class FileCheckpoint:
    """Keeps how far an unfinished job came in a file, seldom enough to cost little; see `lagjax.runs.job.Checkpoint`."""

    def __init__(self, path: Path, owner: list[str]):
        self._path, self._owner = path, owner
        self._next = time.monotonic() + LEAST_PAUSE

    def load(self) -> Record | None:
        """What was kept last; a damaged file counts as none."""
        return opened(self._path, self._owner, lambda line: None)

    def save(self, make: Callable[[], Record], now: bool = False) -> None:
        """Keeps `make()` at once, or if it is time; a disk that is full costs the checkpoint, not the run."""
        begun = time.monotonic()
        if not now and begun < self._next:
            return
        with suppress(InputError):
            write_bytes(self._path, sealed(make(), self._owner))
        ended = time.monotonic()
        self._next = ended + max(LEAST_PAUSE, (ended - begun) / MOST_COST)


def find_folder(path: Path, run: str) -> Folder | None:
    """The folder of a run as another process of the same run sees it, or None where it does not."""
    with suppress(Damaged):
        manifest = read_manifest(path.parent)
        if manifest is not None and manifest["hash"] == run:
            return Folder(path, run)
    return None
