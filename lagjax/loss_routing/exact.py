"""Exact loss of a policy, and the least loss that any routing can have, by the joint chain."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagjax.loss_routing.chain import Chain, build_chain, route_matrix, solve
from lagjax.loss_routing.indices import log_restless_index
from lagjax.loss_routing.policies import FULL, RoutingPolicy, from_index
from lagjax.loss_routing.system import System

_BETTER = 1e-12  # a route is changed for a gain above this, relative to what its value is the difference of
_ROUNDS = 100


class ExactLoss(NamedTuple):
    """Exact values of one policy.

    Attributes:
      loss: jobs lost per unit time.
      states: of the chain that was solved.
      residual: of its balance equations, relative to the largest flow.
    """

    loss: float
    states: int
    residual: float


class LeastLoss(NamedTuple):
    """The optimum over all policies that route a job whenever a queue has room, knowing all queues.

    Attributes:
      loss: jobs lost per unit time by the policy `route`.
      lower, upper: least and largest step of the last update of relative value iteration: they bracket the optimum up to
        rounding (some 1e-15 lambda), whatever the solver did.
      route: (S,) the queue that a job joins, -1 where all are full.
      states: S; state numbers run with the last queue fastest.
      rounds: of policy iteration.
    """

    loss: float
    lower: float
    upper: float
    route: np.ndarray
    states: int
    rounds: int


def exact_loss(system: System, policy: RoutingPolicy) -> ExactLoss:
    """Solves the chain of a policy.

    Raises:
      InputError: too many states.
    """
    chain = build_chain(system)
    share = shares(chain, policy)
    accepted = np.where(chain.up < chain.num_states, share, 0).sum(axis=1)
    cost = system.arrival_rate * (1 - accepted)
    done = solve(chain, _moves(chain, system, share), cost, _home(chain, system))
    return ExactLoss(done.cost, chain.num_states, done.residual)


def least_loss(system: System) -> LeastLoss:
    """Finds the optimum by policy iteration from the restless-bandit index, and brackets it by an update of value iteration.

    Raises:
      InputError: too many states.
      AssertionError: no end in 100 rounds, where a few are usual.
    """
    chain = build_chain(system)
    home = _home(chain, system)
    start = from_index(log_restless_index(system), system, name="rb", logarithms=True)
    route = np.argmax(shares(chain, start), axis=1)
    full = np.all(chain.up == chain.num_states, axis=1)
    cost = system.arrival_rate * full
    here = np.arange(chain.num_states)
    for done in range(1, _ROUNDS + 1):
        share = np.where(full[:, None], 0.0, np.eye(system.num_queues)[route])
        found = solve(chain, _moves(chain, system, share), cost, home)
        value = found.until - found.cost * found.time
        size = np.abs(found.until) + found.cost * found.time
        after = np.where(full[:, None], 0.0, np.r_[value, np.inf][chain.up])
        gain = after[here, route] - after.min(axis=1)
        better = gain > _BETTER * np.r_[size, 0.0][chain.up[here, route]]
        if not better.any():
            step = cost + chain.served @ value - chain.out * value
            step += system.arrival_rate * np.where(full, 0.0, after.min(axis=1) - value)
            lower, upper = float(step.min()), float(step.max())
            return LeastLoss(found.cost, lower, upper, np.where(full, -1, route), chain.num_states, done)
        route = np.where(better, np.argmin(after, axis=1), route)
    raise AssertionError(f"policy iteration did not end in {_ROUNDS} rounds: please report this as a bug")


def shares(chain: Chain, policy: RoutingPolicy) -> np.ndarray:
    """(S, K) probabilities with which a job goes to each queue: uniform over the lowest rank; rows of 0 where all are full."""
    if policy.share is not None:
        return np.tile(policy.share, (chain.num_states, 1))
    assert policy.rank is not None
    rank = policy.rank[np.arange(chain.jobs.shape[1]), chain.jobs]
    lowest = (rank == rank.min(axis=1, keepdims=True)) & (rank < FULL)
    return lowest / np.maximum(lowest.sum(axis=1, keepdims=True), 1)


def _moves(chain, system, share):
    return chain.served + system.arrival_rate * route_matrix(chain, share)


def _home(chain, system):
    """A likely state: `typical_jobs`, or all full."""
    return int(np.argmin(np.abs(chain.jobs - system.typical_jobs).sum(axis=1)))
