"""A plain compiled simulator of the original loss system, as one writes it in an afternoon.

NumPy's generator inside Numba, laws by `searchsorted`, one clock value per server, and a walk through the type's order
until k free servers are found.
"""

from __future__ import annotations

import numpy as np
from numba import njit


def simulate(instance, order, arrivals, warmup, seed):
    """Simulates one replica from empty under strict orders, `order` (V, R) of servers, best first.

    Returns:
      counts (V, R) tasks of each type taken by each server, blocked (V,), arrivals_by_type (V,), all int64.
    """
    mix = np.cumsum(instance.arrival_rate / instance.total_rate)
    duration = np.cumsum(instance.service_pmf, axis=1)
    mix[-1] = duration[:, -1] = 1.0
    order = np.ascontiguousarray(order, dtype=np.int64)
    return _run(
        instance.total_rate, mix, duration, order, int(instance.servers_per_task), int(arrivals), int(warmup), int(seed)
    )


# ruff: noqa: NPY002 (Numba compiles the legacy generator)
@njit
def _run(rate, mix, duration, order, k, arrivals, warmup, seed):
    np.random.seed(seed % 2**32)
    num_types, num_servers = order.shape
    counts = np.zeros((num_types, num_servers), np.int64)
    blocked = np.zeros(num_types, np.int64)
    by_type = np.zeros(num_types, np.int64)
    busy_until = np.zeros(num_servers, np.int64)
    chosen = np.empty(k, np.int64)
    now = 0
    for n in range(warmup + arrivals):
        now += np.random.geometric(rate)
        v = np.searchsorted(mix, np.random.random(), side="right")
        steps = np.searchsorted(duration[v], np.random.random(), side="right") + 1
        found = 0
        for j in range(num_servers):
            r = order[v, j]
            if busy_until[r] <= now:
                chosen[found] = r
                found += 1
                if found == k:
                    break
        counted = n >= warmup
        if counted:
            by_type[v] += 1
        if found < k:
            if counted:
                blocked[v] += 1
            continue
        for j in range(k):
            busy_until[chosen[j]] = now + steps + 1
            if counted:
                counts[v, chosen[j]] += 1
    return counts, blocked, by_type
