"""Full information, solved: what a dispatcher earns that sees every backlog before it chooses.

Servers of one kind are alike, so a state is how many servers of each kind hold 0, ..., K jobs just before the choice: an array
with one axis for each of `System.kinds`, and along it all ways to spread that kind's servers over the backlogs. A slot's
departures are one matrix for each axis, and a choice moves one server along one of them.
"""

from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from lagjax.errors import InputError
from lagjax.partial_information.arms import choosing, slot_matrix
from lagjax.partial_information.iteration import TOLERANCE, ExactReward, bracket, iterate
from lagjax.partial_information.system import System

MOST_STATES = 2_000_000


class Kind(NamedTuple):
    """The servers of one kind; S ways to spread them over Q = K + 1 backlogs, C choices of one of these backlogs.

    Attributes:
      counts: (S, Q) servers at each backlog.
      drain: (S, S) law one slot later.
      first: (S,) a way's first choice, that of its lowest backlog; up to the next one's are the others, ascending.
      reward: (C,) expected jobs taken by a choice.
      landing: (C, S) law of what it leads to.
    """

    counts: np.ndarray
    drain: np.ndarray
    first: np.ndarray
    reward: np.ndarray
    landing: csr_array


def seen_states(system: System) -> int:
    """States with all backlogs seen and equal servers counted together."""
    sizes = np.bincount(system.kinds[1])
    return math.prod(math.comb(int(n) + system.capacity, system.capacity) for n in sizes)


def seen_optimum(system: System, *, start: str = "full", tolerance: float = TOLERANCE) -> ExactReward:
    """The best over all policies that see all backlogs before they choose: no policy whatsoever is above it.

    Raises:
      InputError: more than MOST_STATES states.
    """
    kinds = _kinds(system)

    def best(after):
        found = np.full(after.shape, -np.inf)
        for axis, kind in enumerate(kinds):
            worth = _worth(system, kind.reward, kind.landing, after, axis)
            found = np.maximum(found, np.moveaxis(np.maximum.reduceat(worth, kind.first, axis=0), 0, axis))
        return found

    return _solved(system, kinds, best, start, tolerance)


def shortest_queue(system: System, ties: str, *, start: str = "full", tolerance: float = TOLERANCE) -> ExactReward:
    """What joining the shortest queue earns, with its ties broken in one of the ways of `policies.TIES`.

    Raises:
      InputError: more than MOST_STATES states.
    """
    kinds = _kinds(system)
    shares = _shares(system, kinds, ties)
    lowest = [(kind.reward[kind.first], kind.landing[kind.first]) for kind in kinds]

    def earned(after):
        return sum(
            share * np.moveaxis(_worth(system, *choice, after, axis), 0, axis)
            for axis, (share, choice) in enumerate(zip(shares, lowest, strict=True))
        )

    return _solved(system, kinds, earned, start, tolerance)


def _shares(system, kinds, ties):
    """For each kind: the probability in every state that the shortest queue chosen is one of its."""
    axes = len(kinds)
    along = [[-1 if i == axis else 1 for i in range(axes)] for axis in range(axes)]
    jobs = [np.argmax(kind.counts > 0, axis=1) for kind in kinds]
    tied = [kind.counts[np.arange(len(own)), own] for kind, own in zip(kinds, jobs, strict=True)]
    least = np.minimum.reduce(np.broadcast_arrays(*(own.reshape(to) for own, to in zip(jobs, along, strict=True))))
    weights = [
        np.where(own.reshape(to) == least, n.reshape(to), 0) for own, n, to in zip(jobs, tied, along, strict=True)
    ]
    if ties == "random":
        return [weight / sum(weights) for weight in weights]
    speed = system.kinds[0][:, 0] * (1 if ties == "slower" else -1)
    shares, taken = [np.empty(0)] * axes, np.zeros(least.shape, bool)
    for axis in np.argsort(speed, kind="stable"):
        shares[axis] = (weights[axis] > 0) & ~taken
        taken = taken | shares[axis]
    return shares


def _kinds(system) -> list[Kind]:
    states = seen_states(system)
    if states > MOST_STATES:
        raise InputError(
            f"{states:,} ways to spread jobs over the servers; solutions stop at {MOST_STATES:,}: use fewer servers, more equal "
            "ones or less capacity"
        )
    reward, landing = choosing(system)
    sizes = np.bincount(system.kinds[1])
    steps = [slot_matrix(rate, come, system.capacity) for rate, come in system.kinds[0]]
    return [_kind(int(n), step, reward, landing) for n, step in zip(sizes, steps, strict=True)]


def _kind(servers: int, step: np.ndarray, reward: np.ndarray, landing: np.ndarray) -> Kind:
    levels = len(step)
    one = np.eye(levels, dtype=np.int64)
    counts, drain = np.zeros((1, levels), np.int64), np.ones((1, 1))
    for n in range(1, servers + 1):  # n servers are one at their lowest backlog and n - 1 others
        fewer, less = counts, drain
        ways = itertools.combinations_with_replacement(range(levels), n)
        counts = np.array([np.bincount(way, minlength=levels) for way in ways])
        lowest = np.argmax(counts > 0, axis=1)
        rest = _places(fewer, counts - one[lowest])
        drain = np.zeros((len(counts), len(counts)))
        for level in range(levels):  # where that one comes to stand
            drain[:, _places(counts, fewer + one[level])] += step[lowest, level, None] * less[rest]
    way, jobs = np.nonzero(counts)
    choice, then = np.nonzero(landing[jobs])
    to = _places(counts, counts[way[choice]] - one[jobs[choice]] + one[then])
    law = csr_array((landing[jobs[choice], then], (choice, to)), shape=(len(way), len(counts)))
    return Kind(counts, drain, np.searchsorted(way, np.arange(len(counts))), reward[jobs], law)


def _places(counts, wanted) -> np.ndarray:
    """The rows of `counts` that equal those of `wanted`."""
    place = {row.tobytes(): i for i, row in enumerate(counts)}
    return np.array([place[row.tobytes()] for row in wanted], np.int64)


def _worth(system, reward, landing, after, axis):
    """(C, ...) what choices along an axis are worth, given values after them; that axis comes first."""
    first = np.moveaxis(after, axis, 0)
    later = landing @ first.reshape(len(first), -1)
    return (reward[:, None] + system.discount * later).reshape(-1, *first.shape[1:])


def _solved(system, kinds, choose, start, tolerance):
    def drained(v):
        for axis, kind in enumerate(kinds):
            v = np.moveaxis(np.tensordot(kind.drain, v, axes=(1, axis)), 0, axis)
        return v

    states = np.zeros([len(kind.counts) for kind in kinds])
    v, low, high = iterate(lambda v: choose(drained(v)), states, system, tolerance)
    jobs = system.capacity if start == "full" else 0
    here = tuple(int(np.argmax(kind.counts[:, jobs])) for kind in kinds)
    return bracket(drained(v)[here], low, high, system.discount)
