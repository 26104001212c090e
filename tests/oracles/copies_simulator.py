"""The (m,n)-scaled system copy by copy, with explicit shuffles (Lag, Definition 4.1): slow, plain, evidently right.

Every server type has m n copies, each with its own steps of service left. At every step each of m dispatchers draws a mark,
the copies of each type are shuffled and dealt out in hands of n, and each dispatcher serves its task from its own hands.
"""

from __future__ import annotations

import random
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import plain_allocation


class Totals(NamedTuple):
    """Per replica: copies given (V, R, B), tasks arrived and tasks lost (V, B)."""

    served: np.ndarray
    arrived: np.ndarray
    blocked: np.ndarray


def simulate(instance, policy, copies, dispatchers, *, steps, warmup, replicas, seed) -> Totals:
    """Counts `steps` steps of every replica after `warmup` steps from empty."""
    num_types, num_servers = instance.scores.shape
    n, k = copies, instance.servers_per_task
    rng = random.Random(seed)
    served = np.zeros((num_types, num_servers, replicas), np.int64)
    arrived, blocked = (np.zeros((num_types, replicas), np.int64) for _ in range(2))
    choose = capped(policy, n * k) if policy.rule == "capped" else race(policy, n * k, rng)
    lengths = range(1, instance.max_duration + 1)
    for b in range(replicas):
        left = [[0] * (n * dispatchers) for _ in range(num_servers)]  # X of every copy
        for t in range(warmup + steps):
            after = [[max(x - 1, 0) for x in row] for row in left]
            decks = [rng.sample(range(n * dispatchers), n * dispatchers) for _ in range(num_servers)]
            for j in range(dispatchers):
                u, v = rng.random(), 0
                while v < num_types and u >= instance.arrival_rate[v]:
                    u -= instance.arrival_rate[v]
                    v += 1
                if v == num_types:
                    continue  # no task for this dispatcher
                free = [[c for c in deck[j * n : (j + 1) * n] if left[r][c] == 0] for r, deck in enumerate(decks)]
                enough = sum(map(len, free)) >= n * k
                if t >= warmup:
                    arrived[v, b] += 1
                    blocked[v, b] += not enough
                if enough:
                    duration = rng.choices(lengths, instance.service_pmf[v])[0]
                    for r, number in enumerate(choose(v, tuple(map(len, free)))):
                        for c in free[r][:number]:
                            after[r][c] = duration
                        served[v, r, b] += number * (t >= warmup)
            left = after
    return Totals(served, arrived, blocked)


def capped(policy, budget):
    """The chooser that fills tiers in order, shares one by weight, and rounds by largest remainders."""
    known = {}

    def choose(v, capacity):
        if (v, capacity) not in known:
            weight = [Fraction(float(w)).limit_denominator(10**6) for w in policy.weight[v]]
            free = [Fraction(c) for c in capacity]
            amount = plain_allocation.waterfill(Fraction(budget), free, policy.tier[v].tolist(), weight)
            known[v, capacity] = plain_allocation.largest_remainders(amount, budget)
        return known[v, capacity]

    return choose


def race(policy, budget, rng):
    """The chooser that draws copies one after another, from the lowest tier with one left, each with its server's weight."""

    def choose(v, capacity):
        left = list(capacity)
        for _ in range(budget):
            lowest = min(policy.tier[v, r] for r, number in enumerate(left) if number)
            weights = [number * policy.weight[v, r] * (policy.tier[v, r] == lowest) for r, number in enumerate(left)]
            left[rng.choices(range(len(left)), weights)[0]] -= 1
        return [c - number for c, number in zip(capacity, left, strict=True)]

    return choose
