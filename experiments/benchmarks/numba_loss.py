"""The competitor: a compiled scalar simulator of the original loss system (one replica, one core, Numba).

Event-driven in arrivals: geometric gaps jump straight to the next arrival, and counts per (type, server) are
exact integers. Three ways to find the free servers of a strict order; for one seed their counts are the same:

  scan      free_at[r] per server, walked in the type's order until k free ones are found;
  calendar  a bit mask of free servers; servers come back from a calendar of masks, one per step;
  compare   the mask built afresh by comparing free_at[r] with the clock for all servers (SIMD over servers).

`calendar` and `compare` turn the mask into the type's order by small tables, so that the best server is the
lowest bit. Ties (a tier of several servers) are a race: servers drawn one after another, in proportion to
weight.

Random numbers: xoshiro256++ (Blackman and Vigna), 32 bits a draw through alias tables, so probabilities are
right to 2^-32.

Run this file to print nanoseconds per arrival of the gallery instances on one core.
"""

from __future__ import annotations

import functools
import os
import sys
import time

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

METHODS = ("scan", "calendar", "compare")
FASTEST = "compare"
_GAP_TABLE = 256  # the last entry stands for "255 steps passed, draw again": gaps have no memory
_REBASE = 1 << 30  # the 32-bit clock of `compare` starts again here
_PAGE = 2048  # steps on a page of the calendar
_NEVER = np.int32(2**31 - 1)
_LOW = np.uint64(0xFFFFFFFF)
_ZERO, _ONE, _S32 = np.uint64(0), np.uint64(1), np.uint64(32)
_S17, _S23, _S41, _S45, _S19 = (np.uint64(s) for s in (17, 23, 41, 45, 19))


def simulate(instance, tiers, weights, arrivals, warmup, seed, *, method="auto"):
    """Simulates one replica from an empty system.

    Args:
      instance: a `lagjax.Instance` (any object with its fields).
      tiers: (V, R) integers; lower tiers are taken first. All different within every row: a strict order. See
        `tiers_of_order` and `tiers_by_score`.
      weights: None (equal) or (V, R) positive weights of the race within a tier.
      arrivals: counted arrivals, after the first `warmup` ones.
      warmup: arrivals that are simulated and not counted.
      seed: whole number.
      method: of `METHODS`, for strict orders; "auto" is the fastest that fits.

    Returns:
      counts (V, R) tasks of each type taken by each server, blocked (V,), arrivals_by_type (V,), all int64.
    """
    tiers = np.asarray(tiers)
    num_types, num_servers = instance.scores.shape
    k = int(instance.servers_per_task)
    if tiers.shape != (num_types, num_servers):
        raise ValueError(f"tiers has shape {tiers.shape}; expected {(num_types, num_servers)}")
    strict = all(len(np.unique(row)) == num_servers for row in tiers)
    if method == "auto":
        method = FASTEST if num_servers <= 32 else "scan"
    if strict and method not in METHODS:
        raise ValueError(f"method is {method!r}; choose from {METHODS}")
    if (not strict or method != "scan") and num_servers > 32:
        raise ValueError(f"masks hold 32 servers, not {num_servers}; use a strict order and method='scan'")

    table, law_start, law_size, law_shift = _duration_tables(instance.service_pmf)
    draws = (
        _alias(_gap_law(instance.total_rate)), _alias(instance.arrival_rate / instance.total_rate),
        table, law_start, law_size, law_shift,
    )  # fmt: skip
    order = np.argsort(tiers, axis=1, kind="stable")
    padded = -(-num_servers // 8) * 8
    rng = _seed_state(seed)
    counts = np.zeros((num_types, num_servers), np.int64)
    blocked = np.zeros(num_types, np.int64)
    random_duration = bool(np.any(law_size > 1))
    if not strict:
        equal = weights is None
        weights = np.ones(tiers.shape) if equal else np.asarray(weights, np.float64)
        if weights.shape != tiers.shape or not np.all(weights > 0):
            raise ValueError("weights of a race are positive, one per type and server")
        kernel = _race_kernel(padded, k, random_duration, equal)
        state = (np.where(np.arange(padded) < num_servers, 0, _NEVER).astype(np.int32),)
        policy = (_tier_masks(tiers), weights)
    elif method == "scan":
        kernel = _scan_kernel(num_servers, k, random_duration)
        state, policy = (np.zeros(num_servers, np.int64),), (order.astype(np.int64),)
    else:
        tables, bits = _rank_tables(order)
        policy = (tables, order.astype(np.uint8))
        if method == "compare":
            kernel = _compare_kernel(padded, tables.shape[1], bits, k, random_duration)
            state = (np.where(np.arange(padded) < num_servers, 0, _NEVER).astype(np.int32),)
        else:
            kernel = _calendar_kernel(tables.shape[1], bits, k, random_duration)
            back = np.zeros(_PAGE + instance.service_pmf.shape[1] + 2, np.uint32)
            state = (back, np.array([(1 << num_servers) - 1], np.uint64))
    clock = np.zeros(1, np.int64)
    for number in (int(warmup), int(arrivals)):
        counts[:] = 0
        blocked[:] = 0
        kernel(number, rng, clock, draws, state, policy, counts, blocked)
    return counts, blocked, counts.sum(axis=1) // k + blocked


def tiers_of_order(order):
    """Returns the (V, R) tiers of strict orders given as lists of servers, best first."""
    return np.argsort(np.asarray(order), axis=1)


def tiers_by_score(scores, *, strict=False):
    """Returns (V, R) tiers by decreasing score; equal scores share one, or if `strict` go by number."""
    scores = np.asarray(scores)
    if strict:
        return tiers_of_order(np.argsort(-scores, axis=1, kind="stable"))
    return np.stack([np.unique(-row, return_inverse=True)[1].reshape(-1) for row in scores])


# ---- tables ------------------------------------------------------------------------------------------


def _gap_law(rate):
    law = rate * (1 - rate) ** np.arange(_GAP_TABLE)
    law[-1] = max(1 - law[:-1].sum(), 0.0)
    return law


def _alias(law):
    """Walker's table, one word per entry: threshold on 32 bits, then the alias taken at or above it."""
    law = np.asarray(law, np.float64)
    n = len(law)
    share = list(law / law.sum() * n)
    threshold, alias = np.ones(n), np.arange(n)
    small = [i for i in range(n) if share[i] < 1]
    large = [i for i in range(n) if share[i] >= 1]
    while small and large:
        low, high = small.pop(), large[-1]
        threshold[low], alias[low] = share[low], high
        share[high] -= 1 - share[low]
        if share[high] < 1:
            small.append(large.pop())
    words = np.minimum(np.rint(threshold * 2.0**32), 2.0**32 - 1).astype(np.uint64)
    return (words << _S32) | alias.astype(np.uint64)


def _duration_tables(service_pmf):
    """One alias table per distinct law, end to end; a type points at its own by start, size and shift."""
    words, known, start, size, shift = [], {}, [], [], []
    for law in np.asarray(service_pmf):
        support = np.flatnonzero(law)
        key = law.tobytes()
        if key not in known:
            known[key] = sum(map(len, words))
            words.append(_alias(law[support[0] : support[-1] + 1]))
        start.append(known[key])
        size.append(support[-1] - support[0] + 1)
        shift.append(support[0] + 1)
    return np.concatenate(words), *(np.array(x, np.uint64) for x in (start, size, shift))


def _rank_tables(order):
    """tables[v, c, piece]: bit j is set if the server of rank j for type v is in this piece of the mask."""
    num_types, num_servers = order.shape
    chunks = -(-num_servers // 8)
    bits = -(-num_servers // chunks)
    rank = np.argsort(order, axis=1)
    tables = np.zeros((num_types, chunks, 1 << bits), np.uint32)
    for r in range(num_servers):
        c, b = divmod(r, bits)
        has = (np.arange(1 << bits) >> b & 1).astype(np.uint32)
        tables[:, c] |= has << rank[:, r, None].astype(np.uint32)
    return tables, bits


def _tier_masks(tiers):
    levels = [np.unique(row) for row in tiers]
    masks = np.zeros((len(tiers), max(map(len, levels))), np.uint32)
    for v, (row, level) in enumerate(zip(tiers, levels, strict=True)):
        for j, value in enumerate(level):
            masks[v, j] = sum(1 << int(r) for r in np.flatnonzero(row == value))
    return masks


def _seed_state(seed):
    return np.random.SeedSequence(int(seed)).generate_state(4, np.uint64)


# ---- compiled ----------------------------------------------------------------------------------------


def _bit_intrinsic(name):
    @intrinsic
    def count(context, word):
        def generate(context, builder, signature, args):
            if name == "ctpop":
                return builder.ctpop(args[0])
            return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

        return types.uint64(types.uint64), generate

    return count


_bits_set = _bit_intrinsic("ctpop")
_lowest_bit = _bit_intrinsic("cttz")


@njit(inline="always")
def _next(s0, s1, s2, s3):
    total = s0 + s3
    out = ((total << _S23) | (total >> _S41)) + s0
    shifted = s1 << _S17
    s2 ^= s0
    s3 ^= s1
    s1 ^= s2
    s0 ^= s3
    s2 ^= shifted
    s3 = (s3 << _S45) | (s3 >> _S19)
    return out, s0, s1, s2, s3


@njit(inline="always")
def _look_up(table, start, size, word):
    scaled = word * size
    cell = scaled >> _S32
    entry = table[start + cell]
    return cell if (scaled & _LOW) < (entry >> _S32) else entry & _LOW


@njit(inline="always")
def _gap_and_type(gaps, mix, s0, s1, s2, s3):
    word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
    gap = _look_up(gaps, _ZERO, np.uint64(_GAP_TABLE), word >> _S32)
    v = _look_up(mix, _ZERO, np.uint64(len(mix)), word & _LOW)
    extra = _ZERO
    while gap == np.uint64(_GAP_TABLE - 1):
        extra += gap
        word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
        gap = _look_up(gaps, _ZERO, np.uint64(_GAP_TABLE), word >> _S32)
    return np.int64(gap + extra + _ONE), np.int64(v), s0, s1, s2, s3


@functools.cache
def _duration_drawer(random_duration):
    @njit(inline="always")
    def draw(durations, start, size, shift, v, s0, s1, s2, s3):
        if random_duration:
            word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
            steps = _look_up(durations, start[v], size[v], word >> _S32) + shift[v]
        else:
            steps = shift[v]
        return np.int64(steps), s0, s1, s2, s3

    return draw


@functools.cache
def _scan_kernel(num_servers, k, random_duration):
    draw = _duration_drawer(random_duration)

    @njit(nogil=True)
    def run(arrivals, rng, clock, draws, state, policy, counts, blocked):
        gaps, mix, durations, start, size, shift = draws
        (free_at,) = state
        (order,) = policy
        s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
        t = clock[0]
        chosen = np.empty(k, np.int64)
        for _ in range(arrivals):
            gap, v, s0, s1, s2, s3 = _gap_and_type(gaps, mix, s0, s1, s2, s3)
            t += gap
            steps, s0, s1, s2, s3 = draw(durations, start, size, shift, v, s0, s1, s2, s3)
            found = 0
            for j in range(num_servers):
                r = order[v, j]
                if free_at[r] <= t:
                    chosen[found] = r
                    found += 1
                    if found == k:
                        break
            if found < k:
                blocked[v] += 1
                continue
            for c in range(k):
                free_at[chosen[c]] = t + steps + 1
                counts[v, chosen[c]] += 1
        rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
        clock[0] = t

    return run


@functools.cache
def _taker(chunks, bits):
    """Ranks of the free servers from their mask, and the number of them."""
    piece = np.uint64((1 << bits) - 1)
    step = np.uint64(bits)

    @njit(inline="always")
    def by_rank(tables, v, mask):
        ranked = _ZERO
        for c in range(chunks):
            ranked |= np.uint64(tables[v, c, mask & piece])
            mask >>= step
        return ranked

    return by_rank


@functools.cache
def _free_mask(padded):
    """Bit r of the result is free_at[r] <= now: one vector comparison for every eight servers."""
    eight = ir.VectorType(ir.IntType(32), 8)

    @intrinsic
    def mask_of(context, free_at, now):
        def generate(context, builder, signature, args):
            data = context.make_array(signature.args[0])(context, builder, args[0]).data
            clock = ir.Constant(eight, ir.Undefined)
            for lane in range(8):
                clock = builder.insert_element(clock, args[1], ir.Constant(ir.IntType(32), lane))
            mask = ir.Constant(ir.IntType(64), 0)
            for first in range(0, padded, 8):
                at = builder.gep(data, [ir.Constant(ir.IntType(64), first)])
                times = builder.load(builder.bitcast(at, eight.as_pointer()))
                times.align = 4
                byte = builder.bitcast(builder.icmp_signed("<=", times, clock), ir.IntType(8))
                word = builder.zext(byte, ir.IntType(64))
                mask = builder.or_(mask, builder.shl(word, ir.Constant(ir.IntType(64), first)))
            return mask

        return types.uint64(types.Array(types.int32, 1, "C"), types.int32), generate

    return mask_of


@functools.cache
def _compare_kernel(padded, chunks, bits, k, random_duration):
    draw = _duration_drawer(random_duration)
    by_rank = _taker(chunks, bits)
    mask_of = _free_mask(padded)

    @njit(nogil=True)
    def run(arrivals, rng, clock, draws, state, policy, counts, blocked):
        gaps, mix, durations, start, size, shift = draws
        (free_at,) = state
        tables, order = policy
        s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
        t = clock[0]
        for _ in range(arrivals):
            gap, v, s0, s1, s2, s3 = _gap_and_type(gaps, mix, s0, s1, s2, s3)
            steps, s0, s1, s2, s3 = draw(durations, start, size, shift, v, s0, s1, s2, s3)
            t += gap
            if t >= _REBASE:
                for r in range(padded):
                    if free_at[r] != _NEVER:
                        free_at[r] = max(free_at[r] - t, 0)
                t = 0
            ranked = by_rank(tables, v, mask_of(free_at, np.int32(t)))
            if (k == 1 and ranked == _ZERO) or (k > 1 and _bits_set(ranked) < k):
                blocked[v] += 1
                continue
            until = np.int32(t + steps + 1)
            for _copy in range(k):
                r = order[v, _lowest_bit(ranked)]
                ranked &= ranked - _ONE
                free_at[r] = until
                counts[v, r] += 1
        rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
        clock[0] = t

    return run


@functools.cache
def _calendar_kernel(chunks, bits, k, random_duration):
    draw = _duration_drawer(random_duration)
    by_rank = _taker(chunks, bits)

    @njit(nogil=True)
    def run(arrivals, rng, clock, draws, state, policy, counts, blocked):
        gaps, mix, durations, start, size, shift = draws
        back, free_word = state
        tables, order = policy
        s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
        t = clock[0]
        free = free_word[0]
        end = len(back)
        for _ in range(arrivals):
            gap, v, s0, s1, s2, s3 = _gap_and_type(gaps, mix, s0, s1, s2, s3)
            steps, s0, s1, s2, s3 = draw(durations, start, size, shift, v, s0, s1, s2, s3)
            if t + gap < _PAGE:
                for s in range(t + 1, t + gap + 1):
                    free |= np.uint64(back[s])
                t += gap
            else:
                for s in range(t + 1, min(t + gap + 1, end)):
                    free |= np.uint64(back[s])
                t += gap
                for s in range(end):
                    back[s] = back[s + t] if s + t < end else np.uint32(0)
                t = 0
            ranked = by_rank(tables, v, free)
            if (k == 1 and ranked == _ZERO) or (k > 1 and _bits_set(ranked) < k):
                blocked[v] += 1
                continue
            taken = _ZERO
            for _copy in range(k):
                r = order[v, _lowest_bit(ranked)]
                ranked &= ranked - _ONE
                taken |= _ONE << np.uint64(r)
                counts[v, r] += 1
            free ^= taken
            back[t + steps + 1] |= np.uint32(taken)
        rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
        clock[0] = t
        free_word[0] = free

    return run


@functools.cache
def _race_kernel(padded, k, random_duration, equal):
    draw = _duration_drawer(random_duration)
    mask_of = _free_mask(padded)

    @njit(nogil=True)
    def run(arrivals, rng, clock, draws, state, policy, counts, blocked):
        gaps, mix, durations, start, size, shift = draws
        (free_at,) = state
        masks, weights = policy
        s0, s1, s2, s3 = rng[0], rng[1], rng[2], rng[3]
        t = clock[0]
        for _ in range(arrivals):
            gap, v, s0, s1, s2, s3 = _gap_and_type(gaps, mix, s0, s1, s2, s3)
            steps, s0, s1, s2, s3 = draw(durations, start, size, shift, v, s0, s1, s2, s3)
            t += gap
            if t >= _REBASE:
                for r in range(padded):
                    if free_at[r] != _NEVER:
                        free_at[r] = max(free_at[r] - t, 0)
                t = 0
            free = mask_of(free_at, np.int32(t))
            if _bits_set(free) < k:
                blocked[v] += 1
                continue
            until = np.int32(t + steps + 1)
            level = -1
            left = _ZERO
            for _copy in range(k):
                while left == _ZERO:
                    level += 1
                    left = free & np.uint64(masks[v, level])
                if left & (left - _ONE) == _ZERO:
                    r = _lowest_bit(left)
                else:
                    word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
                    rest = left
                    if equal:
                        for _skip in range(((word >> _S32) * _bits_set(left)) >> _S32):
                            rest &= rest - _ONE
                        r = _lowest_bit(rest)
                    else:
                        total = 0.0
                        while rest != _ZERO:
                            total += weights[v, _lowest_bit(rest)]
                            rest &= rest - _ONE
                        point = np.float64(word >> np.uint64(11)) * 2.0**-53 * total
                        rest = left
                        r = _lowest_bit(rest)
                        point -= weights[v, r]
                        while point >= 0.0 and (rest & (rest - _ONE)) != _ZERO:
                            rest &= rest - _ONE
                            r = _lowest_bit(rest)
                            point -= weights[v, r]
                left ^= _ONE << r
                free_at[r] = until
                counts[v, r] += 1
        rng[0], rng[1], rng[2], rng[3] = s0, s1, s2, s3
        clock[0] = t

    return run


# ---- timing ------------------------------------------------------------------------------------------


def nanoseconds_per_arrival(instance, tiers, weights=None, *, arrivals=5_000_000, repeats=5, method="auto"):
    """Returns the best of `repeats` runs in processor time of this process, after one that compiles."""
    simulate(instance, tiers, weights, 1000, 1000, 0, method=method)
    best = np.inf
    for seed in range(repeats):
        begin = time.process_time()
        simulate(instance, tiers, weights, arrivals, 0, seed, method=method)
        best = min(best, time.process_time() - begin)
    return best / arrivals * 1e9


def main(names=(), load=0.7):
    """Prints a table of ns per arrival: strict order by score, each method; greedy and random races."""
    from lagjax.gallery import GALLERY, gallery

    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    columns = (*METHODS, "greedy", "random")
    print(f"{f'ns per arrival, one core, load {load}':36s}" + "".join(f"{c:>10s}" for c in columns))
    for name in names or GALLERY:
        instance = gallery(name, load)
        order = tiers_by_score(instance.scores, strict=True)
        ties = tiers_by_score(instance.scores)
        times = [nanoseconds_per_arrival(instance, order, method=m) for m in METHODS]
        times += [nanoseconds_per_arrival(instance, t) for t in (ties, np.zeros_like(ties))]
        print(f"{name:36s}" + "".join(f"{x:10.1f}" for x in times), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
