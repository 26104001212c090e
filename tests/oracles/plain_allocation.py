"""The sharing rules for one task, server by server: exact on `fractions.Fraction`, plain on floats."""

from __future__ import annotations

import math


def waterfill(budget, capacity, tier, weight):
    """Amounts per server: lower tiers first; within one u_r = min(c_r, theta w_r) (Lag, Definition A.1, stage 2)."""
    amount = [0 * c for c in capacity]
    for t in sorted(set(tier)):
        members = [r for r in range(len(capacity)) if tier[r] == t]
        open_weight = sum(weight[r] for r in members)
        for r in sorted(members, key=lambda r: capacity[r] / weight[r]):  # the order in which rising theta fills them
            if capacity[r] * open_weight <= budget * weight[r]:
                amount[r] = capacity[r]
                budget, open_weight = budget - capacity[r], open_weight - weight[r]
            else:
                theta = budget / open_weight
                still_open = [
                    s for s in members if capacity[s] / weight[s] >= capacity[r] / weight[r] and not amount[s]
                ]
                for s in still_open:
                    amount[s] = theta * weight[s]
                return amount
    return amount


def largest_remainders(amount, total):
    """Whole numbers: rounded down, then one more to the largest remainders, earlier servers first."""
    down = [math.floor(a) for a in amount]
    order = sorted(range(len(amount)), key=lambda r: (down[r] - amount[r], r))
    for r in order[: total - sum(down)]:
        down[r] += 1
    return down


def three_stages(budget, capacity, index, weight):
    """Definition A.1 as printed: P by decreasing index, T by the smallest theta (bisection), N by decreasing index."""
    servers = range(len(capacity))
    amount = [0.0] * len(capacity)
    left = budget
    for r in sorted((r for r in servers if index[r] > 0), key=lambda r: (-index[r], r)):
        amount[r] = min(left, capacity[r])
        left = left - amount[r]
    shared = [r for r in servers if index[r] == 0 and weight[r] > 0]
    target = min(left, sum(capacity[r] for r in shared))
    low, high = 0.0, max((capacity[r] / weight[r] for r in shared), default=0.0)
    for _ in range(200):
        theta = (low + high) / 2
        if sum(min(capacity[r], theta * weight[r]) for r in shared) >= target:
            high = theta
        else:
            low = theta
    for r in shared:
        amount[r] = min(capacity[r], high * weight[r])
    left = left - target
    rest = [r for r in servers if index[r] < 0 or (index[r] == 0 and weight[r] == 0)]
    for r in sorted(rest, key=lambda r: (-index[r], r)):
        amount[r] = min(left, capacity[r])
        left = left - amount[r]
    return amount
