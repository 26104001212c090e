"""Policies near a policy: one server up or down in one type's order, all orders at once by other prices, sums of such moves."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from lagjax.instance import Instance
from lagjax.policies.table import Policy, strict_order


def tier_moves(tier: np.ndarray) -> Iterator[np.ndarray]:
    """Tables that differ in one server's tier for one type: it joins the tier before or after its own, passes it, or leaves.

    Args:
      tier: (V, R), tiers 0, 1, ... of a race without gaps.
    """
    for v, row in enumerate(tier):
        for r, own in enumerate(row):
            for twice in sorted({2 * own + by for by in (-3, -2, -1, 1, 2, 3)}):
                if not -1 <= twice <= 2 * row.max() + 1:
                    continue
                moved = 2 * row
                moved[r] = twice
                dense = np.unique(moved, return_inverse=True)[1].ravel()
                if not np.array_equal(dense, row):
                    yield np.vstack([tier[:v], dense[None], tier[v + 1 :]])


def places(instance: Instance, policy: Policy) -> np.ndarray | None:
    """(V, R) place of each server in each type's order, for a policy that is a strict order at one copy; else None."""
    order = strict_order(policy)
    return None if order is None else order.astype(float)


def swaps(places: np.ndarray, scores: np.ndarray) -> list[np.ndarray]:
    """Changes (V, R) of the places that exchange two neighbours of one type's order, unless they are equal for all types."""
    out = []
    for v, row in enumerate(places):
        order = np.argsort(row)
        for one, other in itertools.pairwise(order):
            if not np.array_equal(scores[:, one], scores[:, other]):
                change = np.zeros(places.shape)
                change[v, one], change[v, other] = 1.0, -1.0
                out.append(change)
    return out


def shifts(places: np.ndarray, scores: np.ndarray, by: float) -> list[np.ndarray]:
    """Changes (V, R) of the places that move one server, or all that equal it, up or down by `by` places for every type.

    In terms of LAG's index this is a change of the price q_r of that server's time.
    """
    _, group = np.unique(scores, axis=1, return_inverse=True)
    sets = [group.ravel() == g for g in range(group.max() + 1)]
    out = []
    for chosen in sets:
        for sign in (-by, by):
            out.append(np.where(chosen[None, :], sign, 0.0) * np.ones(places.shape))
    return out


def combined(changes: Sequence[np.ndarray], gain: np.ndarray, error: np.ndarray) -> list[np.ndarray]:
    """Sums of the changes that looked good: above 0, 1 and 2 standard errors, once and twice, and along the estimated slope."""
    out = []
    for least in (0.0, 1.0, 2.0):
        good = [change for change, g, e in zip(changes, gain, error, strict=True) if g > max(least * e, 0)]
        if len(good) > 1:
            out += [np.sum(good, axis=0), 2 * np.sum(good, axis=0)]
    up = np.maximum(gain, 0)
    if up.max(initial=0) > 0:
        slope = np.tensordot(up / up.max(), np.stack(changes), axes=1)
        out += [slope, 2 * slope]
    return out
