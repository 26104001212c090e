"""One replica of the original loss system, stepped by its definition: slow, plain, evidently right.

X_r(t) is the number of steps of service that server r has left: 0 is free. At step t the arrival, if there is
one, sees X(t); then X_r(t + 1) = D if r was assigned at t, X_r(t) - 1 if X_r(t) > 0, and 0 otherwise.

Every draw is an argument. A chooser `choose(v, free, i)` returns the k servers of the i-th arrival (from 0),
of type v, among those with free[r]; it is called only if at least k servers are free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Trace(NamedTuple):
    """Per arrival: accepted (A,), assigned (A, k) servers or -1, busy (A,) servers that it saw, step (A,)."""

    accepted: np.ndarray
    assigned: np.ndarray
    busy: np.ndarray
    step: np.ndarray


def simulate(gaps, types, durations, choose, num_servers, servers_per_task=1) -> Trace:
    """Steps an empty system through all arrivals.

    Args:
      gaps: (A,) steps since the previous arrival, at least 1; the first since step 0, where 0 is possible.
      types: (A,) task types.
      durations: (A,) steps of service, at least 1, used if the task is accepted.
      choose: the policy, see above.
      num_servers: R.
      servers_per_task: k.
    """
    gaps, types, durations = (np.asarray(x, np.int64) for x in (gaps, types, durations))
    k = servers_per_task
    if not len(gaps) == len(types) == len(durations):
        lengths = (len(gaps), len(types), len(durations))
        raise ValueError(f"gaps, types and durations have lengths {lengths}; expected equal numbers")
    if np.any(gaps[1:] < 1) or np.any(gaps[:1] < 0) or np.any(durations < 1):
        raise ValueError("gaps and durations are at least 1 (the first gap at least 0)")
    arrivals = len(gaps)
    trace = Trace(
        accepted=np.zeros(arrivals, bool),
        assigned=np.full((arrivals, k), -1),
        busy=np.zeros(arrivals, np.int64),
        step=np.cumsum(gaps),
    )
    left = np.zeros(num_servers, np.int64)  # X(0)
    t = 0
    for i in range(arrivals):
        while t < trace.step[i]:  # steps without an arrival
            left = _next(left, [], 0)
            t += 1
        free = left == 0
        trace.busy[i] = np.sum(~free)
        servers = []
        if np.sum(free) >= k:
            servers = [int(r) for r in choose(int(types[i]), free.copy(), i)]
            if len(set(servers)) != k or not all(free[r] for r in servers):
                raise ValueError(f"arrival {i} was given servers {servers}; expected {k} different free ones")
            trace.accepted[i] = True
            trace.assigned[i] = servers
        left = _next(left, servers, durations[i])
        t += 1
    return trace


def _next(left, assigned, duration):
    after = np.where(left > 0, left - 1, 0)
    after[assigned] = duration
    return after


def strict_order(order, k=1):
    """Returns the chooser that takes the first k free servers of order[v], best first."""

    def choose(v, free, _i):
        return [r for r in order[v] if free[r]][:k]

    return choose


def order_by_level(order, k=1):
    """Returns the chooser that takes the first k free servers of order[n, v], with n tasks running; order is (m, V, R)."""

    def choose(v, free, _i):
        return [r for r in order[np.sum(~free) // k, v] if free[r]][:k]

    return choose


def equal_race(tiers, pick, k=1):
    """Returns the chooser that draws servers one after another, uniformly within the lowest free tier.

    Args:
      tiers: (V, R) integers.
      pick: pick(i, copy, count) in 0..count-1, the place of the server of this copy (0..k-1) among the
        `count` eligible ones in increasing number; or an array (A, k) of uniforms u in [0, 1), meaning
        floor(u * count).
      k: servers per task.
    """
    if not callable(pick):
        uniforms = np.asarray(pick, np.float64).reshape(-1, k)

        def pick(i, copy, count):
            return min(int(uniforms[i, copy] * count), count - 1)

    def choose(v, free, i):
        taken = []
        for copy in range(k):
            eligible = _eligible(tiers[v], free, taken)
            taken.append(eligible[pick(i, copy, len(eligible))])
        return taken

    return choose


def weighted_race(tiers, weights, uniforms, k=1):
    """Returns the chooser that draws servers one after another in proportion to weight, in the lowest tier.

    Args:
      tiers: (V, R) integers.
      weights: (V, R) positive.
      uniforms: (A, k) in [0, 1): the server is the first, by number, whose cumulative weight among the
        eligible ones exceeds u times their total.
      k: servers per task.
    """
    uniforms = np.asarray(uniforms, np.float64).reshape(-1, k)

    def choose(v, free, i):
        taken = []
        for copy in range(k):
            eligible = _eligible(tiers[v], free, taken)
            total = sum(weights[v][r] for r in eligible)
            cumulative = 0.0
            for r in eligible:
                cumulative += weights[v][r]
                if cumulative > uniforms[i, copy] * total:
                    break
            taken.append(r)
        return taken

    return choose


def _eligible(tier, free, taken):
    """Free servers not yet taken in the lowest tier that has any, in increasing number."""
    candidates = [r for r in range(len(free)) if free[r] and r not in taken]
    best = min(tier[r] for r in candidates)
    return [r for r in candidates if tier[r] == best]
