"""One step of policy improvement: prices that depend on the whole state, from the exact bias of a tier and weight policy."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagjax.exact.chain import Chain, assign_matrix, build_chain
from lagjax.exact.choice import taken_rates
from lagjax.exact.groups import group_tables, lump, single_tiers
from lagjax.exact.optimum import follow, list_moves, update_values
from lagjax.exact.stationary import solve_chain, stationary_law
from lagjax.instance import Instance
from lagjax.policies.table import Policy, check_shape


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
    check_shape(policy, instance, levels=True)
    tier, weight = single_tiers(policy)
    groups = lump(instance.scores, tier, weight)
    chain = build_chain(instance, groups)
    tier, weight = group_tables(groups, tier, weight)
    moves = list_moves(instance, chain)
    taken = taken_rates(instance, chain, tier, weight)
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
