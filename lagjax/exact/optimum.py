"""The best average reward of all work-conserving policies at one copy of every server, and one step of policy improvement."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lagjax.exact.chain import Chain, assign_matrix, build_chain, serve, starts
from lagjax.exact.groups import equal_servers
from lagjax.exact.stationary import policy_chain, solve_chain, stationary_law
from lagjax.instance import Instance
from lagjax.lp import SolverError
from lagjax.policies.table import Policy

GAP = 1e-9  # largest width of the interval that brackets the optimum, relative to it
_BETTER = 1e-10  # an action is changed for a gain above this, relative to k max s_vr
_TOLERANCE = 1e-12  # of the linear equations, relative to the rewards per step, in the last rounds
_MAX_ROUNDS = 50


class Optimum(NamedTuple):
    """The optimum, over all policies that serve a task whenever k servers are free.

    Attributes:
      reward: per step.
      lower, upper: the least and largest step of the last Bellman update; they bracket the optimum whatever the solver did.
      action: (V, N) int, the team that serves a type-v task, a row of `chain.teams`; -1 where the task is lost.
      bias: (N,) relative value of the states; 0 for the empty system, state 0.
      chain: the states (`free`, per group of `groups`, and what else they hold), with equal servers counted together.
      rounds: of policy iteration.
    """

    reward: float
    lower: float
    upper: float
    action: np.ndarray
    bias: np.ndarray
    chain: Chain
    rounds: int


class Moves(NamedTuple):
    """For each law and team: the states in which it fits, with where it leads and how (see `starts`)."""

    fits: list[np.ndarray]
    to: list[list[np.ndarray]]
    weight: list[list[np.ndarray]]
    reward: np.ndarray  # (V, T)


def optimum(instance: Instance) -> Optimum:
    """Finds the optimum by policy iteration from the greedy policy, and brackets it with a Bellman update.

    Servers of equal scores are exchangeable and counted together. The linear equations of large chains are solved iteratively,
    the more exactly the more rounds are behind; it ends when no action changes and the interval is narrow.

    Raises:
      InputError: the chain has too many states.
      SolverError: the interval stayed wider than GAP.
    """
    chain = build_chain(instance, equal_servers(instance.scores))
    moves = list_moves(instance, chain)
    bias = np.zeros(chain.num_states)
    _, better = update_values(instance, chain, moves, bias, None)
    near = None
    for done in range(_MAX_ROUNDS):
        action = better
        assign, reward = follow(instance, chain, moves, action)
        near = stationary_law(chain, assign)[0] if near is None else near
        bias = solve_chain(chain, assign, reward, near, bias, tolerance=max(_TOLERANCE, 10.0 ** (-4 - 2 * done)))
        bias -= bias[0]
        updated, better = update_values(instance, chain, moves, bias, action)
        lower, upper = float((updated - bias).min()), float((updated - bias).max())
        if np.array_equal(better, action) and upper - lower <= GAP * upper:
            return Optimum((lower + upper) / 2, lower, upper, action, bias, chain, done + 1)
    raise SolverError(f"the optimum of {chain.num_states:,} states is only known to lie in [{lower:.9g}, {upper:.9g}]")


def list_moves(instance: Instance, chain: Chain) -> Moves:
    """Lists all moves of a chain."""
    fits = [np.flatnonzero(np.all(chain.free >= team, axis=1)) for team in chain.teams]
    both = [
        [starts(chain, law, team, states) for team, states in enumerate(fits)]
        for law in range(chain.service.law.max() + 1)
    ]
    scores = instance.scores[:, [members[0] for members in chain.groups]]
    return Moves(
        fits, [[x[0] for x in row] for row in both], [[x[1] for x in row] for row in both], scores @ chain.teams.T
    )


def update_values(
    instance: Instance, chain: Chain, moves: Moves, bias: np.ndarray, action: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """One update of the relative values, and its maximising actions; those of `action` stay where they are as good."""
    later = serve(chain, bias)
    idle = later[chain.stay]
    best = np.full((instance.num_types, chain.num_states), -np.inf)
    chosen = np.full(best.shape, -1, dtype=np.int64)
    kept = np.full(best.shape, -np.inf)
    for team, states in enumerate(moves.fits):
        values = [later[to[team]] @ weight[team] for to, weight in zip(moves.to, moves.weight, strict=True)]
        for v, law in enumerate(chain.service.law):
            value = moves.reward[v, team] + values[law]
            higher = value > best[v, states]
            best[v, states[higher]], chosen[v, states[higher]] = value[higher], team
            if action is not None:
                same = action[v, states] == team
                kept[v, states[same]] = value[same]
    lost = np.isinf(best)
    if action is not None:
        tolerance = _BETTER * float(np.abs(moves.reward).max())
        chosen = np.where(kept >= best - tolerance, action, chosen)
    rate = np.asarray(instance.arrival_rate)
    return (1 - rate.sum()) * idle + rate @ np.where(lost, idle, best), chosen


def follow(instance: Instance, chain: Chain, moves: Moves, action: np.ndarray) -> tuple[sparse.csr_array, np.ndarray]:
    """The assignment matrix and the reward per step of a table of actions."""
    taken, reward = [], np.zeros(chain.num_states)
    for v, rate in enumerate(instance.arrival_rate):
        states = np.flatnonzero(action[v] >= 0)
        shape = (chain.num_states, len(chain.teams))
        taken.append(sparse.csr_array((np.full(len(states), rate), (states, action[v, states])), shape=shape))
        reward[states] += rate * moves.reward[v, action[v, states]]
    return assign_matrix(chain, taken), reward


class Improved(NamedTuple):
    """A state-dependent policy and the one that it improves.

    Attributes:
      reward: per step, of the improved policy; never below `base_reward`.
      base_reward: per step, of the policy that it came from.
      blocking: fraction of the tasks that are lost.
      action: (V, N) int, the team that serves a type-v task, a row of `chain.teams`; -1 where the task is lost.
      bias: (N,) relative value of the states under the base policy; 0 for the empty system, state 0.
      chain: the states, with servers counted together that the base policy need not tell apart.
    """

    reward: float
    base_reward: float
    blocking: float
    action: np.ndarray
    bias: np.ndarray
    chain: Chain


def improve(instance: Instance, policy: Policy) -> Improved:
    """Serves each task by the team with the largest reward plus mean bias of the state it leads to, under `policy` from then on.

    The bias difference is what the busy time of the chosen servers costs in this very state; LAG's E[D_v] q_r is its value in
    the fluid limit, the same in all states. The step maximises Bellman's right-hand side, so it never loses reward.

    Args:
      instance: the system; for its durations see `lagjax.exact.service.service_of`.
      policy: tiers and weights; a capped rule is a strict order here.

    Raises:
      InputError: the policy is of another shape, or the chain has too many states.
      SolverError: a stationary law missed its residual.
    """
    chain, taken = policy_chain(instance, policy)
    moves = list_moves(instance, chain)
    assign = assign_matrix(chain, taken)
    earned = np.sum([part @ moves.reward[v] for v, part in enumerate(taken)], axis=0)
    law, _ = stationary_law(chain, assign)
    bias = solve_chain(chain, assign, earned, law, np.zeros(chain.num_states))
    bias -= bias[0]
    _, action = update_values(instance, chain, moves, bias, None)
    assign, gained = follow(instance, chain, moves, action)
    new_law, _ = stationary_law(chain, assign)
    lost = chain.free.sum(axis=1) < instance.servers_per_task
    return Improved(float(new_law @ gained), float(law @ earned), float(new_law[lost].sum()), action, bias, chain)
