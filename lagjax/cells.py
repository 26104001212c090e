"""One cell of a load sweep as a job: simulated in pieces that fit, resumed where it stopped, and measured against its bounds."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from lagjax.engine.devices import default_block
from lagjax.engine.pause import Pause
from lagjax.engine.run import CHUNK, batch_bytes, simulate
from lagjax.instance import Instance
from lagjax.measure import Sums, arrivals_and_warmup, early_sums, joined, measured, summed
from lagjax.models.policy_tables import policy_tables
from lagjax.policies import Policy
from lagjax.reference import wants_kiid
from lagjax.results import Cell
from lagjax.runs.job import Job, Watch, share
from lagjax.runs.memory import free_bytes, out_of_memory, pieces
from lagjax.runs.record import Record, digest, pack, unpack
from lagjax.tune import SLOW, named_policy

MOST_PER_CALL = 1_000_000_000  # arrivals, times policies and replicas, between two words of a cell: seconds


class Task(NamedTuple):
    """What determines a cell.

    Attributes:
      instance: at its load.
      policies: built, or names of those that are built when the cell's turn comes.
      steps: counted per replica, or None for the default number of tasks.
      replicas, seed, selection, kiid: as in `lagjax.sweep.sweep`.
    """

    instance: Instance
    policies: tuple[Policy | str, ...]
    steps: int | None
    replicas: int
    seed: int
    selection: str
    kiid: str = "auto"


def cell_job(task: Task) -> Job:
    """The job of a cell."""
    instance = task.instance
    rules = [p if isinstance(p, str) else policy_tables([p])[1][0].group for p in task.policies]
    shape = f"{instance.scores.shape} {instance.max_duration} {instance.servers_per_task} {sorted(map(str, rules))}"
    return Job(cell_name(task), shape, _work(task), functools.partial(run_cell, task))


def _work(task):
    """Tasks to simulate, over policies and replicas."""
    return sum(arrivals_and_warmup(task.instance, task.steps)) * len(task.policies) * task.replicas


def cell_name(task: Task) -> str:
    """What messages and files call a cell."""
    return f"{task.instance.name} {round(task.instance.load, 9):.10g}"


def run_cell(task: Task, watch: Watch) -> Record:
    """Simulates this process's share of the replicas, brings the shares together and measures."""
    policies = None

    def own_share():
        nonlocal policies
        kept = watch.checkpoint.load()
        policies = _policies_of(kept) if kept is not None else built(task)
        first, last = share(task.replicas, watch.process, watch.processes)
        return pack(Record({}, _simulated(task, policies, first, last, kept, watch)._asdict()))

    shares = [Sums(**unpack(data).arrays) for data in watch.gather(own_share)]
    arrivals, warmup = arrivals_and_warmup(task.instance, task.steps)
    names = [p if isinstance(p, str) else p.name for p in task.policies]
    kiid = wants_kiid(task.kiid, task.instance, names, _work(task))
    return record_of(measured(task.instance, policies, joined(shares), arrivals, warmup, task.steps, kiid))


def built(task: Task) -> tuple[Policy, ...]:
    """The policies of a cell; those left as names are built now: their programs take a while, and `tuned` takes long."""
    return tuple(
        named_policy(p, task.instance, task.selection, seed=task.seed) if isinstance(p, str) else p
        for p in task.policies
    )


def _simulated(task, policies, first, last, kept, watch) -> Sums:
    """Sums over replicas `first` to `last`, one piece after another."""
    instance = task.instance
    arrivals, warmup = arrivals_and_warmup(instance, task.steps)
    devices = jax.local_devices()
    budget = free_bytes(devices) if watch.memory is None else watch.memory
    each = batch_bytes(instance, policies)
    most = last - first if budget is None else max(1, budget // each)
    done, at, pause, size, early = _stood(kept, first, last)
    if size > most:
        pause = None  # another machine's batch
    per_replica = (arrivals + warmup) * len(policies)
    if kept is None:
        watch.checkpoint.save(lambda: _state(policies, (first, last, first, 0), done), now=_slow(task))
    behind = 0 if pause is None else pause.done * len(policies) * size
    watch.progress(((at - first) * per_replica + behind) * watch.processes)

    def piece(start, count):
        nonlocal pause, early
        resume, pause = pause, None
        if resume is None:
            early = None
        block = default_block(devices[0].platform)
        behind = 0 if resume is None else resume.done * len(policies) * count
        before = (start - first) * per_replica

        def moved(more):
            nonlocal behind
            behind += more
            watch.progress((before + min(behind, count * per_replica)) * watch.processes)

        def halfway(counts):
            nonlocal early
            early = early_sums(instance, counts)

        def save(events, fetch):
            at = (first, last, start, count)
            watch.checkpoint.save(lambda: _state(policies, at, done, Pause(events, fetch()), early))

        counts = simulate(
            instance, policies, arrivals=arrivals, warmup=warmup, replicas=count, first_replica=start, seed=task.seed,
            chunk=max(1, min(CHUNK, MOST_PER_CALL // (block * count * len(policies)))), progress=moved, resume=resume,
            save=save, halfway=halfway,
        )  # fmt: skip
        done.append(summed(instance, counts, early))
        watch.checkpoint.save(lambda: _state(policies, (first, last, start + count, 0), done))

    if pause is not None:
        try:
            piece(at, size)
            at += size
        except Exception as error:
            if not out_of_memory(error):
                raise
            most = max(1, size // 2)
    for _ in pieces(at, last, most, piece, group=len(devices)):
        pass
    return joined(done)


def _slow(task):
    """Whether a policy was searched for, so that a cell that starts anew would lose more than simulation."""
    return any(p in SLOW for p in task.policies if isinstance(p, str))


def _state(policies, at, done, pause=None, early=None) -> Record:
    """How far a cell came: its policies, the pieces behind it, and where the present one stands, with its first half."""
    head, arrays = _policy_parts(policies)
    sums = joined(done)._asdict() if done else {}
    head |= {"at": list(at), "events": None if pause is None else pause.done, "leaves": 0}
    if pause is not None:
        head["leaves"] = len(pause.arrays)
        arrays |= {f"leaf {i}": array for i, array in enumerate(pause.arrays)}
        if early is not None:
            arrays["early"] = early
    return Record(head, arrays | {f"sum {name}": array for name, array in sums.items()})


def _stood(kept, first, last) -> tuple[list[Sums], int, Pause | None, int, np.ndarray | None]:
    """From a checkpoint: pieces done, the next replica, where its piece stands, how large it is and its first half if over."""
    if kept is None or kept.head["at"][:2] != [first, last]:
        return [], first, None, 0, None
    _, _, at, size = kept.head["at"]
    done = [Sums(*(kept.arrays[f"sum {name}"] for name in Sums._fields))] if at > first else []
    if kept.head["events"] is None:
        return done, at, None, 0, None
    leaves = [kept.arrays[f"leaf {i}"] for i in range(kept.head["leaves"])]
    return done, at, Pause(kept.head["events"], leaves), size, kept.arrays.get("early")


_PLAIN = ("occ_ub", "occ_ub_0", "kiid_ub", "optimum", "optimum_occ_ub", "occ_slope", "steps", "warmup", "device")
_ARRAYS = ("reward", "blocked", "assigned", "drift", "drift_ci95", "stationary", "selection_matters")


def record_of(cell: Cell) -> Record:
    """A cell as plain values and arrays; its instance is left to the reader, who knows it."""
    head, arrays = _policy_parts(cell.policies)
    plain = {key: getattr(cell, key) for key in _PLAIN}
    plain = {key: float(value) if isinstance(value, np.floating) else value for key, value in plain.items()}
    return Record(head | plain, arrays | {key: getattr(cell, key) for key in _ARRAYS})


def cell_of(instance: Instance, record: Record) -> Cell:
    """What `record_of` was given."""
    plain: dict = {key: record.head[key] for key in _PLAIN}
    arrays: dict = {key: record.arrays[key] for key in _ARRAYS}
    return Cell(instance=instance, policies=_policies_of(record), **plain, **arrays)


def _policy_parts(policies):
    head = {"policies": [[p.name, p.rule, list(p.notes)] for p in policies]}
    tables = {f"{field} {i}": getattr(p, field) for i, p in enumerate(policies) for field in ("tier", "weight")}
    return head, tables


def _policies_of(record):
    return tuple(
        Policy(name, record.arrays[f"tier {i}"], record.arrays[f"weight {i}"], rule, tuple(notes))
        for i, (name, rule, notes) in enumerate(record.head["policies"])
    )


def described(tasks: Sequence[Task]) -> dict:
    """What determines the results of these tasks, readable, for `lagjax.runs.folder`."""
    first = tasks[0]
    asked = {} if first.kiid == "auto" else {"kiid": first.kiid}
    return {
        "instances": described_instances([task.instance for task in tasks]),
        "policies": [described_policy(same) for same in zip(*(task.policies for task in tasks), strict=True)],
        "steps": None if first.steps is None else int(first.steps),
        "replicas": int(first.replicas),
        "seed": int(first.seed),
        "selection": first.selection,
        **asked,
    }


def described_instances(instances: Sequence[Instance]) -> dict:
    """Instances at their loads in words: sizes, and digests of what is long."""
    out: dict = {}
    for instance in instances:
        entry = out.setdefault(
            instance.name,
            {
                "task types": instance.num_types, "servers": instance.num_servers,
                "servers per task": instance.servers_per_task, "longest service": instance.max_duration,
                "scores": digest(instance.scores)[:16], "service": digest(instance.service_pmf)[:16],
                "mix": digest(np.round(instance.arrival_rate / instance.total_rate, 12))[:16],
                "names": digest(list(instance.tasks), list(instance.servers))[:16], "loads": [],
            },
        )  # fmt: skip
        entry["loads"].append(round(instance.load, 9))
    return out


def described_policy(same: Sequence[Policy | str]):
    """One policy on all instances: its name, or a digest of what it is."""
    if isinstance(same[0], str):
        return same[0]
    tables = digest(
        *(table for policy in same if isinstance(policy, Policy) for table in (policy.tier, policy.weight))
    )[:16]
    return {"name": same[0].name, "rule": same[0].rule, "tables": tables}
