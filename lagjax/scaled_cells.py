"""One size of a convergence study as a job: as many steps as its interval asks for, resumed where it stopped."""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import jax
import numpy as np
import xarray as xr

from lagjax.engine.devices import device_name
from lagjax.engine.pause import Pause
from lagjax.engine.scaled_run import Window, replica_bytes, simulate_scaled
from lagjax.exact import known_optimum
from lagjax.fluid.fixed_point import lp_fixed_point
from lagjax.instance import Instance
from lagjax.lp import occ_bound, occ_upper_bound, solve_kiid, solve_occ
from lagjax.policies import Policy
from lagjax.reference import wants_kiid
from lagjax.results import check_served
from lagjax.runs.job import Job, Watch, share
from lagjax.runs.memory import free_bytes, pieces
from lagjax.runs.record import Record, pack, unpack
from lagjax.stats import estimate, left_of_start, percent_of_bound, ratio_of_means
from lagjax.tune import named_policy

TARGET = 0.25  # points: half-width of the 95% interval when the caller names no number of steps
TOLERANCE = 1.2  # times that, an interval is left as it is
SAFETY = 1.15  # more steps than an interval asks for, since it is an estimate, and short runs understate it
SETTLED = 1.5  # a drift of more than this many half-widths doubles the warm-up: 0.3% of settled cells do
MOST_RESIZES = 5
PILOT_TASKS = 200_000  # tasks, over all replicas, of the run that finds how many steps that takes
LEAST_STEPS = 20
WARMUP_SERVICES = 3  # mean service times dropped after a warm start
EMPTY_WARMUP_SERVICES = 10  # and after an empty one, at least d steps
_COUNTS = ("served", "arrived", "blocked")


class Size(NamedTuple):
    """One (n, m)."""

    copies: int
    dispatchers: int


class SizeTask(NamedTuple):
    """What determines a cell.

    Attributes:
      instance: at its load.
      policy: built, or a name that is built for the size when its turn comes.
      size, place: the size and its number in the study.
      steps: counted per replica, or None for as many as the interval asks for.
      replicas, seed, selection, start, kiid: as in `lagjax.converge.converge`.
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


def size_job(task: SizeTask) -> Job:
    """The job of a cell; its work is 1, since how many steps it takes shows on the way."""
    policy = task.policy if isinstance(task.policy, str) else task.policy.name
    rule = "" if isinstance(task.policy, str) else task.policy.rule
    shape = f"{task.instance.scores.shape} {task.instance.max_duration} {rule}"
    name = f"{task.instance.name} {policy} n={task.size.copies} m={task.size.dispatchers}"
    return Job(name, shape, 1.0, functools.partial(run_size, task))


def run_size(task: SizeTask, watch: Watch) -> Record:
    """Simulates with as many steps, and as much warm-up, as the task asks for, and measures."""
    kept = watch.checkpoint.load()
    policy = task.policy
    if isinstance(policy, str):
        seeded = {"seed": task.seed, **task.size._asdict()}
        policy = named_policy(policy, task.instance, task.selection, **seeded)
        task = task._replace(policy=policy)
    tasks_per_step = task.replicas * task.size.dispatchers * task.instance.total_rate
    counted = task.steps or max(LEAST_STEPS, math.ceil(PILOT_TASKS / tasks_per_step))
    warmup, again = _warmup(task.instance, task.start), MOST_RESIZES if task.steps is None else 0
    if kept is not None:
        counted, warmup, again = kept.head["plan"]
    while True:
        halves = _shared(task, counted, warmup, again, kept, watch)
        kept = None
        point = _measured(task, halves, counted, warmup)
        if again and abs(point["drift"]) > SETTLED * point["drift_ci95"]:
            warmup *= 2
        elif again and point["percent_ci95"] > TARGET * TOLERANCE:
            counted = math.ceil(counted * SAFETY * (point["percent_ci95"] / TARGET) ** 2)
        else:
            break
        again -= 1
    reward = point.pop("reward")
    finite = {key: None if math.isnan(value) else float(value) for key, value in point.items()}
    name, notes = policy.name, list(policy.notes)
    device = device_name()
    return Record({"policy": name, "notes": notes, "device": device, "values": finite}, {"reward": reward})


def part_of(task: SizeTask, record: Record) -> xr.Dataset:
    """A cell's part of the study's Dataset."""
    at = ("instance", "size", "policy")
    values = {key: math.nan if value is None else value for key, value in record.head["values"].items()}
    variables: dict = {key: (at, np.full((1, 1, 1), value, dtype=float)) for key, value in values.items()}
    variables["reward"] = ((*at, "replica"), record.arrays["reward"][None, None, None])
    return xr.Dataset(
        variables, {"instance": [task.instance.name], "size": [task.place], "policy": [record.head["policy"]]}
    )


def _warmup(instance, start):
    service = instance.mean_duration.max()
    return math.ceil(
        WARMUP_SERVICES * service if start == "warm" else max(EMPTY_WARMUP_SERVICES * service, instance.max_duration)
    )


def _shared(task, steps, warmup, again, kept, watch) -> tuple[Window, Window]:
    """The two windows over all replicas, from the shares of all processes."""

    def own_share():
        first, last = share(task.replicas, watch.process, watch.processes)
        halves = _simulated(task, steps, warmup, again, first, last, kept, watch)
        return pack(Record({}, {f"{i} {key}": getattr(halves[i], key) for i in (0, 1) for key in _COUNTS}))

    return _joined([_halves(unpack(data).arrays, "", steps) for data in watch.gather(own_share)])


def _halves(arrays, prefix, steps):
    """The two windows of a record."""
    lengths = (steps // 2, steps - steps // 2)
    return [Window(**{key: arrays[f"{prefix}{i} {key}"] for key in _COUNTS}, steps=lengths[i]) for i in (0, 1)]


def _joined(parts):
    """Windows of all replicas, from those of consecutive parts."""
    first, second = (
        Window(
            **{key: np.concatenate([getattr(part[i], key) for part in parts], axis=-1) for key in _COUNTS},
            steps=parts[0][i].steps,
        )
        for i in (0, 1)
    )
    return first, second


def _simulated(task, steps, warmup, again, first, last, kept, watch):
    instance, size = task.instance, task.size
    start = lp_fixed_point(instance, solve_occ(instance, 0.0, task.selection)) if task.start == "warm" else None
    budget = free_bytes(jax.local_devices()) if watch.memory is None else watch.memory
    most = last - first if budget is None else max(1, budget // replica_bytes(instance, task.policy, *size))
    done: list = []
    at, count, pause = first, 0, None
    if kept is not None and kept.head["at"][:2] == [first, last] and kept.head["at"][3] <= most:
        _, _, at, count = kept.head["at"]
        done = [_halves(kept.arrays, "window ", steps)] if at > first else []
        pause = Pause(kept.head["steps"], [kept.arrays[f"leaf {i}"] for i in range(kept.head["leaves"])])

    def piece(begin, replicas):
        nonlocal pause
        resume, pause = pause, None

        def state(now, fetch):
            leaves = fetch()
            head = {
                "plan": [steps, warmup, again],
                "at": [first, last, begin, replicas],
                "steps": now,
                "leaves": len(leaves),
            }
            arrays = {f"leaf {i}": leaf for i, leaf in enumerate(leaves)}
            for i, window in enumerate(_joined(done)) if done else ():
                arrays |= {f"window {i} {key}": getattr(window, key) for key in _COUNTS}
            return Record(head, arrays)

        done.append(
            simulate_scaled(
                instance, task.policy, copies=size.copies, dispatchers=size.dispatchers, steps=steps, warmup=warmup,
                replicas=replicas, first_replica=begin, seed=task.seed, start=start, most_dispatchers=task.most_dispatchers,
                resume=resume, save=lambda now, fetch: watch.checkpoint.save(lambda: state(now, fetch)),
            )
        )  # fmt: skip

    if pause is not None:
        piece(at, count)
        at += count
    for _ in pieces(at, last, most, piece, group=len(jax.local_devices())):
        pass
    return _joined(done)


def _measured(task, halves, steps, warmup) -> dict:
    """The numbers of a cell, and the reward of every replica."""
    instance, size = task.instance, task.size
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
    kiid = solve_kiid(instance).objective if wants_kiid(task.kiid, instance, [task.policy.name]) else np.nan
    return {
        "reward_per_step": reward.mean, "reward_ci95": reward.ci95, "percent_of_occ_ub": percent.mean,
        "percent_ci95": percent.ci95, "blocking": blocked.mean(), "blocking_ci95": estimate(blocked).ci95, "occ_ub": bound,
        "drift": left.drift.mean, "drift_ci95": left.drift.ci95, "stationary": left.stationary(),
        "steps": float(steps), "warmup": float(warmup),
        "tasks": float(arrived.sum()), "load": round(instance.load, 9), "occ_ub_0": occ_upper_bound(instance, 0.0),
        "kiid_ub": kiid, "optimal_reward": best,
        "percent_of_optimum": 100 * reward.mean / best, "percent_of_optimum_ci95": 100 * reward.ci95 / best,
        "optimal_percent_of_occ_ub": 100 * best / beside, "reward": rewards,
    }  # fmt: skip
