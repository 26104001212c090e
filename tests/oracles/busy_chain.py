"""Exact stationary laws of small loss systems, by enumerating their states.

Within a step the arrival sees X(t) and takes servers; then the servers that were busy at t, and only those,
complete or lose a step of service, and the assigned ones become busy. So an assigned server is never seen
free at the next step.

  geometric_chain   geometric durations: a state is the set of running tasks, each its servers and, where
                    means differ, its law. With k = 1 and equal means it is the set of busy servers, 2^R
                    states.
  remaining_chain   any bounded law: a state is the steps left at every server, up to (d + 1)^R states.
  exact_blocking    geometric durations of equal mean: the number of running tasks, whatever the policy.

A policy is tiers (V, R), lower first, and weights (V, R) of the race within a tier (None: equal). Different
tiers for all servers make a strict order.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np
from scipy.sparse import csc_matrix
from scipy.sparse.linalg import spsolve
from scipy.stats import binom

_MAX_STATES = 20_000


class Stationary(NamedTuple):
    """Stationary values of a chain.

    Attributes:
      reward: expected reward per step.
      blocking: probability that an arrival is dropped (the same for all types).
      rate: (V, R) tasks of type v that server r takes, per step.
      busy_law: (R + 1,) P(N = n) of the number of busy servers.
      mean_busy: expected number of busy servers.
      probability: dict from state to its stationary probability.
      transition: sparse (states, states) matrix, rows and columns in the order of `probability`.
    """

    reward: float
    blocking: float
    rate: np.ndarray
    busy_law: np.ndarray
    mean_busy: float
    probability: dict
    transition: csc_matrix


def geometric_chain(instance, tiers, weights=None, *, mean=None) -> Stationary:
    """Solves the chain with untruncated geometric durations.

    Args:
      instance: scores (V, R), arrival_rate (V,), servers_per_task; mean_duration (V,) if `mean` is not given.
      tiers, weights: the policy.
      mean: mean duration, one number or V, in steps.
    """
    num_types = len(instance.arrival_rate)
    mean = np.broadcast_to(instance.mean_duration if mean is None else mean, (num_types,))
    laws = np.unique(np.round(mean, 12))
    law_of_type = np.searchsorted(laws, np.round(mean, 12))
    completes = [1 / m for m in laws]

    def free(state):
        taken = {r for _law, servers in state for r in servers}
        return [r for r in range(instance.scores.shape[1]) if r not in taken]

    def survivors(state):
        outcomes = [((), 1.0)]
        for task in state:
            p = completes[task[0]]
            stay = [((*kept, task), weight * (1 - p)) for kept, weight in outcomes] if p < 1 else []
            outcomes = [(kept, weight * p) for kept, weight in outcomes] + stay
        return outcomes

    def start(after, v, servers):
        yield tuple(sorted((*after, (int(law_of_type[v]), servers)))), 1.0

    return _solve(instance, tiers, weights, (), free, survivors, start)


def remaining_chain(instance, tiers, weights=None) -> Stationary:
    """Solves the chain with the instance's own bounded laws, `service_pmf` (V, d)."""

    def free(state):
        return [r for r, left in enumerate(state) if left == 0]

    def survivors(state):
        return [(tuple(max(left - 1, 0) for left in state), 1.0)]

    def start(after, v, servers):
        for i, probability in enumerate(instance.service_pmf[v]):
            if probability > 0:
                yield tuple(i + 1 if r in servers else left for r, left in enumerate(after)), probability

    empty = (0,) * instance.scores.shape[1]
    return _solve(instance, tiers, weights, empty, free, survivors, start)


def exact_blocking(num_servers, total_rate, mean, servers_per_task=1) -> tuple[float, np.ndarray]:
    """Returns the blocking probability with geometric durations of one mean, and the law of running tasks.

    The law is P(m tasks run), m = 0..floor(R/k). A step is an arrival, which adds a task if k servers are
    free, and independent completions of the tasks that ran before it: binomial thinning. No policy enters.
    """
    room = num_servers // servers_per_task
    running = np.arange(room + 1)
    kept = binom.pmf(running[None, :], running[:, None], 1 - 1 / mean)  # [m, j]: j of m tasks go on
    chain = (1 - total_rate) * kept
    chain[:-1, 1:] += total_rate * kept[:-1, :-1]
    chain[-1] += total_rate * kept[-1]
    law = _stationary(csc_matrix(chain))
    return float(law[-1]), law


def choices(free, tier, weight, k) -> dict[tuple[int, ...], float]:
    """Returns the probability of every set of k servers (a sorted tuple) that a task may take from `free`."""
    found = {(): 1.0}
    for _ in range(k):
        longer = {}
        for taken, probability in found.items():
            rest = [r for r in free if r not in taken]
            best = min(tier[r] for r in rest)
            eligible = [r for r in rest if tier[r] == best]
            total = sum(weight[r] for r in eligible)
            for r in eligible:
                key = tuple(sorted((*taken, r)))
                longer[key] = longer.get(key, 0.0) + probability * weight[r] / total
        found = longer
    return found


def _solve(instance, tiers, weights, empty, free, survivors, start):
    num_types, num_servers = instance.scores.shape
    k = instance.servers_per_task
    weights = np.ones((num_types, num_servers)) if weights is None else np.asarray(weights, float)
    rates = [float(x) for x in instance.arrival_rate]
    idle = max(1 - sum(rates), 0.0)
    index, queue = {empty: 0}, deque([empty])
    rows, columns, values = [], [], []
    states_free, taken_rate = [], []  # per state: number of free servers, (V, R) rate of tasks taken there

    while queue:
        state = queue.popleft()
        open_servers = free(state)
        after = survivors(state)
        moves = {}
        takes = np.zeros((num_types, num_servers))
        stays = idle
        for v in range(num_types):
            if len(open_servers) < k:
                stays += rates[v]
                continue
            for servers, probability in choices(open_servers, tiers[v], weights[v], k).items():
                takes[v, list(servers)] += rates[v] * probability
                for rest, weight in after:
                    for target, chance in start(rest, v, servers):
                        moves[target] = moves.get(target, 0.0) + rates[v] * probability * weight * chance
        for rest, weight in after:
            moves[rest] = moves.get(rest, 0.0) + stays * weight
        states_free.append(len(open_servers))
        taken_rate.append(takes)
        for target, probability in moves.items():
            if probability == 0:
                continue
            if target not in index:
                if len(index) == _MAX_STATES:
                    raise ValueError(f"more than {_MAX_STATES} states; this oracle is for small systems")
                index[target] = len(index)
                queue.append(target)
            rows.append(index[state])
            columns.append(index[target])
            values.append(probability)

    transition = csc_matrix((values, (rows, columns)), shape=(len(index), len(index)))
    law = _stationary(transition)
    states_free = np.array(states_free)
    rate = np.tensordot(law, np.array(taken_rate), 1)
    busy_law = np.bincount(num_servers - states_free, weights=law, minlength=num_servers + 1)
    return Stationary(
        reward=float(np.sum(instance.scores * rate)),
        blocking=float(law[states_free < k].sum()),
        rate=rate,
        busy_law=busy_law,
        mean_busy=float(busy_law @ np.arange(num_servers + 1)),
        probability=dict(zip(index, law, strict=True)),
        transition=transition,
    )


def _stationary(transition):
    """Solves pi P = pi, sum(pi) = 1 for a chain with one recurrent class."""
    size = transition.shape[0]
    if size <= 1500:
        matrix = transition.toarray().T - np.eye(size)
        matrix[-1] = 1
        return np.linalg.solve(matrix, np.eye(size)[-1])
    balance = (transition.T - csc_matrix(np.eye(size))).tolil()
    balance[-1] = 1
    right = np.zeros(size)
    right[-1] = 1
    return spsolve(balance.tocsc(), right)
