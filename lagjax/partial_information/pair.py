"""Two servers, solved: the best that any dispatcher can do with what it sees, and every policy's value.

Right after a choice one server has been seen now and the other one tau slots ago, so the joint belief is (who was chosen
last, its q, the other's q, tau).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from lagjax.errors import InputError
from lagjax.partial_information.arms import Arm, arms_of
from lagjax.partial_information.iteration import TOLERANCE, ExactReward, bracket, iterate
from lagjax.partial_information.model import policy_tables
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.seen import shortest_queue
from lagjax.partial_information.system import System

MAX_STATES = 1_000_000


def optimum(
    system: System, *, start: str = "full", ages: int | None = None, tolerance: float = TOLERANCE
) -> ExactReward:
    """The best over all policies that see what the dispatcher sees, for N = 2.

    Raises:
      InputError: not two servers, or too many states.
    """
    arms = _two(system, ages)
    same, other = _actions(arms, system.discount)
    return _value(lambda v: np.maximum(same(v), other(v)), _shape(arms), system, arms, start, tolerance)


def evaluate(
    system: System, policy: Dispatching, *, start: str = "full", ages: int | None = None, tolerance: float = TOLERANCE
) -> ExactReward:
    """The value of one policy, for N = 2; of those that see backlogs too."""
    arms = _two(system, ages)
    if policy.rule == "backlog":
        return shortest_queue(system, policy.ties, start=start, tolerance=tolerance)
    same, other = _actions(arms, system.discount)
    share = _other_share(system, policy, arms)
    return _value(lambda v: same(v) + share * (other(v) - same(v)), _shape(arms), system, arms, start, tolerance)


def _two(system, ages) -> list[Arm]:
    if system.num_servers != 2:
        raise InputError(f"{system.num_servers} servers; the joint problem is solved for 2")
    if ages is None:
        ages = max(arm.ages for arm in arms_of(system))
    states = 2 * (system.capacity + 1) ** 2 * ages
    if states > MAX_STATES:
        raise InputError(
            f"two servers have {states:,} joint beliefs; solutions stop at {MAX_STATES:,}: use less capacity or fewer ages"
        )
    arms = arms_of(system, ages)
    return [arms[kind] for kind in system.kinds[1]]


def _shape(arms):
    """(last chosen, its q, the other's q, the other's age)."""
    return 2, arms[0].capacity + 1, arms[0].capacity + 1, arms[0].ages


def _actions(arms, discount) -> tuple[Callable, Callable]:
    """What choosing the same server again, and the other one, is worth, given values of the shape `_shape`."""
    reward = [arm.expected for arm in arms]
    moves = [arm.belief @ arm.landing for arm in arms]

    def same(v):
        older = np.concatenate([v[..., 1:], v[..., -1:]], axis=-1)
        then = [np.tensordot(moves[i][:, 0], older[i], axes=1) for i in range(2)]
        return np.stack([reward[i][:, 0][:, None, None] + discount * then[i] for i in range(2)])

    def other(v):
        out = []
        for j in (1, 0):
            then = moves[j] @ v[j][:, :, 1]  # (q of j, age, q of i)
            out.append((reward[j][..., None] + discount * then).transpose(2, 0, 1))
        return np.stack(out)

    return same, other


def _other_share(system, policy, arms):
    """Probability of choosing the server that was not chosen last, of a shape that broadcasts to `_shape`."""
    if policy.rule == "turn":
        return 1.0
    if policy.rule == "random":
        return 0.5
    tables = policy_tables(system, policy)
    assert tables.entry is not None and tables.fresh is not None and tables.ages is not None
    keys = []
    for n in range(2):
        age = np.minimum(np.arange(arms[n].ages), tables.ages[n] - 1)
        codes = tables.fresh[n] + np.arange(arms[n].capacity + 1)[:, None] * tables.ages[n] + age
        keys.append((tables.entry[codes] & ~np.uint32(128)) | tables.place[n])
    share = [keys[j][None] < keys[i][:, 0][:, None, None] for i, j in ((0, 1), (1, 0))]
    return np.stack(share).astype(float)


def _value(operator, shape, system, arms, start, tolerance):
    jobs = system.capacity if start == "full" else 0
    occurs_ever = arms[0].landing.any(axis=0) | (np.arange(system.capacity + 1) == jobs)
    known = np.flatnonzero(occurs_ever)
    occurs = np.ix_(np.arange(2), known, known)
    v, low, high = iterate(operator, np.zeros(shape), system, tolerance, occurs)
    span = np.ptp(v[occurs])
    tail = max(arm.tail for arm in arms) * (system.capacity + span)
    here = v[1, jobs, jobs, 0]  # as if server 2 had been chosen last: round robin starts with server 1
    return bracket(here, low - tail, high + tail, system.discount)
