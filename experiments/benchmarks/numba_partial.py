"""The competitors of lagjax.partial_information: compiled scalar simulators of one replica (Numba).

  slots  the natural one: in every slot each server's departures by inversion (two from each word of xoshiro256++; nearly
  always one
         compare), then every policy's backlogs, look-ups and choice; all policies on the same departures, as in lagjax;
  plain  the same with NumPy's Poisson numbers, as one would write it first;
  lazy   one index policy by itself, without backlogs: only the chosen server's backlog is drawn, from its belief. No oracle
  and no
         common departures are possible, and it asks for one random number a slot instead of N.

Both count the jobs taken.
"""

from __future__ import annotations

import functools

import numpy as np
from numba import njit
from numba_loss import _LOW, _S32, _next, _seed_state

from lagjax.partial_information import arms_of, model


def compiled(system, policies, *, plain=False):
    """Returns run(slots, seed): jobs taken under each policy in `slots` slots from full servers; the paper's models only."""
    tables = [model.policy_tables(system, policy) for policy in policies]
    rules = tuple("ties" if table.rule == "backlog" and table.draws else table.rule for table in tables)
    none = np.zeros(1, np.uint32), np.zeros(1, np.int32), np.zeros(1, np.int32)
    parts = [(t.entry, t.fresh, t.ages) if t.entry is not None else none for t in tables]
    served = model.slot_tables(system).law.reshape(-1, system.capacity)[: system.num_servers].astype(np.uint64)
    entry, fresh, ages = (tuple(p[i] for p in parts) for i in range(3))
    kernel = _slots_kernel(system.num_servers, system.model == "blocking", rules, plain)
    place = tuple(table.place.ravel().astype(np.int64) for table in tables)
    return lambda slots, seed: kernel(slots, _seed_state(seed), system.rates, served, place, entry, fresh, ages)


def compiled_lazily(system, policy):
    """Returns run(slots, seed): jobs taken under one index policy."""
    table = model.policy_tables(system, policy)
    laws = []
    for arm in arms_of(system):
        more = np.cumsum(arm.belief[..., ::-1], axis=-1)[..., -2::-1]  # P(backlog >= 1), ..., P(backlog >= K)
        laws.append(np.minimum(np.round(more * 2.0**32), 2.0**32).reshape(-1, system.capacity).astype(np.uint64))
    kernel = _lazy_kernel(system.num_servers, system.model == "blocking")
    laws, place = np.concatenate(laws), table.place.ravel().astype(np.int64)
    return lambda slots, seed: kernel(slots, _seed_state(seed), laws, place, table.entry, table.fresh, table.ages)


@functools.cache
def _slots_kernel(servers, blocking, rules, plain):
    count = len(rules)
    source = [
        "def run(slots, rng, rates, served, place, entry, fresh, ages):",
        "    s0, s1, s2, s3 = rng; np.random.seed(np.int64(s0 >> _S40))",
    ]
    add = source.append
    add(f"    most = served.shape[1]; gone = np.zeros({servers}, np.int64); reward = np.zeros({count}, np.int64)")
    for p, rule in enumerate(rules):
        add(f"    place{p} = place[{p}]")
        add(f"    q{p} = np.full({servers}, most, np.int64)")
        if rule == "index":
            add(f"    entry{p} = entry[{p}]; fresh{p} = fresh[{p}]; ages{p} = ages[{p}]")
            add(f"    code{p} = (fresh{p} + most * ages{p}).astype(np.int64)")
    add("    for t in range(slots):")
    if plain:
        add(f"        for n in range({servers}): gone[n] = np.random.poisson(rates[n])")
    for n in range(0, 0 if plain else servers, 2):
        add("        word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)")
        for half, part in enumerate(("word >> _S32", "word & _LOW")):
            if n + half < servers:
                add(f"        half = {part}; k = 0")
                add(f"        while k < most and half < served[{n + half}, k]: k += 1")
                add(f"        gone[{n + half}] = k")
    if {"random", "ties"} & set(rules):
        add("        word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)")
    for p, rule in enumerate(rules):
        add(f"        for n in range({servers}): q{p}[n] = max(q{p}[n] - gone[n], 0)")
        if rule == "index":
            add("        low = np.int64(1) << 62; c = 0")
            add(f"        for n in range({servers}):")
            add(f"            e = np.int64(entry{p}[code{p}[n]])")
            add(f"            if (e | place{p}[n]) < low: low = e | place{p}[n]; c = n")
            add("            if e & 128 == 0: " + f"code{p}[n] += 1")
        elif rule == "backlog":
            add("        low = np.int64(1) << 62; c = 0")
            add(f"        for n in range({servers}):")
            add(f"            key = q{p}[n] << 16 | place{p}[n]")
            add("            if key < low: low = key; c = n")
        elif rule == "ties":  # one of the shortest queues, each alike
            add("        low = most + 1; tied = 0; c = 0")
            add(f"        for n in range({servers}):")
            add(f"            if q{p}[n] < low: low = q{p}[n]; tied = 0")
            add(f"            if q{p}[n] == low: tied += 1")
            add("        left = np.int64(((word & _LOW) * np.uint64(tied)) >> _S32)")
            add(f"        for n in range({servers}):")
            add(f"            if q{p}[n] == low:")
            add("                if left == 0: c = n")
            add("                left -= 1")
        elif rule == "turn":
            add(f"        c = t % {servers}")
        else:
            add(f"        c = np.int64(((word >> _S32) * np.uint64({servers})) >> _S32)")
        add(f"        room = (most if q{p}[c] == 0 else 0)" if blocking else f"        room = most - q{p}[c]")
        add(f"        q{p}[c] += room; reward[{p}] += room")
        if rule == "index":
            add(f"        code{p}[c] = fresh{p}[c] + q{p}[c] * ages{p}[c]")
    add("    return reward")
    space = {"np": np, "_S40": np.uint64(40), "_next": _next, "_S32": _S32, "_LOW": _LOW}
    exec("\n".join(source), space)  # one unrolled loop for these rules
    return njit(space["run"])


@functools.cache
def _lazy_kernel(servers, blocking):
    @njit
    def run(slots, rng, law, place, entry, fresh, ages):
        s0, s1, s2, s3 = rng
        most = law.shape[1]
        code = (fresh + most * ages).astype(np.int64)
        reward = 0
        for _ in range(slots // 2):
            word, s0, s1, s2, s3 = _next(s0, s1, s2, s3)
            for half in range(2):
                part = word >> _S32 if half else word & _LOW
                low, c, at = np.int64(1) << 62, 0, 0
                for n in range(servers):
                    here = code[n]
                    e = np.int64(entry[here])
                    if (e | place[n]) < low:
                        low, c, at = e | place[n], n, here
                    if e & 128 == 0:
                        code[n] = here + 1
                q = 0
                while q < most and part < law[at, q]:
                    q += 1
                room = most - q
                if blocking and q > 0:
                    room = 0
                reward += room
                code[c] = fresh[c] + (q + room) * ages[c]
        return reward

    return run
