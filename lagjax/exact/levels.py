"""A bound below OCC-UB for finite systems, and prices that depend on how many tasks are running.

With geometric durations of one mean the number N of running tasks is a Markov chain of its own, the same under every
work-conserving policy (Lag, Lemma 3.1), and so is (N, server r free or busy) once it is known how often r is taken. OCC-LP
asks that flows balance server by server; this program asks it of every server at every N:

    maximise    sum_{v,r,N} pi_N lambda_v s_vr a_vrN
    subject to  sum_r a_vrN = k                 for every v and N < m = floor(R / k)     (multiplier ell_v(N))
                0 <= a_vrN <= x_rN <= 1
                x_r obeys the balance of server r, given a_r                             (multiplier y_r(N))

with x_rN = P(r free | N) and a_vrN = P(r taken | N, type v arrives). Every policy gives a feasible point, so its value is an
upper bound; summed over N it is a point of OCC-LP(B), so it is at most OCC-UB. Its multipliers are LAG's prices resolved by N:
a server is worth s_vr - ell_v(N) - c_r(N), c_r(N) the mean of y_r after an arrival at N that leaves r free.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lagjax.errors import InputError
from lagjax.exact.groups import equal_servers
from lagjax.exact.service import service_of
from lagjax.instance import Instance
from lagjax.lp import SolverError
from lagjax.policies.table import TIE_TOLERANCE, Policy, order_by_level, tie_groups

LEVELS = "lag-levels"  # name of the policy that its prices make
MOST_VARIABLES = 40_000  # about half a minute of the solver
RAREST = (1e-9, 1e-6, 1e-5)  # levels less likely than this are left out; the next one is tried where the solver fails
GAP = 1e-4  # largest distance between bound and solution, relative to the bound


class LevelBound(NamedTuple):
    """An upper bound on the reward of every work-conserving policy, and the prices that prove it.

    Attributes:
      reward: the bound, per step. It holds whatever the solver did: it is the value of the multipliers, with what they leave
        infeasible added.
      gap: bound less the value of the solver's solution, relative to the bound.
      server_price: (R, m) c_r(N), reward; what taking server r costs when N = 0..m-1 tasks are running.
      task_price: (V, m) ell_v(N), reward. Prices of levels too rare for the solver are those of the nearest other one.
      share: (V, R, m) a_vrN of the solution, in [0, 1]; what decides between servers worth the same.
      level_law: (m+1,) pi_N, the stationary law of the number of running tasks.
    """

    reward: float
    gap: float
    server_price: np.ndarray
    task_price: np.ndarray
    share: np.ndarray
    level_law: np.ndarray


class _Levels(NamedTuple):
    """The chain of N, m+1 levels: entries [N, N'] of pi_N P(event, N -> N' | N), divided by pi_N' (time reversed, well scaled).

    `idle`: no task is accepted. `served`: one is. `freed`: a server that is busy at N ends, given that it is busy.
    """

    law: np.ndarray
    idle: np.ndarray
    served: np.ndarray
    freed: np.ndarray


def level_bound(instance: Instance) -> LevelBound:
    """Solves the program of levels.

    Servers of equal scores are counted together, and so are types of equal scores.

    Raises:
      InputError: the durations are not geometric with one mean, or the program has more than 40,000 variables.
      SolverError: the solver failed, or left a gap above GAP.
    """
    service = service_of(instance)
    if service.longest or len(service.finish) != 1:
        raise InputError(
            f"instance '{instance.name}' has durations that are not geometric with one mean, which the bound by levels needs; "
            "use lagjax.geometric for them, or OCC-UB"
        )
    return solve_levels(instance, float(service.finish[0]))


def solve_levels(instance: Instance, finish: float) -> LevelBound:
    """The same with every duration replaced by a geometric one that ends with probability `finish` per step."""
    k, rate = instance.servers_per_task, np.asarray(instance.arrival_rate, dtype=np.float64)
    most = instance.num_servers // k
    groups = equal_servers(instance.scores)
    size = np.array([len(members) for members in groups])
    scores, kind = np.unique(instance.scores[:, [members[0] for members in groups]], axis=0, return_inverse=True)
    kind = kind.ravel()
    share = np.bincount(kind, rate) / rate.sum()
    variables = len(size) * (len(share) * most + most + 1)
    if variables > MOST_VARIABLES:
        raise InputError(
            f"the program of levels has {variables:,} variables, more than {MOST_VARIABLES:,}; use fewer servers or types"
        )
    levels = _levels(most, float(rate.sum()), finish)
    worth = scores * share[:, None]  # (V, G), times pi_N: reward per arrival
    bound, price, task, taken, gap = _best_multipliers(instance.name, worth, share, size, levels, k)
    of_server = np.empty(instance.num_servers, dtype=np.int64)
    for g, members in enumerate(groups):
        of_server[list(members)] = g
    return LevelBound(
        float(rate.sum()) * bound, gap, price[of_server], task[kind], taken[kind][:, of_server], levels.law
    )


def level_policy(instance: Instance) -> Policy:
    """LAG with prices that depend on the number n of running tasks: the free servers of largest s_vr - c_r(n) go first.

    Servers worth the same go by their share in the program's solution, as LAG's do at one copy, then by number.
    Where durations are not geometric with one mean the prices are those of geometric durations with the mean of all tasks.

    Raises:
      InputError: the program has more than 40,000 variables.
      SolverError: the solver failed.
    """
    service = service_of(instance)
    geometric = service.longest == 0 and len(service.finish) == 1
    mean = float(np.dot(instance.arrival_rate, instance.mean_duration) / instance.total_rate)
    found = solve_levels(instance, 1 / mean)
    worth = instance.scores[None] - found.server_price.T[:, None, :]  # (m, V, R)
    scale = float(np.abs(worth).max()) or 1.0
    ranks = tie_groups(worth.reshape(-1, worth.shape[-1]), TIE_TOLERANCE * scale).reshape(worth.shape)
    share = np.round(np.moveaxis(found.share, -1, 0), 9)  # the solver's last digits decide nothing
    notes = (
        ()
        if geometric
        else (f"its prices are those of geometric durations with the mean of all tasks, {mean:.4g} steps",)
    )
    return order_by_level(share / 2 - ranks, LEVELS, notes)


def _best_multipliers(name, worth, share, size, levels, k):
    """The certified bound, prices c (G, m) and ell (V, m) and the gap; rare levels are left out where the solver fails."""
    gap = np.inf
    for rarest in RAREST:
        found = _solve(worth, share, size, levels, k, rarest)
        if found is None:
            continue
        free, task, taken, served = found
        bound, price = _certify(worth, share, size, levels, k, free, task)
        value = float(np.einsum("vg,g,n,vgn->", worth, size, levels.law[:-1], taken))
        gap = (bound - value) / max(abs(bound), np.finfo(float).tiny)
        if gap <= GAP:
            nearest = served[np.abs(np.arange(len(levels.law) - 1)[:, None] - served).argmin(axis=1)]
            cost = (task / (share[:, None] * levels.law[:-1]))[:, nearest]
            return bound, price[:, nearest], cost, taken[:, :, nearest], max(gap, 0.0)
    raise SolverError(
        f"the bound by levels of instance '{name}' was not found: the gap left is {gap:.2g}, above {GAP:g}"
    )


def _levels(most, rate, finish):
    """The chain of the number of running tasks: those that ran before may end, then one that arrives is added."""
    from scipy.stats import binom

    idle, served, freed = np.zeros((3, most + 1, most + 1))
    for n in range(most + 1):
        accepted = rate if n < most else 0.0
        ends = binom.pmf(np.arange(n + 1), n, finish)
        to = n - np.arange(n + 1)
        idle[n, to] = (1 - accepted) * ends
        others = finish * binom.pmf(np.arange(n), n - 1, finish) if n else np.empty(0)
        freed[n, to[1:]] = (1 - accepted) * others
        if accepted:
            served[n, to + 1] = accepted * ends
            freed[n, to[1:] + 1] += accepted * others
    law = _stationary(idle + served)
    back = law[:, None] / law[None, :]
    return _Levels(law, idle * back, served * back, freed * back)


def _stationary(move):
    """The stationary law by the elimination of Grassmann, Taksar and Heyman: no differences, so rare states are exact too."""
    move = move.copy()
    for last in range(len(move) - 1, 0, -1):
        move[:last, last] /= move[last, :last].sum()
        move[:last, :last] += np.outer(move[:last, last], move[last, :last])
    law = np.ones(len(move))
    for n in range(1, len(move)):
        law[n] = law[:n] @ move[:n, n]
    return law / law.sum()


def _solve(worth, share, size, levels, k, rarest):
    """Returns the multipliers (G, m+1) of the balances and (V, m) of the demands, and the solution a (V, G, m).

    Levels less likely than `rarest` have no balance, no demand and no tasks; their multipliers are zero.
    """
    from scipy.optimize import linprog

    (kinds, groups), n = worth.shape, len(levels.law)
    common = np.flatnonzero(levels.law >= rarest)
    served = common[common < n - 1]
    each, every = sparse.eye_array(groups), sparse.eye_array(kinds)
    balance = (np.eye(n) - levels.idle.T - levels.served.T + levels.freed.T)[common]
    taken = [sparse.kron(each, sparse.csr_array(part * levels.served.T[np.ix_(common, served)])) for part in share]
    demand = sparse.kron(every, sparse.kron(sparse.csr_array(size[None].astype(float)), sparse.eye_array(len(served))))
    equal = sparse.block_array(
        [[sparse.kron(each, sparse.csr_array(balance)), sparse.hstack(taken)], [None, demand]], format="csr"
    )
    right = np.r_[np.tile(levels.freed.sum(axis=0)[common], groups), np.full(kinds * len(served), float(k))]
    below = sparse.kron(each, sparse.csr_array(np.eye(n)[served]))
    tasks = kinds * groups * len(served)
    at_most = sparse.hstack([sparse.vstack([-below] * kinds), sparse.eye_array(tasks)], format="csr")
    gain = np.einsum("vg,g,n->vgn", worth, size, levels.law[served]).ravel()
    scale = float(gain.max()) or 1.0
    solved = linprog(
        np.r_[np.zeros(groups * n), -gain / scale], A_ub=at_most, b_ub=np.zeros(tasks), A_eq=equal, b_eq=right,
        bounds=np.vstack([np.tile([[0, 1]], (groups * n, 1)), np.tile([[0, np.inf]], (tasks, 1))]),
        method="highs-ipm",  # several times as fast as the simplex here
    )  # fmt: skip
    if solved.x is None or solved.eqlin.marginals is None:
        return None
    price = -scale * solved.eqlin.marginals
    free, task, best = np.zeros((groups, n)), np.zeros((kinds, n - 1)), np.zeros((kinds, groups, n - 1))
    free[:, common] = price[: groups * len(common)].reshape(groups, -1)
    task[:, served] = price[groups * len(common) :].reshape(kinds, -1)
    best[:, :, served] = solved.x[groups * n :].reshape(kinds, groups, -1)
    return free, task, best, served


def _certify(worth, share, size, levels, k, free, task):
    """The bound that any multipliers give, per arrival, and the prices c (G, m) in reward.

    For multipliers y = `free` / size and those of the demands, the Lagrangian is linear in a and x, 0 <= a <= x <= 1, so its
    maximum is a sum of positive parts.
    """
    y = free / size[:, None]
    m = task.shape[1]
    law = levels.law[:m]
    taking = y @ levels.served[:m].T  # (G, m): c_r(N) pi_N per arrival
    index = worth[:, :, None] * law - share[:, None, None] * taking - task[:, None, :]
    kept = y @ (levels.idle + levels.served - levels.freed).T - y
    kept[:, :m] += np.maximum(index, 0).sum(axis=0)
    servers = (y @ levels.freed.sum(axis=0)) + np.maximum(kept, 0).sum(axis=1)
    return float(k * task.sum() + size @ servers), taking / law
