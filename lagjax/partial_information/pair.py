"""Two servers, solved: the best that any dispatcher can do with what it sees, the best with all backlogs seen, and every
policy's value.

Right after a choice one server has been seen now and the other one tau slots ago, so the joint belief is (who was chosen
last, its
q, the other's q, tau). Values come from damped value iteration and are bracketed: for any V, the value exceeds V by between
the least and the largest entry of TV - V, over 1 - beta (at beta = 1 these bracket the mean reward itself).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lagjax.errors import InputError
from lagjax.partial_information.arms import Arm, arms_of, slot_matrix
from lagjax.partial_information.model import policy_tables
from lagjax.partial_information.policies import Dispatching
from lagjax.partial_information.system import System

MOST_STATES = 1_000_000
TOLERANCE = 1e-9  # width of a bracket, relative to K slots' worth of jobs per slot
MOST_SWEEPS = 100_000
_DAMPING = 0.7  # keeps what alternates from doing so for ever


class PairValue(NamedTuple):
    """Discounted reward from the start, for ever; at discount 1 the mean reward per slot.

    Attributes:
      value: the middle of the bracket.
      lower, upper: bracket, with what truncating ages can change.
    """

    value: float
    lower: float
    upper: float


def optimum(system: System, *, start: str = "full", ages: int | None = None, tolerance: float = TOLERANCE) -> PairValue:
    """The best over all policies that see what the dispatcher sees, for N = 2.

    Raises:
      InputError: not two servers, or too many states.
    """
    arms = _two(system, ages)
    same, other = _actions(arms, system.discount)
    return _value(lambda v: np.maximum(same(v), other(v)), _shape(arms), system, arms, start, tolerance)


def evaluate(
    system: System, policy: Dispatching, *, start: str = "full", ages: int | None = None, tolerance: float = TOLERANCE
) -> PairValue:
    """The value of one policy, for N = 2; of "jsq" too, which sees backlogs."""
    arms = _two(system, ages)
    if policy.rule == "backlog":
        jobs = np.arange(system.capacity + 1)
        first = int(np.argmax(system.rates))  # wins ties
        lower = jobs[:, None] < jobs if first else jobs[:, None] <= jobs
        zero, one = _seen_actions(system)
        return _seen_value(lambda v: np.where(lower, zero(v), one(v)), system, start, tolerance)
    same, other = _actions(arms, system.discount)
    share = _other_share(system, policy, arms)
    return _value(lambda v: same(v) + share * (other(v) - same(v)), _shape(arms), system, arms, start, tolerance)


def seen_optimum(system: System, *, start: str = "full", tolerance: float = TOLERANCE) -> PairValue:
    """The best over all policies that see both backlogs before they choose: above everything, the oracle included."""
    if system.num_servers != 2:
        raise InputError(f"{system.num_servers} servers; the joint problem is solved for 2")
    zero, one = _seen_actions(system)
    return _seen_value(lambda v: np.maximum(zero(v), one(v)), system, start, tolerance)


def _two(system, ages) -> list[Arm]:
    if system.num_servers != 2:
        raise InputError(f"{system.num_servers} servers; the joint problem is solved for 2")
    if ages is None:
        ages = max(arm.ages for arm in arms_of(system))
    states = 2 * (system.capacity + 1) ** 2 * ages
    if states > MOST_STATES:
        raise InputError(
            f"two servers have {states:,} joint beliefs; solutions stop at {MOST_STATES:,}: use less capacity or fewer ages"
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
        return np.stack(
            [
                reward[i][:, 0][:, None, None] + discount * np.tensordot(moves[i][:, 0], older[i], axes=1)
                for i in range(2)
            ]
        )

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
    known = np.flatnonzero(
        arms[0].landing.any(axis=0) | (np.arange(system.capacity + 1) == jobs)
    )  # the others never occur
    occurs = np.ix_(np.arange(2), known, known)
    v, low, high = _iterate(operator, np.zeros(shape), system, tolerance, occurs)
    span = np.ptp(v[occurs])
    tail = max(arm.tail for arm in arms) * (system.capacity + span)
    here = v[1, jobs, jobs, 0]  # as if server 2 had been chosen last: round robin starts with server 1
    return _bracket(here, low - tail, high + tail, system.discount)


def _seen_actions(system):
    """What choosing server 1, and server 2, is worth at backlogs (Q1, Q2), given values of that shape."""
    arms = _two(system, 2)
    step = [slot_matrix(r, x, system.capacity) for r, x in zip(system.rates, system.exogenous, strict=True)]
    drawn = [arm.landing @ p for arm, p in zip(arms, step, strict=True)]
    reward, discount = arms[0].reward, system.discount
    return (
        lambda v: reward[:, None] + discount * drawn[0] @ v @ step[1].T,
        lambda v: reward[None, :] + discount * step[0] @ v @ drawn[1].T,
    )


def _seen_value(operator, system, start, tolerance):
    v, low, high = _iterate(operator, np.zeros((system.capacity + 1,) * 2), system, tolerance)
    step = [slot_matrix(r, x, system.capacity) for r, x in zip(system.rates, system.exogenous, strict=True)]
    jobs = system.capacity if start == "full" else 0
    return _bracket(step[0][jobs] @ v @ step[1][jobs], low, high, system.discount)


def _iterate(operator, v, system, tolerance, counted=...):
    wide = tolerance * system.capacity
    for _ in range(MOST_SWEEPS):
        change = operator(v) - v
        low, high = change[counted].min(), change[counted].max()
        if high - low <= wide * (1 - system.discount if system.discount < 1 else 1):
            return v, low, high
        v = v + _DAMPING * change
        # In the discounted problem a constant converges slowly by itself and at once if it is added; else it only grows.
        v = (
            v
            + ((low + high) / 2 / (1 - system.discount) if system.discount < 1 else 0)
            - (v.min() if system.discount == 1 else 0)
        )
    raise InputError(f"value iteration did not settle in {MOST_SWEEPS:,} sweeps; ask for a coarser tolerance")


def _bracket(here, low, high, discount):
    if discount < 1:
        low, high = here + low / (1 - discount), here + high / (1 - discount)
    return PairValue(float((low + high) / 2), float(low), float(high))
