"""The competitors of lagjax.loss_routing: compiled scalar simulators of one replica (Numba), for index policies without ties.

  jump   the natural one: the jump chain; the time to the next event, then which one it is by a walk along the rates (NumPy's
         generator, Numba's), then the lowest index by a look at every queue;
  scan   the uniformised chain: events by an alias table, two from each word of xoshiro256++, then the lowest rank by a look at
         every queue, the loop unrolled;
  mask   the same, with one bit per (queue, jobs) in the order of ranks: the lowest bit set names the queue. At most 64 of them.

All count the jobs that arrive and those that are lost.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import njit
from numba_loss import _LOW, _ONE, _S32, _ZERO, _alias, _look_up, _lowest_bit, _next, _seed_state

METHODS = ("scan", "mask", "jump")
_FULL = np.int32(2**31 - 1)


def simulate(system, rank, arrivals, seed, *, method):
    """Simulates about `arrivals` jobs from an empty system.

    Args:
      system: a `lagjax.loss_routing.System`.
      rank: (K, N + 1) int32 ranks, different for all (queue, jobs); `_FULL` where the queue is full.
      arrivals: jobs (exactly with jump; on average with the others).
      seed: whole number.
      method: of METHODS.

    Returns:
      Jobs that arrived, and jobs that were lost.
    """
    queues = system.num_queues
    rank = np.ascontiguousarray(rank, np.int32)
    if method == "jump":
        return _jump(arrivals, seed, rank, system.servers, system.service_rate, system.arrival_rate)
    span = 1 << int(system.servers.max() - 1).bit_length()
    serves = np.arange(span) < system.servers[:, None]
    law = np.where(serves, system.service_rate[:, None], 0.0).ravel()
    events = _alias(np.r_[law, system.arrival_rate] / system.event_rate)
    number = int(arrivals * system.event_rate / system.arrival_rate)
    if method == "scan":
        return _scan_kernel(queues, span)(number // 2, _seed_state(seed), events, rank)
    has_room = rank < _FULL
    order = np.argsort(rank[has_room])
    if len(order) > 64:
        raise ValueError(f"{len(order)} places with room; the mask holds 64")
    bit = np.zeros(rank.shape, np.uint64)
    place = np.empty(len(order), np.uint64)
    place[order] = np.arange(len(order), dtype=np.uint64)
    bit[has_room] = _ONE << place
    owner = np.nonzero(has_room)[0][order]
    flip = bit[:, :-1] ^ bit[:, 1:]  # between x and x + 1 jobs
    return _mask_kernel(queues, span)(number // 2, _seed_state(seed), events, bit, flip, owner)


@functools.cache
def _scan_kernel(queues, span):
    shift, end = np.uint64(span.bit_length() - 1), np.uint64(queues * span)
    low = np.uint64(span - 1)

    @njit
    def run(pairs, rng, events, rank):
        s0, s1, s2, s3 = rng
        size = np.uint64(len(events))
        jobs = np.zeros(queues, np.int64)
        now = rank[:, 0].copy()
        arrived = lost = 0
        for _ in range(pairs):
            word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
            for half in range(2):
                mark = _look_up(events, _ZERO, size, word >> _S32 if half else word & _LOW)
                if mark == end:
                    arrived += 1
                    best, k = now[0], 0
                    for q in range(1, queues):
                        if now[q] < best:
                            best, k = now[q], q
                    if best == _FULL:
                        lost += 1
                    else:
                        jobs[k] += 1
                        now[k] = rank[k, jobs[k]]
                else:
                    k = mark >> shift
                    if jobs[k] > np.int64(mark & low):
                        jobs[k] -= 1
                        now[k] = rank[k, jobs[k]]
        return arrived, lost

    return run


@functools.cache
def _mask_kernel(queues, span):
    shift, end = np.uint64(span.bit_length() - 1), np.uint64(queues * span)
    low = np.uint64(span - 1)

    @njit
    def run(pairs, rng, events, bit, flip, owner):
        s0, s1, s2, s3 = rng
        size = np.uint64(len(events))
        jobs = np.zeros(queues, np.int64)
        mask = _ZERO
        for q in range(queues):
            mask |= bit[q, 0]
        arrived = lost = 0
        for _ in range(pairs):
            word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
            for half in range(2):
                mark = _look_up(events, _ZERO, size, word >> _S32 if half else word & _LOW)
                if mark == end:
                    arrived += 1
                    if mask == _ZERO:
                        lost += 1
                    else:
                        k = owner[_lowest_bit(mask)]
                        mask ^= flip[k, jobs[k]]
                        jobs[k] += 1
                else:
                    k = mark >> shift
                    if jobs[k] > np.int64(mark & low):
                        jobs[k] -= 1
                        mask ^= flip[k, jobs[k]]
        return arrived, lost

    return run


@njit
def _jump(arrivals, seed, rank, servers, service_rate, arrival_rate):
    np.random.seed(seed)  # noqa: NPY002 (what Numba compiles)
    queues = len(servers)
    jobs = np.zeros(queues, np.int64)
    now = rank[:, 0].copy()
    rate = np.zeros(queues)
    busy = 0.0
    arrived = lost = 0
    while arrived < arrivals:
        point = np.random.random() * (arrival_rate + busy)  # noqa: NPY002
        if point < arrival_rate:
            arrived += 1
            best, k = now[0], 0
            for q in range(1, queues):
                if now[q] < best:
                    best, k = now[q], q
            if best == _FULL:
                lost += 1
                continue
            jobs[k] += 1
        else:
            point -= arrival_rate
            k = 0
            while k < queues - 1 and point >= rate[k]:
                point -= rate[k]
                k += 1
            if jobs[k] == 0:  # rounding of the sums
                continue
            jobs[k] -= 1
        now[k] = rank[k, jobs[k]]
        new = min(jobs[k], servers[k]) * service_rate[k]
        busy += new - rate[k]
        rate[k] = new
    return arrived, lost
