"""One size of a convergence study as a job: as many steps as its interval asks for."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from lagjax.engine.devices import device_name
from lagjax.engine.scaled_run import Window, replica_bytes, simulate_scaled
from lagjax.exact import known_optimum
from lagjax.fluid.fixed_point import lp_fixed_point
from lagjax.instance import Instance
from lagjax.lp import occ_bound, occ_upper_bound, solve_kiid, solve_occ
from lagjax.policies import Policy
from lagjax.runs.batched import Batch, batched, stage_of
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record
from lagjax.stats import estimate, left_of_start, percent_of_bound, ratio_of_means, warmup_steps
from lagjax.studies.cell import check_served
from lagjax.studies.dataset import record_of
from lagjax.studies.kiid import wants_kiid
from lagjax.studies.load_cells import policies_of, record_of_policies
from lagjax.tune import SLOW, named_policy

TARGET = 0.25  # points: half-width of the 95% interval when the caller names no number of steps
TOLERANCE = 1.2  # times that, an interval is left as it is
SAFETY = 1.15  # more steps than an interval asks for, since it is an estimate, and short runs understate it
SETTLED = 1.5  # a drift of more than this many half-widths doubles the warm-up: 0.3% of settled cells do
MOST_RESIZES = 5
PILOT_TASKS = 200_000  # tasks, over all replicas, of the run that finds how many steps that takes
LEAST_STEPS = 20
_COUNTS = ("served", "arrived", "blocked")


class Size(NamedTuple):
    """One (n, m)."""

    copies: int
    dispatchers: int


class SizeSpec(NamedTuple):
    """What determines a cell.

    Attributes:
      instance: at its load.
      policy: built, or a name that is built for the size when its turn comes.
      size, place: the size and its number in the study.
      steps: counted per replica, or None for as many as the interval asks for.
      replicas, seed, selection, start, kiid: as in `lagjax.studies.convergence.converge`.
      most_dispatchers: the study's largest.
    """

    instance: Instance
    policy: Policy | str
    size: Size
    place: int
    steps: int | None
    replicas: int
    seed: int
    selection: str
    start: str
    most_dispatchers: int
    kiid: str = "auto"


class Plan(NamedTuple):
    """One run of a cell: steps counted and dropped, how often it may still be sized anew, and the steps of earlier runs."""

    counted: int
    warmup: int
    again: int
    before: int = 0

    @property
    def steps(self) -> int:
        """Steps of a replica."""
        return self.counted + self.warmup


def size_job(spec: SizeSpec) -> Job:
    """The job of a cell; its work is 1, since how many steps it takes shows on the way."""
    policy = spec.policy if isinstance(spec.policy, str) else spec.policy.name
    rule = "" if isinstance(spec.policy, str) else spec.policy.rule
    shape = f"{spec.instance.scores.shape} {spec.instance.max_duration} {rule}"
    name = f"{spec.instance.name} {policy} n={spec.size.copies} m={spec.size.dispatchers}"
    return Job(name, shape, 1.0, functools.partial(run_size, spec))


def run_size(spec: SizeSpec, watch: Watch) -> Record:
    """Simulates with as many steps, and as much warm-up, as the cell asks for, and measures."""
    made: list[tuple] = []  # the policy and the start, once
    plan = Plan(*stage_of(watch, first_plan(spec)))

    def prepare(about):
        if not made:
            made.append((_built(spec) if about is None else policies_of(about)[0], _start(spec)))
        ((policy, start),) = made
        return Batch(
            functools.partial(_piece, spec, policy, start, plan), replica_bytes(spec.instance, policy, *spec.size),
            plan.steps * spec.size.dispatchers, about=record_of_policies([policy]), stage=plan, dear=spec.policy in SLOW,
        )  # fmt: skip

    while True:
        per_step = spec.size.dispatchers * spec.replicas
        within = watch.within(plan.before * per_step, (plan.before + plan.steps) * per_step)
        halves = _halves(batched(within, spec.replicas, prepare), plan.counted)
        policy = made[0][0]
        point, reward = _measured(spec, policy, halves, plan)
        if plan.again and abs(point["drift"]) > SETTLED * point["drift_ci95"]:
            plan = Plan(plan.counted, 2 * plan.warmup, plan.again - 1, plan.before + plan.steps)
        elif plan.again and point["percent_ci95"] > TARGET * TOLERANCE:
            counted = math.ceil(plan.counted * SAFETY * (point["percent_ci95"] / TARGET) ** 2)
            plan = Plan(counted, plan.warmup, plan.again - 1, plan.before + plan.steps)
        else:
            break
    at = ("instance", "system_size", "policy")
    variables: dict = {key: (at, np.full((1, 1, 1), value, dtype=float)) for key, value in point.items()}
    variables["reward"] = ((*at, "replica"), reward[None, None, None])
    coordinates: dict = {"instance": [spec.instance.name], "system_size": [spec.place], "policy": [policy.name]}
    return record_of(variables, coordinates, notes=list(policy.notes), device=device_name())


def first_plan(spec: SizeSpec) -> Plan:
    """The pilot, or the one run of a given number of steps."""
    tasks_per_step = spec.replicas * spec.size.dispatchers * spec.instance.total_rate
    counted = spec.steps or max(LEAST_STEPS, math.ceil(PILOT_TASKS / tasks_per_step))
    warmup = warmup_steps(spec.instance.mean_duration.max(), spec.instance.max_duration, spec.start)
    return Plan(counted, math.ceil(warmup), MOST_RESIZES if spec.steps is None else 0)


def _built(spec) -> Policy:
    if not isinstance(spec.policy, str):
        return spec.policy
    return named_policy(spec.policy, spec.instance, spec.selection, seed=spec.seed, **spec.size._asdict())


def _start(spec):
    """The fluid state to start from, or None for empty."""
    if spec.start != "warm":
        return None
    return lp_fixed_point(spec.instance, solve_occ(spec.instance, 0.0, spec.selection))


def _piece(spec, policy, start, plan, first, count, resume, save, progress):
    """`Batch.simulate`: the counts of the two halves."""
    halves = simulate_scaled(
        spec.instance, policy, **spec.size._asdict(), steps=plan.counted, warmup=plan.warmup, replicas=count,
        first_replica=first, seed=spec.seed, start=start, most_dispatchers=spec.most_dispatchers, progress=progress,
        resume=resume, save=save,
    )  # fmt: skip
    return {f"{i} {key}": getattr(half, key) for i, half in enumerate(halves) for key in _COUNTS}


def _halves(arrays, counted):
    """The two windows over all replicas."""
    lengths = (counted // 2, counted - counted // 2)
    return [Window(**{key: arrays[f"{i} {key}"] for key in _COUNTS}, steps=length) for i, length in enumerate(lengths)]


def _measured(spec, policy, halves, plan) -> tuple[dict, np.ndarray]:
    """The numbers of a cell, and the reward of every replica."""
    instance, size = spec.instance, spec.size
    arrived = sum(half.arrived.sum(axis=0) for half in halves)
    blocked = ratio_of_means(sum(half.blocked.sum(axis=0) for half in halves), arrived)
    check_served(blocked)
    bound, slope = occ_bound(instance, float(blocked.mean()))

    def per_copy(windows):
        total = sum(np.einsum("vr,vrb->b", instance.scores, half.served, dtype=np.float64) for half in windows)
        return total / (sum(half.steps for half in windows) * size.copies * size.dispatchers)

    rewards = per_copy(halves)
    reward, percent = estimate(rewards), estimate(percent_of_bound(rewards, blocked, bound, slope))
    left = left_of_start(*(100 * per_copy([half]) / bound for half in halves))
    known = known_optimum(instance) if size.copies == size.dispatchers == 1 else None
    best, beside = (np.nan, np.nan) if known is None else known
    kiid = solve_kiid(instance).objective if wants_kiid(spec.kiid, instance, [policy.name]) else np.nan
    return {
        "reward_per_step": reward.mean, "reward_ci95": reward.ci95, "percent_of_occ_ub": percent.mean,
        "percent_ci95": percent.ci95, "blocking": blocked.mean(), "blocking_ci95": estimate(blocked).ci95, "occ_ub": bound,
        "drift": left.drift.mean, "drift_ci95": left.drift.ci95, "stationary": left.stationary(),
        "steps": plan.counted, "warmup": plan.warmup, "tasks": arrived.sum(), "offered_load": round(instance.load, 9),
        "occ_ub_0": occ_upper_bound(instance, 0.0), "kiid_ub": kiid, "optimal_reward": best,
        "percent_of_optimum": 100 * reward.mean / best, "percent_of_optimum_ci95": 100 * reward.ci95 / best,
        "optimal_percent_of_occ_ub": 100 * best / beside,
    }, rewards  # fmt: skip
