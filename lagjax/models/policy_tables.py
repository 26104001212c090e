"""Policies turned into the arrays that the kernel reads, grouped by the cheapest rule that serves them exactly."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagjax.models.loss import PolicyTables, smallest_unsigned
from lagjax.policies.table import Policy, strict_order


class Layout(NamedTuple):
    """Where each policy went: its group (0 order, 1 even, 2 weighted, 3 by level), its place, and the server of each slot.

    `server_of_slot` is (V, R): kernel slot j of a type-v task is server `server_of_slot[v, j]`.
    """

    group: int
    place: int
    server_of_slot: np.ndarray


def policy_tables(policies: list[Policy]) -> tuple[PolicyTables, list[Layout]]:
    """Groups policies of one instance and returns the kernel's tables with the way back to servers."""
    groups: list[list] = [[], [], [], []]
    layouts = []
    for policy in policies:
        group, row = _classify(policy)
        shape = policy.tier.shape[-2:]
        server = np.argsort(row, axis=1) if group == 0 else np.broadcast_to(np.arange(shape[1]), shape)
        layouts.append(Layout(group, len(groups[group]), server))
        groups[group].append((row, policy.weight))
    # One more than the largest rank or tier must fit: the largest value of the dtype stands for nobody.
    narrow = smallest_unsigned(policies[0].tier.shape[-1] + 1)

    def table(rows):
        return np.stack([row for row, _ in rows]).astype(narrow) if rows else None

    weight = np.stack([_scaled_weights(row, w) for row, w in groups[2]]) if groups[2] else None
    return PolicyTables(table(groups[0]), table(groups[1]), table(groups[2]), weight, table(groups[3])), layouts


def _classify(policy):
    rank = strict_order(policy)
    if rank is not None:
        return (0, rank) if rank.ndim == 2 else (3, rank.reshape(-1, rank.shape[-1]))
    return (1 if is_even(policy) else 2), policy.tier


def is_even(policy: Policy) -> bool:
    """Whether the weights within each tier are equal, so that a race in it is an even one."""
    return all(
        np.unique(policy.weight[v][policy.tier[v] == t]).size == 1
        for v in range(policy.tier.shape[0])
        for t in np.unique(policy.tier[v])
    )


def _scaled_weights(tier, weight):
    """Divides each tier's weights by their largest, so that float32 holds their ratios; a lone server gets 1."""
    scaled = np.ones_like(weight, dtype=np.float32)
    for v in range(tier.shape[0]):
        for t in np.unique(tier[v]):
            inside = tier[v] == t
            if inside.sum() > 1:
                scaled[v, inside] = weight[v, inside] / weight[v, inside].max()
    return np.maximum(scaled, np.float32(1e-30))
