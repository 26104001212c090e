"""Which servers may be counted together: equal scores, and a policy that need not tell them apart."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from lagjax.policies.table import Policy, strict_order

Groups = tuple[tuple[int, ...], ...]


def equal_servers(scores: ArrayLike) -> Groups:
    """Returns the servers in groups of equal score columns, in the order of their first members."""
    columns = np.asarray(scores).T
    return _grouped([tuple(column) for column in columns])


def single_tiers(policy: Policy) -> tuple[np.ndarray, np.ndarray]:
    """Returns tiers and weights, shaped as the policy's, of the race that it is when there is one copy of every server.

    A capped rule takes single servers in a strict order (see `strict_order`).
    """
    order = strict_order(policy)
    return (policy.tier, policy.weight) if order is None else (order, np.ones(order.shape))


def lump(scores: ArrayLike, tier: np.ndarray, weight: np.ndarray) -> Groups:
    """Returns the coarsest groups found such that the numbers of busy servers per group are a Markov chain.

    The members of a group have equal scores and, for each type on its own, either
      - share one tier with equal weights, so that the race is the same whichever of them are free, or
      - fill consecutive tiers that hold no other server, so that how many go depends on how many are free.
    Identical servers that a policy separates by another server, or orders differently relative to others across types,
    stay apart. Starts from equal scores and splits until nothing changes.

    Args:
      scores: (V, R).
      tier, weight: (V, R), or (m, V, R) by the number of running tasks, of a race; lower tiers first.
    """
    tier, weight = (np.reshape(table, (-1, np.shape(scores)[1])) for table in (tier, weight))
    groups = equal_servers(scores)
    while True:
        label = np.empty(np.shape(scores)[1], dtype=np.int64)
        for g, members in enumerate(groups):
            label[list(members)] = g
        keys = [[label[r]] for r in range(len(label))]
        for tiers, weights in zip(tier, weight, strict=True):
            for r, key in enumerate(_places(tiers, weights, label)):
                keys[r].append(key)
        finer = _grouped([tuple(key) for key in keys])
        if len(finer) == len(groups):
            return finer
        groups = finer


def group_tables(groups: Groups, tier: np.ndarray, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (..., V, G) tiers and weights per server of the groups that `lump` returned."""
    lowest = np.stack([tier[..., list(members)].min(axis=-1) for members in groups], axis=-1)
    return lowest, weight[..., [members[0] for members in groups]]


def _places(tiers: np.ndarray, weights: np.ndarray, label: np.ndarray) -> list[tuple[str, int, float]]:
    """Per server, its run of tiers that hold one group only, or its tier and weight among others."""
    place = [("", 0, 0.0)] * len(label)
    run, last = 0, None
    for t in np.unique(tiers):
        members = np.flatnonzero(tiers == t)
        owners = set(label[members])
        if len(owners) > 1:
            for r in members:
                place[r] = ("shared", int(t), float(weights[r]))
            last = None
            continue
        (owner,) = owners
        if owner != last:
            run, last = run + 1, owner
        for r in members:
            place[r] = ("run", run, 0.0)
    return place


def _grouped(keys: Iterable[tuple]) -> Groups:
    found: dict = {}
    for r, key in enumerate(keys):
        found.setdefault(key, []).append(r)
    return tuple(map(tuple, found.values()))
