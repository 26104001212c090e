"""Which team a tier and weight policy gives a task, in every state at once."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from lagjax.exact.chain import Chain
from lagjax.instance import Instance


def taken_rates(instance: Instance, chain: Chain, tier: np.ndarray, weight: np.ndarray) -> list[sparse.csr_array]:
    """Per type, the (N, T) probability per step that a task arrives and that team takes it.

    Args:
      instance: the system of the chain.
      chain: its states, over the groups of the tables.
      tier, weight: (V, G), or (m, V, G) by the number of running tasks, as `lagjax.exact.groups.group_tables` returns them.
    """
    if tier.ndim == 2:
        return [
            rate * team_probabilities(chain.free, tier[v], weight[v], chain.teams)
            for v, rate in enumerate(instance.arrival_rate)
        ]
    running = (instance.num_servers - chain.free.sum(axis=1)) // instance.servers_per_task
    taken = []
    for v, rate in enumerate(instance.arrival_rate):
        parts = []
        for n in range(len(tier)):
            here = sparse.diags_array((running == n).astype(float))
            parts.append(here @ team_probabilities(chain.free, tier[n, v], weight[n, v], chain.teams))
        taken.append(sparse.csr_array(rate * sum(parts[1:], parts[0])))
    return taken


def team_probabilities(free: np.ndarray, tier: np.ndarray, weight: np.ndarray, teams: np.ndarray) -> sparse.csr_array:
    """Probability of every team, by drawing its servers one after another without replacement.

    Each draw takes from the lowest tier with a free server, in proportion to weight per server.

    Args:
      free: (N, G) free servers per group.
      tier, weight: (G,) of one task type, per server of the group.
      teams: (T, G) in the order of the columns; each row sums to k.

    Returns:
      (N, T); rows sum to 1 where k servers are free, to 0 elsewhere.
    """
    k = int(teams[0].sum())
    state = np.flatnonzero(free.sum(axis=1) >= k)
    taken = np.zeros((1, free.shape[1]), dtype=free.dtype)  # the teams drawn so far
    which = np.zeros(len(state), dtype=np.int64)
    probability = np.ones(len(state))
    for _ in range(k):
        row, group, chance = _draw(free[state] - taken[which], tier, weight)
        longer = taken[which[row]]
        longer[np.arange(len(row)), group] += 1
        taken, which = np.unique(longer, axis=0, return_inverse=True)
        merged = sparse.csr_array((probability[row] * chance, (state[row], which.ravel())), (len(free), len(taken)))
        state, which = merged.nonzero()
        probability = merged.data
    place = {tuple(team): i for i, team in enumerate(teams.tolist())}
    column = np.array([place[tuple(team)] for team in taken.tolist()], dtype=np.int64)
    return sparse.csr_array((probability, (state, column[which])), shape=(len(free), len(teams)))


def _draw(free: np.ndarray, tier: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The next server of every row: row, group and probability of all that can be drawn."""
    rows, groups, chances = [], [], []
    left = np.arange(len(free))
    for t in np.unique(tier):
        members = np.flatnonzero(tier == t)
        mass = free[np.ix_(left, members)] * weight[members]
        total = mass.sum(axis=1)
        hit = total > 0
        row, member = np.nonzero(mass[hit])
        rows.append(left[hit][row])
        groups.append(members[member])
        chances.append(mass[hit][row, member] / total[hit][row])
        left = left[~hit]
    return np.concatenate(rows), np.concatenate(groups), np.concatenate(chances)
