"""Plain routing to finite queues: formulas with mpmath, the joint chain state by state, one event at a time; nothing shared."""

import itertools

import mpmath
import numpy as np


def weights(servers, room, load):
    """Unnormalised stationary law of M/M/m/n, in mpmath numbers."""
    out = [mpmath.mpf(1)]
    for x in range(1, room + 1):
        out.append(out[-1] * mpmath.mpf(load) / min(x, servers))
    return out


def blocking_and_mean(servers, room, load):
    """B and L of M/M/m/n."""
    w = weights(servers, room, load)
    total = mpmath.fsum(w)
    return w[-1] / total, mpmath.fsum(x * v for x, v in enumerate(w)) / total


def restless_index(servers, load, arrival_rate, x):
    """The published quotient of differences."""
    b0, l0 = blocking_and_mean(servers, x, load)
    b1, l1 = blocking_and_mean(servers, x + 1, load)
    return (l1 - l0) / (mpmath.mpf(arrival_rate) * (b0 - b1))


def lowest(index, room, state):
    """Queues with room of the lowest index; `index(k, x)`."""
    open_queues = [k for k, x in enumerate(state) if x < room[k]]
    if not open_queues:
        return []
    best = min(index(k, state[k]) for k in open_queues)
    return [k for k in open_queues if index(k, state[k]) <= best * (1 + 1e-12)]


def stationary_loss(servers, room, rates, arrival_rate, goes, number=float):
    """Jobs lost per unit time when a job in state s goes to queue k with probability goes(s)[k]; a job is lost at a full queue.

    Elimination of states without subtractions (Grassmann, Taksar and Heyman), in numbers of the given kind.
    """
    states = list(itertools.product(*[range(n + 1) for n in room]))
    place = {s: i for i, s in enumerate(states)}
    rate = [[number(0)] * len(states) for _ in states]
    lost = []
    for s, i in place.items():
        away = number(0)
        for k, share in enumerate(goes(s)):
            if share and s[k] < room[k]:
                rate[i][place[(*s[:k], s[k] + 1, *s[k + 1 :])]] += number(share) * number(arrival_rate)
                away += number(share)
        lost.append(number(arrival_rate) * (number(1) - away) if away else number(arrival_rate))
        for k, x in enumerate(s):
            if x:
                rate[i][place[(*s[:k], x - 1, *s[k + 1 :])]] += number(min(x, servers[k])) * number(rates[k])
    count = len(states)
    for last in range(count - 1, 0, -1):
        total = sum(rate[last][:last], number(0))
        for i in range(last):
            rate[i][last] = rate[i][last] / total
            if rate[i][last]:
                for j in range(last):
                    if j != i and rate[last][j]:
                        rate[i][j] += rate[i][last] * rate[last][j]
    law = [number(1)]
    for last in range(1, count):
        law.append(sum((law[i] * rate[i][last] for i in range(last)), number(0)))
    total = sum(law, number(0))
    return sum((p * loss for p, loss in zip(law, lost, strict=True)), number(0)) / total


def value_iteration(servers, room, rates, arrival_rate, span=1e-13):
    """The least loss by relative value iteration over a plain array of states: (lower, upper)."""
    servers, room, rates = np.asarray(servers), np.asarray(room), np.asarray(rates, float)
    top = arrival_rate + servers @ rates
    value = np.zeros(room + 1)
    jobs = np.indices(value.shape)
    full = np.all(jobs == room.reshape(-1, *[1] * len(room)), axis=0)
    while True:
        after = np.full(value.shape, np.inf)
        served, stay = np.zeros(value.shape), np.full(value.shape, top - arrival_rate)
        for k in range(len(room)):
            more = np.full(value.shape, np.inf)
            low = tuple(slice(0, -1) if i == k else slice(None) for i in range(len(room)))
            high = tuple(slice(1, None) if i == k else slice(None) for i in range(len(room)))
            more[low] = value[high]
            after = np.minimum(after, more)
            ends = np.minimum(jobs[k], servers[k]) * rates[k]
            less = np.zeros(value.shape)
            less[high] = value[low]
            served, stay = served + ends * less, stay - ends
        new = arrival_rate * np.where(full, 1 + value, np.where(full, 0, after)) + served + stay * value
        step = new - top * value
        if np.ptp(step) < span * top:
            return float(step.min()), float(step.max())
        value = new / top
        value = value - value.flat[0]


def follow(rank, room, state, queue, server, word, split=None):
    """One event of one replica, an arrival where `queue` is K; `split` is where a splitting would send a job.

    Returns the new state (a list), and whether an arrival would have been lost.
    """
    goes = split
    if rank is not None:
        open_queues = [k for k, x in enumerate(state) if x < room[k]]
        best = min((rank[k][state[k]] for k in open_queues), default=None)
        tied = [k for k in open_queues if rank[k][state[k]] == best]
        goes = tied[int(word) * len(tied) >> 32] if tied else None
    elif state[goes] == room[goes]:
        goes = None
    state = list(state)
    if queue == len(room):
        if goes is not None:
            state[goes] += 1
    elif state[queue] > server:
        state[queue] -= 1
    return state, goes is None
