"""The Whittle index of every state (q, tau) of an arm: in closed form, or by the adaptive greedy algorithm with a certificate.

An arm that earns the subsidy gamma in every slot in which it is left alone is a semi-Markov decision problem on the K + 1 states
(q, 1): how many slots to wait before choosing it again. For a fixed set of passive states its values are linear in gamma. The
algorithm starts with no passive state and lets the state join next at which waiting first becomes as good as choosing: the
subsidy where that happens is its index. Values are h = V - g / (1 - beta), which also serve beta = 1, where g is the mean reward.

Certificate. The passive sets grow by construction. If each of them satisfies Bellman's equation at both ends of its interval of
subsidies then, its value being linear and the optimal one convex, it is optimal in between, and the arm is indexable with these
indices. `residual` is the largest amount by which a state would gain from the other action, over all intervals.

While the oldest states are active no policy waits beyond T, and its values are those of the arm without truncation. Truncation
can touch only indices within `truncation` of the one at T; older states have indices within `truncation` of that too.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.errors import InputError
from lagjax.partial_information.arms import Arm

CERTAIN = 1e-9  # residual, in jobs per unit of capacity, up to which an arm is called indexable
TOGETHER = 1e-10  # indices that close to the oldest states' are theirs
PRECISION = 1e-5  # of an index, in jobs: the truncation error that is accepted unasked


@dataclasses.dataclass(frozen=True, eq=False)
class IndexTable:
    """Whittle indices of one arm.

    Attributes:
      index: (K+1, T) jobs per slot; -inf in states that are never reached.
      truncation: what cutting ages at T can change of an index, at most.
      residual: largest gain from a deviation, over all subsidies; 0 for the closed form.
      slope: least derivative of (waiting - choosing) in the subsidy, in a state that was about to become passive.
      indexable: whether the certificate holds.
    """

    index: np.ndarray
    truncation: float
    residual: float
    slope: float
    indexable: bool


class Problem(NamedTuple):
    """What a set of passive states is solved with; Q = K + 1."""

    belief: jax.Array  # (Q, Q, T): by the backlog now, then by q and age
    reward: jax.Array  # (Q,)
    landing: jax.Array  # (Q, Q)
    power: jax.Array  # (T + 1,) beta^l; 0 at T, which stands for ever
    waited: jax.Array  # (T + 1,) 1 + beta + ... + beta^(l-1); 0 at T
    last: jax.Array  # () int32 T of this arm, less one; the arrays may be longer


class Values(NamedTuple):
    """Values of a set of passive states: each at subsidy 0, and its derivative in the subsidy."""

    gain: tuple[jax.Array, jax.Array]  # () g
    choose: tuple[jax.Array, jax.Array]  # (Q, T) choosing at each age
    after: tuple[jax.Array, jax.Array]  # (Q,) expected reward and value that follow, by the backlog found


def closed_form(backlog_free, discount: float) -> np.ndarray:
    """W(tau) of Model 1 for tau = 1, ..., T - 1 from a_tau = K - E(tau), tau = 1, ..., T (Chadaga and Modiano, section IV).

    W(tau) = [(1 - beta^(tau+1)) a_tau - beta (1 - beta^tau) a_(tau+1)] / (1 - beta), and (tau + 1) a_tau - tau a_(tau+1) at
    beta 1.
    """
    a = np.asarray(backlog_free, np.float64)
    waited = geometric(discount, len(a))[1]
    return waited[2:] * a[:-1] - discount * waited[1:-1] * a[1:]


def whittle_indices(arms: Sequence[Arm], precision: float = PRECISION) -> list[IndexTable]:
    """Computes the indices of several arms of one capacity side by side; Model 1's by the closed form.

    Raises:
      InputError: truncation can change an index by more than `precision`.
    """
    if not precision > 0:
        raise InputError(f"precision is {precision:g}; give a positive number of jobs")
    closed = [_closed(arm) if arm.resets else None for arm in arms]
    rest = [arm for arm in arms if not arm.resets]
    found = iter(adaptive_greedy(rest) if rest else [])
    tables = [table or next(found) for table in closed]
    for arm, table in zip(arms, tables, strict=True):
        if not table.truncation <= precision:
            raise InputError(
                f"{arm.ages} ages leave an error of up to {table.truncation:.1g} in an index, above the precision {precision:g}; "
                "use more ages, or ask for less precision"
            )
    return tables


def adaptive_greedy(arms: Sequence[Arm]) -> list[IndexTable]:
    """The algorithm of this file for arms of one capacity, in float64, side by side on JAX's default device."""
    ages = max(arm.ages for arm in arms)
    with jax.enable_x64(True):
        problems = jax.tree.map(lambda *xs: jnp.stack(xs), *(problem(arm, ages) for arm in arms))
        index, residual, slope, end = jax.device_get(_greedy(problems, jnp.asarray(arms[0].discount)))
    tables = []
    for i, arm in enumerate(arms):
        truncation = 2 * arm.tail * float(end[i, 0]) / float(end[i, 1])
        # The oldest states become passive together, though their beliefs differ by the tail.
        most = CERTAIN * arm.capacity + 2 * arm.tail * float(end[i, 0])
        certain = bool(residual[i] <= most and slope[i] > 0)
        tables.append(IndexTable(index[i][:, : arm.ages], truncation, float(residual[i]), float(slope[i]), certain))
    return tables


def problem(arm: Arm, ages: int) -> Problem:
    """An arm as arrays for ages up to `ages`, repeating its oldest belief."""
    longer = np.pad(arm.belief, ((0, 0), (0, ages - arm.ages), (0, 0)), mode="edge").transpose(2, 0, 1)
    power, waited = geometric(arm.discount, ages)
    power[-1] = waited[-1] = 0.0
    last = jnp.asarray(arm.ages - 1, jnp.int32)
    reward, landing = jnp.asarray(arm.reward), jnp.asarray(arm.landing)
    return Problem(jnp.asarray(longer), reward, landing, jnp.asarray(power), jnp.asarray(waited), last)


def geometric(discount: float, most: int) -> tuple[np.ndarray, np.ndarray]:
    """(most + 1,) beta^l and 1 + ... + beta^(l-1) for l = 0, ..., most."""
    power = discount ** np.arange(most + 1)
    return power, np.r_[0.0, np.cumsum(power[:-1])]


def solve(p: Problem, discount, stop, gave_up) -> Values:
    """Values of waiting `stop` (Q,) slots in state (q, 1), T for ever.

    Args:
      gave_up: whether the oldest states are passive: then g = gamma and waiting for ever has value 0; else h(K, 1) = 0.
    """
    size = p.reward.shape[0]
    row = p.belief[:, jnp.arange(size), jnp.minimum(stop, p.last)].T
    reach, length = p.power[stop], p.waited[stop]
    moves = jnp.eye(size) - discount * reach[:, None] * _product(row, p.landing)
    matrix = jnp.where(gave_up, moves, jnp.concatenate([moves[:, :-1], (length + reach)[:, None]], axis=1))
    found = jnp.linalg.solve(
        matrix, jnp.stack([reach * _product(row, p.reward[:, None])[:, 0], jnp.where(gave_up, -reach, length)], axis=1)
    )
    gain = jnp.where(gave_up, jnp.array([0.0, 1.0]), found[-1])
    h = jnp.where(gave_up, found, found.at[-1].set(0.0))
    after = discount * _product(p.landing, h) + jnp.stack([p.reward, jnp.zeros(size)], axis=1)
    choose = [jnp.sum(p.belief * after[:, c, None, None], axis=0) - gain[c] for c in range(2)]
    return Values((gain[0], gain[1]), (choose[0], choose[1]), (after[:, 0], after[:, 1]))


def _product(a, b):
    """a @ b of small matrices, as a sum that XLA fuses."""
    return jnp.sum(a[:, :, None] * b[None], axis=1)


def waiting_for(p: Problem, following):
    """From `following` (Q, T), the next active age from each age on, less one (T: none), what one slot of waiting leads to.

    Returns:
      (Q, T) the active age reached if a slot passes, less one, T where there is none; beta to the power of the slots waited after
      that slot; and the discounted number of those slots.
    """
    here = jnp.minimum(jnp.arange(following.shape[1], dtype=jnp.int32) + 1, p.last)  # the age, less one, after a slot
    target = following[:, here]
    wait = jnp.where(target == following.shape[1], target, target - here)
    return target, p.power[wait], p.waited[wait]


def gain_from_choosing(discount, values: Values, waiting) -> tuple[jax.Array, jax.Array]:
    """(Q, T) choosing now less waiting a slot and then until the next active age, at subsidy 0, and its derivative."""
    target, power, waited = waiting
    out = []
    for c in range(2):
        subsidy = c - values.gain[c]
        then = jnp.take_along_axis(values.choose[c], jnp.minimum(target, target.shape[1] - 1), axis=1)
        out.append(values.choose[c] - subsidy - discount * (waited * subsidy + power * then))
    return out[0], out[1]


class _State(NamedTuple):
    active: jax.Array  # (Q, T)
    following: jax.Array  # (Q, T) next active age from here on, less one; T where there is none
    reached: jax.Array  # (Q, T) subsidy at which a state became passive
    gave_up: jax.Array
    before: jax.Array  # subsidy at which the last state became passive
    residual: jax.Array
    slope: jax.Array
    end: jax.Array  # (2,) span of what follows choosing, and slope, when the oldest states became passive


@jax.jit
def _greedy(problems, discount):
    return jax.vmap(_one_arm, in_axes=(0, None))(problems, discount)


def _one_arm(p, discount):
    size, ages = p.belief.shape[1:]
    age = jnp.arange(ages, dtype=jnp.int32)
    exists = jnp.broadcast_to(age <= p.last, (size, ages))
    number = jnp.arange(size * ages, dtype=jnp.int32).reshape(size, ages)
    together = TOGETHER * jnp.max(p.reward)

    def step(s):
        values = solve(p, discount, s.following[:, 0], s.gave_up)
        level, fall = gain_from_choosing(discount, values, waiting_for(p, s.following))
        slope = -fall
        critical = jnp.where(s.active & (slope > 0), level / slope, jnp.inf)
        place = jnp.argmin(critical).astype(jnp.int32)
        now = jnp.maximum(critical.reshape(-1)[place], s.before)  # a decrease shows in the residual
        lost = jnp.where(s.active, -1.0, 1.0) * jnp.stack([level - slope * s.before, level - slope * now])
        worst = jnp.max(jnp.where(exists & jnp.isfinite(s.before), lost, jnp.where(exists, lost[1], -jnp.inf)))
        # With an oldest state all of them, and whoever is as good as they: beyond, there is only rounding to tell them apart.
        oldest = place % ages == p.last
        joins = s.active & jnp.where(oldest, (age == p.last) | (critical <= now + together), number == place)
        active = s.active & ~joins
        following = lax.cummin(jnp.where(active, age, ages), axis=1, reverse=True)
        follows = values.after[0] + now * values.after[1]
        end = jnp.stack([jnp.max(follows) - jnp.min(follows), slope.reshape(-1)[place]])
        return _State(
            active, following, jnp.where(joins, now, s.reached), s.gave_up | oldest, now,
            jnp.maximum(s.residual, worst), jnp.minimum(s.slope, slope.reshape(-1)[place]),
            jnp.where(oldest & ~s.gave_up, end, s.end),
        )  # fmt: skip

    start = _State(
        exists, jnp.broadcast_to(jnp.minimum(age, p.last), (size, ages)), jnp.full((size, ages), -jnp.inf),
        jnp.asarray(False), jnp.asarray(-jnp.inf), jnp.asarray(0.0), jnp.asarray(jnp.inf), jnp.ones(2),
    )  # fmt: skip
    final = lax.while_loop(lambda s: jnp.any(s.active) & jnp.isfinite(s.residual), step, start)
    return final.reached, final.residual, final.slope, final.end


def _closed(arm):
    """Row K by the closed form, row 0 (known to be empty, where a run may start) K."""
    a = arm.expected[-1]
    index = np.full((arm.capacity + 1, arm.ages), -np.inf)
    index[0] = arm.capacity
    index[-1, :-1] = closed_form(a, arm.discount)
    index[-1, -1] = index[-1, -2]
    # Older indices lie between the last one and K, their limit.
    truncation = arm.capacity - index[-1, -1]
    return IndexTable(index, float(max(truncation, 0.0)), 0.0, np.inf, bool(np.all(np.diff(index[-1]) >= -CERTAIN)))
