"""Simulated rewards of policies side by side on replicas of their own, for the original and for the scaled system."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from lagjax.engine.run import simulate
from lagjax.engine.scaled_run import simulate_scaled
from lagjax.fluid.fixed_point import lp_fixed_point
from lagjax.instance import Instance
from lagjax.lp import solve_occ
from lagjax.policies.table import Policy, strict_order
from lagjax.stats import warmup_steps

Trial = Callable[[Sequence[Policy], int], np.ndarray]  # (policies, seed) -> (P, B) rewards per step and copy

SINGLE_REPLICAS = 256  # for up to 96 servers times servers per task; beyond that fewer
FULL_SIZE = 96
LEAST_REPLICAS = 32
SINGLE_ARRIVALS = 2048
SIDE_BY_SIDE = 17  # strict orders that share one compiled program: an incumbent and 16 others
SCALED_REPLICAS = 16
MANY_DISPATCHERS = 64  # from here on half as many replicas
SCALED_TASKS = 40_000  # counted per policy and trial, over all replicas
SCALED_STEPS = 20  # at least
_WORD = 0x74756E65  # sets these seeds apart from any that a user gives


def derived_seed(seed: int, number: int) -> int:
    """A 64-bit seed for draw `number` of a selection, unlike the seed itself."""
    low, high = np.random.SeedSequence([_WORD, seed, number]).generate_state(2)
    return int(high) << 32 | int(low)


def single_trial(instance: Instance) -> Trial:
    """Simulates the original system: 256 replicas of 2,048 tasks (fewer if it is large), all policies on the same ones."""
    fits = SINGLE_REPLICAS * FULL_SIZE / (instance.num_servers * instance.servers_per_task)
    replicas = min(SINGLE_REPLICAS, max(LEAST_REPLICAS, 2 ** math.floor(math.log2(fits))))
    dropped = warmup_steps(instance.mean_duration.max(), instance.max_duration, "empty")
    warmup = math.ceil(dropped * instance.total_rate)

    def run(policies, seed):
        counts = simulate(instance, policies, arrivals=SINGLE_ARRIVALS, warmup=warmup, replicas=replicas, seed=seed)
        return np.einsum("vr,pvrb->pb", instance.scores, counts.served, dtype=np.float64) * (
            instance.total_rate / counts.arrivals
        )

    def trial(policies, seed):
        strict = [i for i, policy in enumerate(policies) if strict_order(policy) is not None]
        others = [i for i in range(len(policies)) if i not in strict]
        rewards = np.empty((len(policies), replicas))
        for i in range(0, len(strict), SIDE_BY_SIDE):
            part = strict[i : i + SIDE_BY_SIDE]
            padded = [policies[j] for j in part] + [policies[part[0]]] * (SIDE_BY_SIDE - len(part))
            rewards[part] = run(padded, seed)[: len(part)]
        if others:
            rewards[others] = run([policies[j] for j in others], seed)
        return rewards

    return trial


def scaled_trial(instance: Instance, copies: int, dispatchers: int) -> Trial:
    """Simulates the (m,n)-scaled system from its fluid fixed point: 16 or 8 replicas, 40,000 tasks in all or 20 steps."""
    replicas, steps, warmup = _scaled_plan(instance, dispatchers)
    start = lp_fixed_point(instance, solve_occ(instance))

    def one(policy, seed):
        halves = simulate_scaled(
            instance, policy, copies=copies, dispatchers=dispatchers, steps=steps, warmup=warmup,
            replicas=replicas, seed=seed, start=start,
        )  # fmt: skip
        served = halves[0].served + halves[1].served
        return np.einsum("vr,vrb->b", instance.scores, served, dtype=np.float64) / (steps * copies * dispatchers)

    return lambda policies, seed: np.stack([one(policy, seed) for policy in policies])


def scaled_cost(instance: Instance, dispatchers: int) -> float:
    """Tasks that one policy's `scaled_trial` simulates, those dropped included, times servers: what its time grows with."""
    replicas, steps, warmup = _scaled_plan(instance, dispatchers)
    return (steps + warmup) * replicas * dispatchers * instance.total_rate * instance.num_servers


def _scaled_plan(instance, dispatchers):
    replicas = SCALED_REPLICAS if dispatchers < MANY_DISPATCHERS else SCALED_REPLICAS // 2
    steps = max(SCALED_STEPS, math.ceil(SCALED_TASKS / (replicas * dispatchers * instance.total_rate)))
    return replicas, steps, math.ceil(warmup_steps(instance.mean_duration.max(), instance.max_duration, "warm"))
