"""The competitor: a compiled scalar simulator of JSQ(d) on a graph, the same uniformised chain (one replica, one core, Numba).

xoshiro256++ (Blackman and Vigna), two 32-bit draws a word, ranges by multiplication. The time integral of every level is exact
and costs one addition an event: a queue that reaches level i at event t adds what is left of the run to that level's sum.
"""

from __future__ import annotations

import numpy as np
from numba import njit

_LOW, _S32 = np.uint64(0xFFFFFFFF), np.uint64(32)
_ONE, _S17, _S23, _S41, _S45, _S19 = (np.uint64(s) for s in (1, 17, 23, 41, 45, 19))


@njit(inline="always")
def _next(s0, s1, s2, s3):
    out = (((s0 + s3) << _S23) | ((s0 + s3) >> _S41)) + s0
    t = s1 << _S17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= t
    return out, s0, s1, s2, (s3 << _S45) | (s3 >> _S19)


@njit
def play_two(events, queue, neighbours, size, row, arrival, rng, sums):
    """JSQ(2): `events` events of the chain; sums[i] gains what is left whenever a queue reaches i, and loses it after."""
    s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
    servers, types = np.uint64(queue.shape[0]), np.uint64(row.shape[0])
    for t in range(events):
        word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        low = word & _LOW
        if (word >> _S32) < arrival:
            k = row[(low * types) >> _S32]
            n = np.uint64(size[k])
            word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
            i = ((word >> _S32) * n) >> _S32
            first = neighbours[k, i]
            if n > _ONE:
                j = ((word & _LOW) * (n - _ONE)) >> _S32
                j += np.uint64(j >= i)
                second = neighbours[k, j]
                if queue[second] < queue[first]:
                    first = second
            level = queue[first] + 1
            queue[first] = level
            sums[level] += events - t
        else:
            server = (low * servers) >> _S32
            level = queue[server]
            if level > 0:
                sums[level] -= events - t
                queue[server] = level - 1
    rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3


class Scalar:
    """One replica of JSQ(2), from empty."""

    def __init__(self, graph, load, seed, levels=4096):
        self.queue = np.zeros(graph.num_servers, np.int32)
        self.graph, self.levels = graph, levels
        self.arrival = np.uint64(round(load / (1 + load) * 2**32))
        self.rng = np.random.default_rng(seed).integers(1, 2**63, 4).astype(np.uint64)

    def run(self, events):
        """Returns (levels,) time averages of the number of servers with at least 0, 1, ... tasks over the next events."""
        held = np.bincount(self.queue, minlength=self.levels)[::-1].cumsum()[::-1].astype(np.int64)
        sums = held * events
        graph = self.graph
        play_two(events, self.queue, graph.neighbours, graph.size, graph.row, self.arrival, self.rng, sums)
        return sums / events
