"""The stationary law of two queues in parallel, exactly (a truncated chain), and a plain event-by-event simulator."""

from typing import NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.linalg import spsolve


class Pair(NamedTuple):
    """Occupancies q_1, ..., q_10 and tasks per server, and the mass on the edge, which bounds what truncation changes."""

    occupancy: np.ndarray
    queue_length: float
    edge: float


def two_servers(types, load, shares, most=60):
    """Two servers of rate 1, Poisson arrivals of rate 2 load, each of a random type.

    Args:
      types: for each task type its servers, a subset of {0, 1}.
      shares: shares(x) = probability that a task that may choose joins server 0, given the two queues x.
    """
    n = most + 1
    rates: dict = {}

    def add(a, b, rate):
        rates[a, b] = rates.get((a, b), 0.0) + rate
        rates[a, a] = rates.get((a, a), 0.0) - rate

    for x in range(n):
        for y in range(n):
            here = x * n + y
            for servers in types:
                first = shares((x, y)) if len(servers) == 2 else float(servers[0] == 0)
                if first and x < most:
                    add(here, here + n, first * 2 * load / len(types))
                if first < 1 and y < most:
                    add(here, here + 1, (1 - first) * 2 * load / len(types))
            if x:
                add(here, here - n, 1.0)
            if y:
                add(here, here - 1, 1.0)
    entries = np.array([(b, a, rate) for (a, b), rate in rates.items() if b])
    last = np.column_stack([np.zeros(n * n), np.arange(n * n), np.ones(n * n)])
    entries = np.vstack([entries, last])  # normalisation in place of the first equation
    matrix = coo_array((entries[:, 2], (entries[:, 0].astype(int), entries[:, 1].astype(int))), shape=(n * n, n * n))
    law = spsolve(matrix.tocsc(), np.eye(1, n * n)[0]).reshape(n, n)
    each = (law.sum(axis=1), law.sum(axis=0))
    tails = (np.cumsum(each[0][::-1])[::-1] + np.cumsum(each[1][::-1])[::-1]) / 2
    return Pair(tails[1:11], float(tails[1:].sum()), float(law[-1].sum() + law[:, -1].sum()))


def play(queue, coin, below, server, looked, sees):
    """Plays events one by one on a (N, B) array: the plain reading of `lagjax.compatibility.model.run_events`."""
    queue = np.array(queue, dtype=np.int64)
    for event in range(len(below)):
        for lane in range(queue.shape[1]):
            if coin[event, lane] < below[event]:
                candidates = server[event, 1 : 1 + looked[event]]
                shown = np.minimum(queue[candidates, lane], sees)
                queue[candidates[np.argmin(shown)], lane] += 1
            elif queue[server[event, 0], lane]:
                queue[server[event, 0], lane] -= 1
    return queue
