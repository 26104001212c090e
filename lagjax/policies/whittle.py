"""Whittle's index policies: as published, and with the true arrival rates."""

from __future__ import annotations

import numpy as np

from lagjax.instance import Instance
from lagjax.policies.arm import indifference_prices
from lagjax.policies.table import TIE_TOLERANCE, Policy, make_policy, tie_groups


def whittle_index(instance: Instance) -> np.ndarray:
    """(V, R) W(v, r) = s_vr - E[D_v] sum_u p_u max(s_ur - s_vr, 0), p_u = lambda_u / sum(lambda).

    The formula that reproduces the published table: as if one task arrived at every step.
    """
    scores, rate = np.asarray(instance.scores), np.asarray(instance.arrival_rate)
    share = rate / rate.sum()
    better = np.stack([np.einsum("u,ur->r", share, np.maximum(scores - row, 0)) for row in scores])
    return scores - instance.mean_duration[:, None] * better


def whittle(instance: Instance) -> Policy:
    """Free servers of largest published index first, ties at random."""
    return _by_index("whittle", whittle_index(instance), ())


def whittle_rate(instance: Instance) -> Policy:
    """Free servers of largest price of indifference first, ties at random, with the true arrival rates.

    The index of (v, r) is the price ell at which s_vr - ell = E[D_v] q_r(ell) (see `lagjax.policies.arm`). With unequal mean
    durations there can be two such prices, the task being worth its server's time only between them, or none. Such an arm is not
    indexable; the notes name it. Its index is then the larger price, and where there is none the server goes last.
    """
    scores = np.asarray(instance.scores, dtype=np.float64)
    rate, duration = np.asarray(instance.arrival_rate), instance.mean_duration
    index = np.empty_like(scores)
    notes = []
    columns, group = np.unique(scores, axis=1, return_inverse=True)
    prices = [indifference_prices(column, rate, duration) for column in columns.T]
    for r, g in enumerate(group.ravel()):
        for v, roots in enumerate(prices[g]):
            index[v, r] = roots[-1] if roots.size else np.nan
            if roots.size != 1:
                notes.append(_note(instance.servers[r], instance.tasks[v], roots))
    lowest = np.nanmin(index) if np.isfinite(index).any() else 0.0
    last = lowest - max(float(scores.max()), 1.0)
    return _by_index("whittle-rate", np.where(np.isnan(index), last, index), tuple(notes))


def _note(server, task, roots):
    who = f"server '{server}' is not indexable: task '{task}' is worth its time"
    if not roots.size:
        return f"{who} at no price; the server goes last for it"
    ends = " and ".join(f"{x:.6g}" for x in (roots[0], roots[-1]))
    return f"{who} only at prices between {ends}; the larger one is its index"


def _by_index(name, index, notes):
    scale = float(np.abs(index).max()) or 1.0
    return make_policy(name, tie_groups(index, TIE_TOLERANCE * scale), notes=notes)
