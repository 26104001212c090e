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


def shortest(backlogs, rates, ties, rng=None):
    """The server that joining the shortest queue chooses."""
    tied = [n for n, q in enumerate(backlogs) if q == min(backlogs)]
    if ties == "random":
        return int(rng.choice(tied))
    return min(tied, key=lambda n: (rates[n] if ties == "slower" else -rates[n], n))


def follow_shortest(rates, capacity, blocking, served, start, ties, rng=None):
    """Jobs taken in every slot by joining the shortest queue: (T, N) jobs that can be served."""
    backlog, taken = [start] * len(rates), []
    for slot in served.tolist():
        backlog = [max(q - d, 0) for q, d in zip(backlog, slot, strict=True)]
        best = shortest(backlog, rates, ties, rng)
        jobs = capacity - backlog[best] if not blocking or backlog[best] == 0 else 0
        backlog[best] += jobs
        taken.append(jobs)
    return taken


def seen(rates, capacity, blocking, discount, ties=None, tolerance=1e-11):
    """Value from full servers where all backlogs are seen, every server told apart: of the shortest queue, or the optimum."""
    shape = (capacity + 1,) * len(rates)
    drain = [np.array([law(q, rate, capacity) for q in range(capacity + 1)]) for rate in rates]

    def choose(after, backlogs, n):
        room = capacity - backlogs[n] if not blocking or backlogs[n] == 0 else 0
        return room + discount * after[(*backlogs[:n], backlogs[n] + room, *backlogs[n + 1 :])]

    value = np.zeros(shape)
    while True:
        after = value
        for axis, matrix in enumerate(drain):
            after = np.moveaxis(np.tensordot(matrix, after, axes=(1, axis)), 0, axis)
        new = np.empty(shape)
        for backlogs in np.ndindex(shape):
            worth = [choose(after, backlogs, n) for n in range(len(rates))]
            tied = [n for n in range(len(rates)) if backlogs[n] == min(backlogs)]
            if ties is None:
                new[backlogs] = max(worth)
            elif ties == "random":
                new[backlogs] = np.mean([worth[n] for n in tied])
            else:
                new[backlogs] = worth[shortest(backlogs, rates, ties)]
        if np.abs(new - value).max() < tolerance:
            return after[(capacity,) * len(rates)]
        value = new
