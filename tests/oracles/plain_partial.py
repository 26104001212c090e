"""Plain programs for one arm and for one run of dispatching, written without the library's tricks."""

import numpy as np
from scipy.stats import poisson


def law(backlog, mean, capacity):
    """Law of max(backlog - Poisson(mean), 0) by summing the probabilities."""
    out = np.zeros(capacity + 1)
    for served in range(backlog):
        out[backlog - served] = poisson.pmf(served, mean)
    out[0] = 1 - out[1:].sum()
    return out


def advantage(belief, reward, landing, discount, subsidy, sweeps=200_000, tolerance=1e-12):
    """Choosing less waiting in every state (q, age), by value iteration on all of them; relative and damped at discount 1."""
    value = np.zeros(belief.shape[:2])
    for _ in range(sweeps):
        choose = belief @ (reward + discount * landing @ value[:, 0])
        wait = subsidy + discount * np.concatenate([value[:, 1:], value[:, -1:]], axis=1)
        new = np.maximum(choose, wait)
        change = new - value
        if np.ptp(change) < tolerance:
            return choose - wait
        value = value + 0.9 * change
        value -= value[-1, 0] if discount == 1 else 0
    raise AssertionError("value iteration did not settle")


def follow(index, rates, capacity, blocking, served, start):
    """Jobs taken in every slot by an index policy: (T, N) jobs that can be served; index[n][q, age - 1], the last age for
    older ones."""
    servers = len(rates)
    backlog, seen, age, taken = [start] * servers, [start] * servers, [0] * servers, []
    for slot in served.tolist():
        backlog = [max(q - d, 0) for q, d in zip(backlog, slot, strict=True)]
        age = [min(a + 1, index[n].shape[1]) for n, a in enumerate(age)]
        best = max(range(servers), key=lambda n: (round(index[n][seen[n], age[n] - 1], 9), rates[n], -n))
        room = capacity - backlog[best]
        jobs = room if not blocking or backlog[best] == 0 else 0
        backlog[best] += jobs
        seen[best], age[best] = backlog[best], 0
        taken.append(jobs)
    return taken


def open_loop(index, rates, capacity, slots):
    """Expected jobs taken in each slot of Model 1 from full servers, where choices depend on ages alone; index[n][age - 1]."""
    age, out = np.ones(len(rates), int), []
    for _ in range(slots):
        values = [round(index[n][min(a, len(index[n])) - 1], 9) for n, a in enumerate(age)]
        best = max(range(len(rates)), key=lambda n: (values[n], rates[n], -n))
        out.append(capacity - law(capacity, rates[best] * age[best], capacity) @ np.arange(capacity + 1))
        age += 1
        age[best] = 1
    return np.array(out)
