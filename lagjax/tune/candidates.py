"""Policies to start from: the named ones at every optimum, and LAG's index at other prices."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

import numpy as np

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp import SELECTIONS, OccSolution, SolverError, solve_occ
from lagjax.policies.lag import lag
from lagjax.policies.registry import POLICIES, build_policy
from lagjax.policies.table import Policy, make_policy, tie_groups

LOAD_FACTORS = (0.999, 1.001, 0.9, 1.1, 0.8, 1.25, 0.6, 1.5, 0.4, 2.0)
PRICE_FACTORS = (0.9, 1.1, 0.75, 1.3, 0.5, 1.6, 0.25, 2.0)
_TIE = 1e-9  # relative to max s_vr


def lag_policies(instance: Instance) -> list[Policy]:
    """LAG at the canonical optimum, then at those of the other selections that make another policy."""
    found = []
    for selection in dict.fromkeys(("canonical", *SELECTIONS)):
        found.append(_named(build_policy("lag", instance, selection), f"lag ({selection})"))
    return distinct(found)


def named_policies(instance: Instance) -> list[Policy]:
    """All other named policies, at every selection that makes another one."""
    names = [name for name in POLICIES if name != "lag"]
    return distinct(_named(build_policy(name, instance, selection), name) for name in names for selection in SELECTIONS)


def price_policies(instance: Instance) -> list[Policy]:
    """LAG's index at other prices: of other loads, multiples of its own, and of the second order where it ties.

    A small system at load rho meets its servers as a large one does at a higher load, or a lower one; prices of loads just
    beside rho order the servers that tie at rho.
    """
    at = solve_occ(instance)
    found = [order_by(instance.scores - np.outer(instance.mean_duration, at.server_price), "lag without shares")]
    found.append(order_by(second_order(instance, at), "second-order index"))
    for factor in LOAD_FACTORS:
        try:
            other = instance.with_load(factor * instance.load)
            found.append(_named(lag(other, solve_occ(other)), f"lag at {factor:g} times the load"))
        except (InputError, SolverError):  # no such load, or none that the solver certifies
            continue
    for factor in PRICE_FACTORS:
        index = instance.scores - factor * np.outer(instance.mean_duration, at.server_price)
        found.append(order_by(index, f"lag at {factor:g} times the prices"))
    return distinct(found)


def second_order(instance: Instance, solution: OccSolution) -> np.ndarray:
    """(V, R) priorities: LAG's index, and where it is constant its slope in a small discount rate alpha (after Nino-Mora).

    Discounted, a server that serves D steps is worth s - ell - q(alpha) E[(1 - e^(-alpha D)) / alpha], and q(alpha) solves
    q = sum_v lambda_v (s - ell - q E[...])^+ over the types A of positive index. To first order in alpha the index moves by
        theta(v, r) = q E[D_v^2] / 2 - E[D_v] q',   q' = q sum_A lambda_v E[D_v^2] / 2 / (1 + sum_A lambda_v E[D_v]).
    """
    steps = np.arange(1, instance.max_duration + 1)
    square = instance.service_pmf @ steps**2.0
    duration, rate = instance.mean_duration, np.asarray(instance.arrival_rate)
    served = (solution.index > 0) * rate[:, None]
    price = solution.server_price
    slope = price * (served.T @ square) / 2 / (1 + served.T @ duration)
    theta = np.outer(square, price) / 2 - np.outer(duration, slope)
    scale = float(np.max(instance.scores))
    first = -tie_groups(solution.index, _TIE * scale).astype(float)
    return first - 0.5 * tie_groups(theta, _TIE * scale * square.max()) / (1 + instance.num_servers)


def order_by(priorities: np.ndarray, name: str) -> Policy:
    """A strict order by priorities that may hold rounding errors; ties by number."""
    scale = float(np.abs(priorities).max()) or 1.0
    return make_policy(name, tie_groups(priorities, _TIE * scale), rule="capped")


def distinct(policies: Iterable[Policy], known: Sequence[Policy] = ()) -> list[Policy]:
    """The policies that differ from each other and from those known, in their order."""
    seen, out = {key(policy) for policy in known}, []
    for policy in policies:
        if key(policy) not in seen:
            seen.add(key(policy))
            out.append(policy)
    return out


def key(policy: Policy) -> tuple:
    """Equal for policies that do the same by the same numbers."""
    return policy.rule, policy.tier.tobytes(), np.round(policy.weight, 9).tobytes()


def _named(policy: Policy, name: str) -> Policy:
    return dataclasses.replace(policy, name=name)
