"""LAG: Lagrangian-index assignment, from a solution of OCC-LP(0)."""

from __future__ import annotations

import numpy as np

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.lp.occ import OccSolution
from lagjax.policies.table import TIE_TOLERANCE, Policy, close_calls, make_policy, tie_groups


def lag(instance: Instance, solution: OccSolution) -> Policy:
    """LAG's tiers (Lag, Algorithm 1 and Appendix A).

    Per type, servers of positive index go one by one in decreasing index (group P), then those of zero index
    and positive tie weight as one capped tier shared by weight (group T), then the rest in decreasing index
    (group N). Ties go by server order. Indices within TIE_TOLERANCE of each other, relative to max s_vr, are
    ties; so are weights, which are then made equal, and a weight below TIE_TOLERANCE is zero. What lies near these
    tolerances is counted in the policy's notes.

    Args:
      instance: the system.
      solution: of OCC-LP(0) on the same system.

    Raises:
      InputError: the solution is of another shape.
    """
    shape = (instance.num_types, instance.num_servers)
    if solution.index.shape != shape:
        raise InputError(f"solution has an index of shape {solution.index.shape}; the instance has {shape}")
    zero, undecided = solution.zero_tolerance, solution.ties_undecided
    return lag_policy(solution.index, solution.tie_weight, zero, float(np.max(instance.scores)), undecided)


def lag_policy(
    index: np.ndarray, tie_weight: np.ndarray, zero: float, largest_score: float, undecided: int = 0
) -> Policy:
    """LAG's tiers from an index table; see `lag`.

    Args:
      index: (V, R) L(v, r).
      tie_weight: (V, R) w_vr, shares of the servers whose index is zero.
      zero: an index this small is zero.
      largest_score: max s_vr.
      undecided: pairs of which it is not known that their index is zero.
    """
    scale = largest_score or 1.0
    weight = _equalised(tie_weight)
    shared = (np.abs(index) <= zero) & (weight > TIE_TOLERANCE)
    stage = np.where(index > zero, 0, np.where(shared, 1, 2))
    groups = tie_groups(index, TIE_TOLERANCE * scale)
    tier = np.empty(index.shape, dtype=np.int64)
    servers = np.arange(index.shape[1])
    for v in range(len(index)):
        order = np.lexsort((servers, groups[v], stage[v]))
        alone = stage[v, order] != 1
        tier[v, order] = np.cumsum(alone | np.r_[True, alone[:-1]]) - 1
    notes = []
    if undecided:
        notes.append(f"{undecided} pairs within {zero:.1e} of index zero count as zero, but may not be")
    close = close_calls(index, TIE_TOLERANCE * scale) + close_calls(np.where(shared, weight, 0.0), TIE_TOLERANCE)
    if close:
        notes.append(
            f"{close} pairs of servers are so nearly equal for a type that other round-off could change their order"
        )
    return make_policy("lag", tier, np.where(shared, weight, 1.0), "capped", notes)


def _equalised(weight):
    groups = tie_groups(weight, TIE_TOLERANCE)
    result = np.empty_like(weight)
    for v, row in enumerate(groups):
        result[v] = (np.bincount(row, weight[v]) / np.bincount(row))[row]
    return result
