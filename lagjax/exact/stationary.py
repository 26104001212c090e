"""The stationary law of a chain, and the reward, blocking and assignment rates of a policy under it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, gmres

from lagjax.exact.chain import Chain, assign_matrix, build_chain, serve, serve_law
from lagjax.exact.choice import taken_rates
from lagjax.exact.groups import Groups, group_tables, lump, single_tiers
from lagjax.instance import Instance
from lagjax.lp import SolverError
from lagjax.policies.registry import PolicyLike, build_policy

RESIDUAL = 1e-10  # largest |pi P - pi|_1 accepted; a direct solution leaves about 1e-15
_DIRECT = 1000  # states up to which the equations are solved as dense ones
_RESTART = 40
_MAX_RESTARTS = 50
_RARE = 1e-12  # states rarer than this, relative to the most common one, count as often as that


class ExactValue(NamedTuple):
    """Stationary values of one policy on one instance.

    Attributes:
      reward: per step.
      blocking: fraction of the tasks that are lost.
      rate: (V, G) servers of group g given to type-v tasks, per step.
      groups: server numbers of each group (see `lagjax.exact.groups.lump`).
      states: of the chain that was solved.
      residual: |pi P - pi|_1.
    """

    reward: float
    blocking: float
    rate: np.ndarray
    groups: Groups
    states: int
    residual: float


def evaluate(instance: Instance, policy: PolicyLike, *, lumped: bool = True) -> ExactValue:
    """Solves the chain of a policy at one copy of every server.

    Args:
      instance: the system; for its durations see `lagjax.exact.service.service_of`.
      policy: what `lagjax.policies.build_policy` takes; a capped rule is a strict order here.
      lumped: count servers together that the policy need not tell apart; else every server is a group.

    Raises:
      InputError: the policy is of another shape, or the chain has too many states.
      SolverError: the stationary law missed RESIDUAL.
    """
    chain, taken = policy_chain(instance, policy, lumped)
    law, residual = stationary_law(chain, assign_matrix(chain, taken))
    rate = np.stack([(part.T @ law) @ chain.teams for part in taken])
    scores = instance.scores[:, [members[0] for members in chain.groups]]
    lost = chain.free.sum(axis=1) < instance.servers_per_task
    return ExactValue(
        float((scores * rate).sum()), float(law[lost].sum()), rate, chain.groups, chain.num_states, residual
    )


def policy_chain(instance: Instance, policy: PolicyLike, lumped: bool = True) -> tuple[Chain, list[sparse.csr_array]]:
    """The chain of a policy, and per type the rates at which teams are taken; arguments and errors as in `evaluate`."""
    tier, weight = single_tiers(build_policy(policy, instance))
    groups = lump(instance.scores, tier, weight) if lumped else tuple((r,) for r in range(instance.num_servers))
    chain = build_chain(instance, groups)
    return chain, taken_rates(instance, chain, *group_tables(groups, tier, weight))


def stationary_law(chain: Chain, assign: sparse.csr_array) -> tuple[np.ndarray, float]:
    """Returns the (N,) law pi with pi P = pi, and the residual |pi P - pi|_1 that was measured.

    Raises:
      SolverError: the residual is above RESIDUAL.
    """
    law = np.full(chain.num_states, 1 / chain.num_states)
    back = sparse.csr_array(assign.T)
    if chain.num_states > _DIRECT:
        for _ in range(_memory(chain)):
            law = serve_law(chain, back @ law)
    law = np.maximum(solve_chain(chain, assign, law, law, law, transposed=True), 0)
    law /= law.sum()
    residual = float(np.abs(serve_law(chain, back @ law) - law).sum())
    if not residual <= RESIDUAL:
        raise SolverError(
            f"stationary law of {chain.num_states:,} states has residual {residual:.2g} above {RESIDUAL:g}"
        )
    return law, residual


def solve_chain(
    chain: Chain, assign: sparse.csr_array, right: np.ndarray, weight: np.ndarray, start: np.ndarray, *,
    tolerance: float = 1e-13, transposed: bool = False,
) -> np.ndarray:  # fmt: skip
    """Solves Z x = right, or its transpose, for Z = I - P + 1 u, u a law: directly if it is small, else by GMRES from `start`.

    The stationary law solves Z^T pi = u. For a reward r per step, h = Z^-1 r obeys h + (u h) 1 = r + P h, so that u h is the
    average reward and h its bias. GMRES needs few iterations if u is near the stationary law and `start` near the solution;
    it ends at residuals of `tolerance` relative to the right side.
    """
    count = chain.num_states
    if count <= _DIRECT:
        z = np.eye(count) - assign @ serve(chain, np.eye(count)) + weight
        return np.linalg.solve(z.T if transposed else z, right)
    if transposed:
        back = sparse.csr_array(assign.T)
        return _gmres(lambda x: x - serve_law(chain, back @ x) + weight * x.sum(), right, start, tolerance)

    def times(x: np.ndarray) -> np.ndarray:
        return x - assign @ serve(chain, x) + weight @ x

    # Residuals count by how often a state is seen: in that norm the chain is nearly symmetric. The steps that follow carry
    # the accuracy of common states to the rare ones, from which the chain soon leaves.
    often = np.sqrt(np.maximum(weight / weight.max(), _RARE))
    x = _gmres(lambda y: often * times(y / often), often * right, often * start, tolerance) / often
    for _ in range(_memory(chain) // 2):
        x = x + right - times(x)
    return x


def _gmres(
    times: Callable[[np.ndarray], np.ndarray], right: np.ndarray, start: np.ndarray, tolerance: float
) -> np.ndarray:
    operator = LinearOperator((right.size, right.size), matvec=lambda x: times(x.ravel()), dtype=np.float64)
    return gmres(operator, right, x0=start, rtol=tolerance, restart=_RESTART, maxiter=_MAX_RESTARTS)[0]


def _memory(chain: Chain) -> int:
    """Steps after which most of the tasks that run now have ended."""
    slowest = 1 / chain.service.finish.min() if len(chain.service.finish) else 0
    return math.ceil(2 * max(slowest, chain.service.longest))
