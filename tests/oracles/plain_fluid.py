"""The fluid map written out: loops over types, servers and stages, sharing rules server by server, in float64."""

from __future__ import annotations

import math

import numpy as np
import plain_allocation


def race(budget, capacity, tier, weight):
    """Amounts per server: lower tiers first; in the one where the budget ends c_r (1 - exp(-theta w_r)), by bisection."""
    amount = [0.0] * len(capacity)
    for t in sorted(set(tier)):
        members = [r for r in range(len(capacity)) if tier[r] == t]
        room = sum(capacity[r] for r in members)
        if room <= budget:
            for r in members:
                amount[r] = capacity[r]
            budget = budget - room
            continue
        low, high = 0.0, 1.0
        while sum(capacity[r] * -math.expm1(-high * weight[r]) for r in members) < budget:
            high = 2 * high
            if high > 1e300:
                break
        for _ in range(300):
            theta = (low + high) / 2
            if sum(capacity[r] * -math.expm1(-theta * weight[r]) for r in members) < budget:
                low = theta
            else:
                high = theta
        for r in members:
            amount[r] = capacity[r] * -math.expm1(-high * weight[r])
        return amount
    return amount


def rates(arrival_rate, tier, weight, rule, servers_per_task, x):
    """(V, R) u_vr(x) = lambda_v waterfill_r(k, phi)."""
    fill = {"capped": plain_allocation.waterfill, "race": race}[rule]
    phi = [float(row[0]) for row in x]
    return np.array(
        [
            [lam * a for a in fill(float(servers_per_task), phi, list(map(int, t)), list(map(float, w)))]
            for lam, t, w in zip(arrival_rate, tier, weight, strict=True)
        ]
    )


def step(u, service_pmf, x):
    """G(x), given the rates u (V, R) at x."""
    num_types, num_servers = u.shape
    longest = service_pmf.shape[1]
    out = np.zeros_like(x)
    for r in range(num_servers):
        out[r, 0] = x[r, 0] - sum(u[v, r] for v in range(num_types)) + x[r, 1]
        for i in range(1, longest):
            out[r, i] = x[r, i + 1] + sum(service_pmf[v, i - 1] * u[v, r] for v in range(num_types))
        out[r, longest] = sum(service_pmf[v, longest - 1] * u[v, r] for v in range(num_types))
    return out
