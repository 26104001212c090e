"""The replicas of one job, in pieces that fit: halved where memory runs out, kept on the way, joined over processes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import jax
import numpy as np

from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.runs.job import Watch, share
from lagjax.runs.memory import free_bytes, pieces
from lagjax.runs.record import Record

Arrays = dict[str, np.ndarray]
Simulate = Callable[[int, int, Pause | None, Save, Callable[[float], object]], Arrays]


class Batch(NamedTuple):
    """What a job simulates.

    Attributes:
      simulate: simulate(first, count, resume, save, progress) returns what is kept of `count` replicas from number `first` on,
        arrays by name whose last axis is the replicas. It goes on from `resume`, where that is given, calls save(done, fetch)
        between two chunks and progress(more) with the work done in each.
      replica_bytes: that one replica takes on the devices.
      replica_work: of one replica, in the unit of `progress`.
      added: names of arrays that have no axis of replicas and are summed instead.
      about: what is kept beside, such as policies that were searched for.
      stage: which run of its job this is, where there are several; how far another stage came is no start.
      dear: whether `about` took long to make and is kept at once.
    """

    simulate: Simulate
    replica_bytes: int
    replica_work: float
    added: Collection[str] = ()
    about: Record = Record({}, {})
    stage: Sequence[float] = ()
    dear: bool = False


def about_of(kept: Record | None) -> Record | None:
    """What a checkpoint of `batched` kept beside how far it came: `Batch.about`, and its stage as "stage" in the head."""
    if kept is None:
        return None
    return Record({**kept.head["about"], "stage": kept.head["stage"]}, _named(kept.arrays, "about "))


def stage_of(watch: Watch, first: Sequence[float]) -> list:
    """The stage that all processes of a job have come to; the first one where nothing is kept, or where they differ."""

    def mine():
        about = about_of(watch.checkpoint.load())
        return Record({"stage": list(first) if about is None else about.head["stage"]}, {})

    stages = [record.head["stage"] for record in watch.gather(mine)]
    return stages[0] if all(stage == stages[0] for stage in stages) else list(first)


def batched(watch: Watch, replicas: int, prepare: Callable[[Record | None], Batch]) -> Arrays:
    """Simulates this process's share of the replicas and brings the shares of all processes together.

    The result is the same however the replicas are cut, wherever the job was stopped and whatever it runs on.

    Args:
      watch: what the job was given.
      replicas: in all.
      prepare: makes the batch, from what `about_of` finds in the checkpoint, or from None.

    Raises:
      MemoryError: not even one replica found room.
    """
    added: Collection[str] = ()

    def own_share():
        nonlocal added
        kept = watch.checkpoint.load()
        batch = prepare(about_of(kept))
        added = batch.added
        first, last = share(replicas, watch.process, watch.processes)
        return Record({}, _simulated(batch, first, last, kept, watch))

    return _joined([record.arrays for record in watch.gather(own_share)], added)


class _Place(NamedTuple):
    """Where a share stands: the next piece, where it paused if it has begun, the work done in it, and what is behind."""

    start: int
    size: int = 0
    pause: Pause | None = None
    worked: float = 0
    done: Sequence[Arrays] = ()


def _simulated(batch, first, last, kept, watch) -> Arrays:
    devices = jax.local_devices()
    budget = free_bytes(devices) if watch.memory is None else watch.memory
    most = last - first if budget is None else max(1, budget // batch.replica_bytes)
    again = kept is not None and kept.head["stage"] == list(batch.stage)
    place = _Place(first) if not again else _stood(kept, first, last)
    if place.size > most:  # another machine's piece; what is behind it is as good here
        place = place._replace(size=0, pause=None, worked=0)
    done = list(place.done)

    def piece(start, count):
        nonlocal place
        resume = place if place.pause is not None and (place.start, place.size) == (start, count) else _Place(start)
        place = _Place(start)  # what did not fit once is not tried again
        worked = resume.worked

        def moved(more):
            nonlocal worked
            worked += more
            behind = (start - first) * batch.replica_work + min(worked, count * batch.replica_work)
            watch.progress(behind * watch.processes)

        def save(events, fetch):
            watch.checkpoint.save(
                lambda: _state(batch, first, last, _Place(start, count, Pause(events, fetch()), worked, done))
            )

        moved(0)
        try:
            part = batch.simulate(start, count, resume.pause, save, moved)
        except InputError:
            if resume.pause is None:
                raise
            worked = 0  # it was paused on another kind of device, or by another version
            part = batch.simulate(start, count, None, save, moved)
        done.append(part)
        watch.checkpoint.save(lambda: _state(batch, first, last, _Place(start + count, done=done)))

    if not again:
        watch.checkpoint.save(lambda: _state(batch, first, last, place), now=batch.dear and kept is None)
    for _ in pieces(place.start, last, most, piece, group=len(devices), opening=place.size):
        pass
    return _joined(done, batch.added)


def _state(batch, first, last, place) -> Record:
    """How far a share came, as a checkpoint has it."""
    leaves = [] if place.pause is None else place.pause.arrays
    head = {
        "about": batch.about.head, "stage": list(batch.stage), "share": [first, last], "at": [place.start, place.size],
        "events": None if place.pause is None else place.pause.done, "worked": place.worked, "leaves": len(leaves),
    }  # fmt: skip
    arrays = {f"about {name}": array for name, array in batch.about.arrays.items()}
    arrays |= {f"leaf {i}": leaf for i, leaf in enumerate(leaves)}
    return Record(head, arrays | {f"done {name}": array for name, array in _joined(place.done, batch.added).items()})


def _stood(kept, first, last) -> _Place:
    """What `_state` was given, where it was of this share."""
    head, arrays = kept
    if head["share"] != [first, last]:
        return _Place(first)
    done = _named(arrays, "done ")
    start, size = head["at"]
    leaves = [arrays[f"leaf {i}"] for i in range(head["leaves"])]
    pause = None if head["events"] is None else Pause(head["events"], leaves)
    return _Place(start, size, pause, head["worked"], [done] if done else [])


def _named(arrays, prefix):
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _joined(parts: Sequence[Arrays], added) -> Arrays:
    """The arrays of all replicas, from those of consecutive parts; a part without replicas has none."""
    parts = [part for part in parts if part]
    together = {name: [part[name] for part in parts] for name in (parts[0] if parts else ())}
    return {
        name: np.sum(some, axis=0) if name in added else np.concatenate(some, axis=-1)
        for name, some in together.items()
    }
