"""Small systems, every server by itself: rewards of many policies, one dense solution each, and the optimum beside its bound."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from lagjax.errors import InputError
from lagjax.exact.blocking import exact_blocking
from lagjax.exact.chain import build_chain
from lagjax.exact.choice import team_probabilities
from lagjax.exact.optimum import optimum
from lagjax.exact.orders import move_rows
from lagjax.exact.service import service_of
from lagjax.instance import Instance
from lagjax.lp import SolverError, occ_upper_bound

MAX_STATES = 512
_MAX_ENTRIES = 20_000_000  # of the rows of all teams


def tier_rewards(instance: Instance) -> Callable[..., float] | None:
    """Returns the function (tier, weight) -> reward per step of that race in tiers, at one copy of every server.

    Both are (V, R) as in `Policy`; for a capped rule see `lagjax.exact.groups.single_tiers`. Types whose tiers stay as they
    were are not computed again. Returns None where the chain that tells every server apart has more than 512 states.
    """
    if not is_small(instance):
        return None
    try:
        chain = build_chain(instance, tuple((r,) for r in range(instance.num_servers)))
    except InputError:  # an arrival at every step with durations that are not geometric
        return None
    idle, rows = move_rows(instance, chain)
    rewards = np.hstack([instance.scores @ chain.teams.T, np.zeros((instance.num_types, 1))])
    rate = np.asarray(instance.arrival_rate)

    @functools.lru_cache(maxsize=2 * instance.num_types)
    def part(v: int, tier: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        chance = team_probabilities(chain.free, np.frombuffer(tier, np.int64), np.frombuffer(weight), chain.teams)
        chance = np.column_stack([chance.toarray(), 1 - chance.sum(axis=1)])  # the last column is a lost task
        return np.einsum("nt,tnm->nm", chance, rows[chain.service.law[v]]), chance @ rewards[v]

    def reward(tier: np.ndarray, weight: np.ndarray) -> float:
        tier, weight = np.asarray(tier, dtype=np.int64), np.asarray(weight, dtype=np.float64)
        parts = [part(v, tier[v].tobytes(), weight[v].tobytes()) for v in range(len(rate))]
        step = (1 - rate.sum()) * idle + sum(each * moves for each, (moves, _) in zip(rate, parts, strict=True))
        earned = sum(each * gain for each, (_, gain) in zip(rate, parts, strict=True))
        # The mean of the solution is the average reward: see `lagjax.exact.stationary.solve_chain`.
        return float(np.linalg.solve(np.eye(len(idle)) - step + 1 / len(idle), earned).mean())

    return reward


def is_small(instance: Instance) -> bool:
    """Whether the chain that tells every server apart has at most 512 states, so that policies can be solved by the thousand."""
    count = _count_states(instance)
    teams = math.comb(instance.num_servers, instance.servers_per_task)
    return count <= MAX_STATES and count**2 * (teams + 1) <= _MAX_ENTRIES


def _count_states(instance: Instance) -> int:
    """States with every server told apart: choices of teams of k that do not overlap, each in some phase."""
    servers, k = instance.num_servers, instance.servers_per_task
    phases = service_of(instance).num_phases
    total, ways = 0, 1
    for running in range(servers // k + 1):
        total += ways // math.factorial(running) * phases**running
        if total > MAX_STATES:
            break
        ways *= math.comb(servers - running * k, k)
    return total


class KnownOptimum(NamedTuple):
    """The best that any policy can do; both numbers are exact, so their quotient has no interval.

    Attributes:
      reward: reward per step of the best policy.
      occ_ub: OPT(OCC-LP(B)) at the exact blocking B, reward per step.
    """

    reward: float
    occ_ub: float


def known_optimum(instance: Instance) -> KnownOptimum | None:
    """The optimum beside its bound, or None where the chain that tells every server apart has more than 512 states."""
    if not is_small(instance):
        return None
    try:
        return KnownOptimum(optimum(instance).reward, occ_upper_bound(instance, exact_blocking(instance)))
    except (InputError, SolverError):  # an arrival at every step with durations that are not geometric; no convergence
        return None
