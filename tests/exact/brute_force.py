"""The best of all deterministic stationary work-conserving policies of a tiny system, one after another.

Written from the model alone: a state is a sorted tuple of running tasks, each (law or steps left, its servers).
"""

from __future__ import annotations

import itertools
from collections import deque

import numpy as np


def best_reward(instance, means=None) -> tuple[float, int]:
    """Returns the best reward per step and how many policies were evaluated.

    Args:
      instance: a tiny one.
      means: (V,) means of geometric durations; None takes the instance's own bounded laws.
    """
    k, rates = instance.servers_per_task, [float(x) for x in instance.arrival_rate]
    index, queue, choices = {(): 0}, deque([()]), []

    def place(moves):
        for target in moves:
            if target not in index:
                index[target] = len(index)
                queue.append(target)
        return moves

    while queue:
        state = queue.popleft()
        free = sorted(set(range(instance.num_servers)) - {r for _, team in state for r in team})
        idle = place(_after(state, means))
        for v in range(len(rates)):
            options = []
            for team in itertools.combinations(free, k):
                moves: dict = {}
                for rest, p in idle.items():
                    for mark, q in _new(instance, v, means):
                        target = tuple(sorted((*rest, (mark, team))))
                        moves[target] = moves.get(target, 0.0) + p * q
                options.append((place(moves), float(instance.scores[v, list(team)].sum())))
            choices.append((index[state], v, options or [(idle, 0.0)], idle))

    rows = {i: np.zeros(len(index)) for i in range(len(index))}
    for state, _, _, idle in choices[:: len(rates)]:
        for target, p in idle.items():
            rows[state][index[target]] += (1 - sum(rates)) * p
    base = np.stack([rows[i] for i in range(len(index))])
    best, tried = -np.inf, 0
    for picked in itertools.product(*(options for _, _, options, _ in choices)):
        p, reward = base.copy(), np.zeros(len(index))
        for (state, v, _, _), (moves, earned) in zip(choices, picked, strict=True):
            reward[state] += rates[v] * earned
            for target, q in moves.items():
                p[state, index[target]] += rates[v] * q
        balance = np.vstack([p.T - np.eye(len(p)), np.ones(len(p))])
        law = np.linalg.lstsq(balance, np.r_[np.zeros(len(p)), 1], rcond=None)[0]
        best, tried = max(best, float(law @ reward)), tried + 1
    return best, tried


def _after(state, means):
    if means is None:
        return {tuple(sorted((left - 1, team) for left, team in state if left > 1)): 1.0}
    outcomes = {(): 1.0}
    for mean, team in state:
        longer = {}
        for kept, p in outcomes.items():
            longer[kept] = longer.get(kept, 0.0) + p / mean
            stays = tuple(sorted((*kept, (mean, team))))
            longer[stays] = longer.get(stays, 0.0) + p * (1 - 1 / mean)
        outcomes = longer
    return outcomes


def _new(instance, v, means):
    if means is not None:
        return [(means[v], 1.0)]
    return [(i + 1, float(p)) for i, p in enumerate(instance.service_pmf[v]) if p > 0]
