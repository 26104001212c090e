"""Optimal waiting at a given subsidy, by policy iteration, for many subsidies and arms at once; and the indexability report.

Nothing here rests on thresholds or on indexability: each problem is solved by itself. The passive sets at growing subsidies are
what Whittle's definition asks to be nested, and a state that leaves them is a counter-example.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.errors import InputError
from lagjax.partial_information.arms import Arm
from lagjax.partial_information.index import Problem, adaptive_greedy, problem, solve

TIE = 1e-10  # jobs per unit of capacity by which one action must be better than the other
MAX_ROUNDS = 200  # of policy iteration; 5 to 15 are usual
GRID = 257  # subsidies of a report


class Passive(NamedTuple):
    """Optimal solutions of one arm at G subsidies.

    Attributes:
      passive: (G, K+1, T) whether waiting is better than choosing, by more than a tie.
      gain: (G,) mean reward per slot with subsidies, (1 - beta) times the value of (K, 1).
    """

    passive: np.ndarray
    gain: np.ndarray


class Indexability(NamedTuple):
    """The report on one arm.

    Attributes:
      verdict: "indexable" (the certificate of the adaptive greedy algorithm holds), "not indexable" (there is a
        counter-example) or "undecided".
      residual: largest gain from a deviation that the certificate leaves.
      slope: least slope met there.
      counter_example: None, or (q, tau, low, high): passive at subsidy low and active at the higher one.
      monotone: whether thresholds grow with q, on the grid of subsidies (not needed for indexability).
      subsidies: how many were solved for.
    """

    verdict: str
    residual: float
    slope: float
    counter_example: tuple[int, int, float, float] | None
    monotone: bool
    subsidies: int


def subsidised(arms: Sequence[Arm], subsidies) -> list[Passive]:
    """Solves arms of one capacity for each of (G,) subsidies per slot of waiting.

    Raises:
      InputError: a subsidy is not a finite number.
    """
    subsidies = np.atleast_1d(np.asarray(subsidies, np.float64))
    if not np.isfinite(subsidies).all():
        raise InputError("subsidies must be finite numbers of jobs per slot")
    ages = max(arm.ages for arm in arms)
    with jax.enable_x64(True):
        problems = jax.tree.map(lambda *xs: jnp.stack(xs), *(problem(arm, ages) for arm in arms))
        passive, gain, settled = jax.device_get(
            _solve_all(problems, jnp.asarray(arms[0].discount), jnp.asarray(subsidies))
        )
    if not settled.all():
        raise InputError(f"policy iteration did not settle in {MAX_ROUNDS} rounds; use fewer ages")
    return [Passive(p[..., : arm.ages], g) for arm, p, g in zip(arms, passive, gain, strict=True)]


def thresholds(index: np.ndarray, subsidies) -> np.ndarray:
    """(G, K+1) first age tau*_q at which choosing is optimal, from indices (K+1, T) that grow with age; inf where none is."""
    above = index[None] > np.asarray(subsidies, np.float64)[:, None, None]
    return np.where(above.any(axis=-1), above.argmax(axis=-1) + 1.0, np.inf)


def indexability(arms: Sequence[Arm], subsidies=None) -> list[Indexability]:
    """Reports on arms of one capacity: by the certificate, and by the passive sets at each subsidy (GRID from 0 to K by
    default)."""
    grid = np.linspace(0, arms[0].capacity, GRID) if subsidies is None else np.sort(np.atleast_1d(subsidies))
    reports = []
    for table, found in zip(adaptive_greedy(arms), subsidised(arms, grid), strict=True):
        example = _leaves(found.passive, grid)
        verdict = "not indexable" if example else "indexable" if table.indexable else "undecided"
        waits = np.where(found.passive.all(axis=-1), np.inf, found.passive.argmin(axis=-1) + 1.0)[:, 1:]
        monotone = bool(np.all(waits[:, 1:] >= waits[:, :-1]))
        reports.append(Indexability(verdict, table.residual, table.slope, example, monotone, len(grid)))
    return reports


def _leaves(passive, grid):
    """The first state that is passive at one subsidy and active at a higher one."""
    gone = np.argwhere(np.maximum.accumulate(passive, axis=0) & ~passive)
    if not len(gone):
        return None
    high, q, age = gone[0]
    low = np.flatnonzero(passive[:high, q, age])[-1]
    return int(q), int(age) + 1, float(grid[low]), float(grid[high])


@jax.jit
def _solve_all(problems, discount, subsidies):
    each = jax.vmap(_best_waiting, in_axes=(None, None, 0))
    return jax.vmap(each, in_axes=(0, None, None))(problems, discount, subsidies)


def _best_waiting(p: Problem, discount, subsidy):
    size, ages = p.belief.shape[1:]
    age = jnp.arange(ages, dtype=jnp.int32)
    least = TIE * (p.reward.shape[0] - 1)

    def at(stop, gave_up):
        values = solve(p, discount, stop, gave_up)
        gain, choose = (one[0] + subsidy * one[1] for one in (values.gain, values.choose))
        return subsidy - gain, choose

    def improve(carry):
        stop, gave_up, _, rounds = carry
        net, choose = at(stop, gave_up)
        value = p.waited[:-1] * net + p.power[:-1] * choose
        value = jnp.where(age <= p.last, value, -jnp.inf)
        value = jnp.concatenate([value, jnp.where(gave_up, 0.0, -jnp.inf).repeat(size)[:, None]], axis=1)
        now = jnp.take_along_axis(value, stop[:, None], axis=1)[:, 0]
        better = jnp.max(value, axis=1) > now + least / 100
        new = jnp.where(better, jnp.argmax(value, axis=1).astype(jnp.int32), stop)
        settled = ~jnp.any(better)
        # Settled with the oldest states active: would they rather wait?
        gives_up = settled & ~gave_up & (net - (1 - discount) * choose[-1, p.last] > least / 100)
        new = jnp.where(gives_up, ages, new)
        return new, gave_up | gives_up, settled & ~gives_up, rounds + 1

    start = (jnp.zeros(size, jnp.int32), jnp.asarray(False), jnp.asarray(False), jnp.asarray(0))
    stop, gave_up, settled, _ = lax.while_loop(lambda c: ~c[2] & (c[3] < MAX_ROUNDS), improve, start)
    net, choose = at(stop, gave_up)

    def back(later, now):  # from old to young
        wait = net + discount * later
        return jnp.maximum(wait, now), wait - now > least

    oldest = jnp.where(gave_up, jnp.maximum(choose[:, -1], 0.0), choose[:, -1])
    passive = lax.scan(back, oldest, choose.T, reverse=True)[1].T
    return passive, subsidy - net, settled
