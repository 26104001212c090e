"""Servers in blocks of columns that fit in a cache, spread over threads and devices.

One block is one call of a compiled function, so all passes of its roots find its scores in the cache, and memory is
read once for one evaluation. A thread a core calls them: XLA's own threads do not help loops this small. The partition
depends on the number of types alone, and results are put together on the host in the order of the blocks: they are the
same bits for any number of threads and devices of one kind.
"""

from __future__ import annotations

import concurrent.futures
import os
from collections.abc import Callable, Iterator
from typing import Any, Self

import jax
import numpy as np

from lagjax.lp.arm_root import PADDED, Types, bend_block, recover_block, share_block, smooth_block

BLOCK_BYTES = 2**22
_SERIAL_PAIRS = 2**18  # below this a thread costs more than it saves


class ServerBlocks:
    """Scores of one program, scaled, in blocks on the devices; a context manager that owns its threads.

    Attributes:
      scale: a power of two, so that scores / scale, at most 1, are exact.
      evaluations: calls of `smooth` and `recover` so far.
      steps: Newton steps so far, a mean over the servers.
    """

    def __init__(
        self, scores: np.ndarray, rate: np.ndarray, duration: np.ndarray, *, pause: Callable[[], None] | None = None
    ) -> None:
        """Copies the scores to the devices.

        Args:
          scores: (V, R) float32 or float64, kept in their own precision.
          rate: (V,) lambda_v.
          duration: (V,) E[D_v].
          pause: called on the calling thread between blocks, a few times a second at least; may raise to stop.
        """
        self.shape = num_types, num_servers = scores.shape
        self.scale = float(2.0 ** np.ceil(np.log2(float(scores.max()) or 1.0)))
        self.rate, self.duration = self._types(rate), self._types(duration)
        self.evaluations, self.steps = 0, 0.0
        columns = max(1, BLOCK_BYTES // (scores.itemsize * num_types * PADDED)) * PADDED
        self.columns = min(columns, -(-num_servers // PADDED) * PADDED)
        self._pause = pause or (lambda: None)
        devices = jax.local_devices()
        self._scores, self._live = [], []
        with jax.enable_x64(True):
            for i, first in enumerate(range(0, num_servers, self.columns)):
                part = scores[:, first : first + self.columns]
                block = np.zeros((len(self.rate), self.columns), scores.dtype)
                np.divide(part, scores.dtype.type(self.scale), out=block[:num_types, : part.shape[1]])
                device = devices[i % len(devices)]
                self._scores.append(jax.device_put(block, device))
                self._live.append(jax.device_put((np.arange(self.columns) < part.shape[1]) * 1.0, device))
        self.worth = np.zeros((len(self._scores), self.columns))  # where the next roots start
        threads = 1 if scores.size < _SERIAL_PAIRS else max(_cores(), len(devices))
        self._pool = concurrent.futures.ThreadPoolExecutor(threads) if threads > 1 and len(self._scores) > 1 else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._pool:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def smooth(
        self, price: np.ndarray, width: float, tolerance: float, dtype: np.dtype
    ) -> tuple[float, np.ndarray, np.ndarray]:
        """(sum of worths, (V,) served, (V,) bend) at these scaled prices; see `smooth_block`."""
        total, rows = 0.0, np.zeros((2, len(self.rate)))
        found = self._map(smooth_block, price, [self.worth], width, tolerance, dtype=dtype)
        for i, (worth, served, bend, steps) in enumerate(found):
            self.worth[i] = worth
            total += float((worth * self._live_here(i)).sum())
            rows += served, bend
            self.steps += float(steps) / len(self._scores)
        self.evaluations += 1
        return total, *rows[:, : self.shape[0]]

    def recover(self, price: np.ndarray, width: float, tolerance: float) -> tuple[np.ndarray, ...]:
        """(worth (blocks, C), smooth worth, (V,) served, (V,) reward); see `recover_block`."""
        exact, rows = np.zeros_like(self.worth), np.zeros((2, len(self.rate)))
        for i, block in enumerate(self._map(recover_block, price, [self.worth], width, tolerance)):
            exact[i], self.worth[i] = block.worth, block.smooth_worth
            rows += block.served, block.reward
        self.evaluations += 1
        return exact, self.worth.copy(), *rows[:, : self.shape[0]]

    def curvature(self, price: np.ndarray, width: float) -> np.ndarray:
        """(V, V) second derivatives of the sum of worths at the point of the last `smooth`; see `bend_block`."""
        size = self.shape[0]
        return sum(self._map(bend_block, price, [self.worth], width))[:size, :size]

    def shares(
        self, price: np.ndarray, worth: np.ndarray, smooth_worth: np.ndarray, width: float, keep: np.ndarray,
        extra: np.ndarray, zero: np.ndarray,
    ) -> tuple[np.ndarray, np.ndarray, int]:  # fmt: skip
        """(w (V, R), free fraction (R,), undecided pairs); see `share_block`."""
        num_types, num_servers = self.shape
        of_types = [self._types(x) for x in (keep, extra, zero)]
        w, free, near = np.empty(self.shape), np.empty(num_servers), 0
        found = self._map(share_block, price, [worth, smooth_worth], width, *of_types)
        for i, (share, idle, count) in enumerate(found):
            here = slice(i * self.columns, min((i + 1) * self.columns, num_servers))
            used = here.stop - here.start
            w[:, here], free[here] = share[:num_types, :used], idle[:used]
            near += int(count)
        return w, free, near

    def by_server(self, blocks: np.ndarray) -> np.ndarray:
        """(R,) of (blocks, C)."""
        return blocks.ravel()[: self.shape[1]].copy()

    def total_scores(self) -> np.ndarray:
        """(V,) sum of the scaled scores over servers."""
        return sum(np.asarray(s, dtype=np.float64).sum(1) for s in self._scores)[: self.shape[0]]

    def _types(self, values: np.ndarray) -> Any:  # NumPy's, which a compiled function takes as its own
        """(V,) float64, padded with zeros."""
        length = -(-self.shape[0] // PADDED) * PADDED
        return np.pad(np.asarray(values, np.float64), (0, length - self.shape[0]))

    def _live_here(self, i: int) -> np.ndarray:
        return np.arange(i * self.columns, (i + 1) * self.columns) < self.shape[1]

    def _map(self, kernel: Callable, price: np.ndarray, rows: list[np.ndarray], *rest: Any, **static: Any) -> Iterator:
        """What a kernel makes of every block, in order, as NumPy arrays; of `rows` (blocks, C) each block gets its own."""
        types = Types(self._types(price), self.rate, self.duration)

        def call(i: int) -> Any:
            with jax.enable_x64(True):  # a setting of the thread
                own = (row[i] for row in rows)
                return jax.tree.map(np.asarray, kernel(self._scores[i], types, self._live[i], *own, *rest, **static))

        indices = range(len(self._scores))
        for result in self._pool.map(call, indices) if self._pool else map(call, indices):
            self._pause()
            yield result


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
