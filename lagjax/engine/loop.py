"""The one host loop: chunks of blocks, windows of counts, progress, pause and resume, for every model."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from lagjax.engine.devices import Placement
from lagjax.engine.model import Run
from lagjax.engine.pause import Pause, Save
from lagjax.engine.program import program
from lagjax.errors import InputError


class Watched(NamedTuple):
    """What looks on while a loop runs; nothing here changes a result.

    Attributes:
      chunk: most blocks per call of the compiled program.
      progress: called after every chunk with the work done in it.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.
    """

    chunk: int
    progress: Callable[[int], object] | None = None
    resume: Pause | None = None
    save: Save | None = None


class Loop:
    """A run under way. `state` is on the devices, after block `now`.

    Args:
      run: what to run.
      placed: where its replicas live.
      watched: see there.
      end: block after which nothing follows, so that nothing is saved there, or None.

    Raises:
      InputError: `watched.resume` is not of such a run.
    """

    def __init__(self, run: Run, placed: Placement, watched: Watched, end: int | None = None):
        self._placed, self._watched, self._end = placed, watched, end
        self.state: Any = None
        self.keys = placed.by_replica(run.keys)
        self.now = 0
        self._emptied = 0  # block at which the counts on the devices were last zero
        self._total = run.total
        self._windows: list[tuple[int, object]] = []  # those behind, for a pause
        self._kept: list[tuple[int, object]] = []  # those that a pause brought along
        state, counts = run.state, run.counts
        if watched.resume is not None:
            run, state, counts = self._resumed(run, watched.resume)
        self._take(run, state)
        self._counts = placed.by_replica(counts)

    def to(self, last: int):
        """Goes on to block `last`. Returns what was counted since the window before, on the host."""
        if self._kept:
            window = self._kept.pop(0)
            if window[0] != last:
                raise InputError(_OTHER)
            self._windows.append(window)
            return window[1]
        while self.now < last:
            self._chunk(last)
        if self._emptied < self.now or self._total is None:
            self._empty(self.now)
        window, self._total = self._total, self._run.total
        if self._watched.save is not None:
            self._windows.append((last, window))
        return window

    def renew(self, keys) -> None:
        """Takes other keys for what follows."""
        self.keys = self._placed.by_replica(keys)

    def _chunk(self, last):
        watched, first = self._watched, self.now
        stop = min(first + watched.chunk, last, self._emptied + self._run.fits)
        while True:
            state, counts = self._advance(
                self.state, self._counts, np.uint32(first), np.uint32(stop), self._tables, self.keys
            )
            if self._run.wider is None:
                break
            wider = self._run.wider(self._run, jax.device_get(counts))
            if wider is None:
                break
            self._take(wider, jax.tree.map(lambda x, like: x.astype(like.dtype), self.state, wider.state))
        self.state, self._counts, self.now = state, counts, stop
        if stop - self._emptied >= self._run.fits:
            self._empty(stop)
        if watched.progress is not None:
            jax.block_until_ready(self.state)
            watched.progress(round((stop - first) * self._run.work))
        if watched.save is not None and stop != self._end:
            watched.save(stop * self._run.block, functools.partial(self._leaves, last))

    def _take(self, run, state):
        """The run and its state become the present ones."""
        self._run = run
        self._advance = program(run.model, self._placed, run.block, donate=run.wider is None)
        with jax.enable_x64(run.wide):
            self._tables = self._placed.everywhere(run.tables)
        self.state = self._placed.by_replica(state)

    def _empty(self, now):
        """Brings the counts to the host and sets them to zero."""
        counts = jax.device_get(self._counts)
        self._total = self._run.add(self._total, counts, self._emptied, now)
        self._counts, self._emptied = self._placed.by_replica(self._run.counts), now

    def _leaves(self, last):
        """What a pause keeps: a head, state, counts on the devices, then the total so far and all windows behind."""
        parts = [*((end, window) for end, window in self._windows)]
        if self._total is not None:
            parts.append((last, self._total))
        head = np.array([self._emptied, self._total is not None, *(end for end, _ in parts)], np.int64)
        device = jax.device_get(jax.tree.leaves((self.state, self._counts)))
        return [head, *map(np.asarray, device), *(np.array(x) for _, part in parts for x in jax.tree.leaves(part))]

    def _resumed(self, run, pause):
        """The run, its state and its counts as they were; the rest goes where it was."""
        while True:
            like, shape = jax.tree.flatten((run.state, run.counts))
            head, arrays = (pause.arrays[0], pause.arrays[1:]) if pause.arrays else (np.zeros(0), [])
            device = arrays[: len(like)]
            if [x.shape for x in device] != [x.shape for x in like] or pause.done % run.block or len(head) < 2:
                raise InputError(_OTHER)
            if [x.dtype for x in device] == [x.dtype for x in like]:
                break
            run = None if run.wider is None else run.wider(run, None)
            if run is None:
                raise InputError(_OTHER)
        each: Any = jax.tree.structure(run.counts if run.total is None else run.total)
        rest, ends = arrays[len(like) :], head[2:].tolist()
        if len(rest) != len(ends) * each.num_leaves:
            raise InputError(_OTHER)
        parts = [
            (
                end,
                jax.tree.unflatten(each, [np.array(x) for x in rest[i * each.num_leaves : (i + 1) * each.num_leaves]]),
            )
            for i, end in enumerate(ends)
        ]
        if head[1]:
            self._total = parts.pop()[1]
        self._kept = parts
        self.now, self._emptied = pause.done // run.block, int(head[0])
        return run, *jax.tree.unflatten(shape, device)


def standing(run: Run, now: int, state) -> Pause:
    """Where a run stands that has come to block `now` with this state, and of which nothing is counted from there on."""
    arrays = map(np.asarray, jax.tree.leaves((state, run.counts)))
    return Pause(now * run.block, [np.array([now, False], np.int64), *arrays])


_OTHER = "the run to resume was of another size or kind; start it anew"
