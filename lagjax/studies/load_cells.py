"""One cell of a load sweep as a job: what determines it, its pieces, and its part of the study's Dataset."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from lagjax.engine.devices import default_block
from lagjax.engine.run import CHUNK, batch_bytes, simulate
from lagjax.instance import Instance
from lagjax.models.policy_tables import policy_tables
from lagjax.policies import Policy
from lagjax.runs.batched import Batch, batched
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record, digest
from lagjax.studies.cell import record_of_cell
from lagjax.studies.kiid import wants_kiid
from lagjax.studies.measure import Sums, arrivals_and_warmup, early_sums, measured, summed
from lagjax.tune import SLOW, named_policy

MOST_PER_CALL = 1_000_000_000  # arrivals, times policies and replicas, between two words of a cell: seconds


class LoadSpec(NamedTuple):
    """What determines a cell.

    Attributes:
      instance: at its load.
      policies: built, or names of those that are built when the cell's turn comes.
      steps: counted per replica, or None for the default number of tasks.
      replicas, seed, selection, kiid: as in `lagjax.studies.load_sweep.sweep`.
    """

    instance: Instance
    policies: tuple[Policy | str, ...]
    steps: int | None
    replicas: int
    seed: int
    selection: str
    kiid: str = "auto"


def load_job(spec: LoadSpec) -> Job:
    """The job of a cell; its work is in arrivals, times policies and replicas."""
    instance = spec.instance
    rules = [p if isinstance(p, str) else policy_tables([p])[1][0].group for p in spec.policies]
    shape = f"{instance.scores.shape} {instance.max_duration} {instance.servers_per_task} {sorted(map(str, rules))}"
    name = f"{instance.name} {round(instance.load, 9):.10g}"
    return Job(name, shape, _replica_work(spec) * spec.replicas, functools.partial(run_load, spec))


def _replica_work(spec):
    return sum(arrivals_and_warmup(spec.instance, spec.steps)) * len(spec.policies)


def run_load(spec: LoadSpec, watch: Watch) -> Record:
    """Simulates all policies on the same tasks and measures them against their bound."""
    policies: tuple[Policy, ...] = ()

    def prepare(about):
        nonlocal policies
        policies = built(spec) if about is None else policies_of(about)
        return Batch(
            functools.partial(_piece, spec, policies), batch_bytes(spec.instance, policies), _replica_work(spec),
            added=("served",), about=record_of_policies(policies),
            dear=any(p in SLOW for p in spec.policies if isinstance(p, str)),
        )  # fmt: skip

    sums = Sums(**batched(watch, spec.replicas, prepare))
    arrivals, warmup = arrivals_and_warmup(spec.instance, spec.steps)
    names = [policy.name for policy in policies]
    kiid = wants_kiid(spec.kiid, spec.instance, names, _replica_work(spec) * spec.replicas)
    return record_of_cell(measured(spec.instance, policies, sums, arrivals, warmup, spec.steps, kiid))


def built(spec: LoadSpec) -> tuple[Policy, ...]:
    """The policies of a cell; those left as names are built now: their programs take a while, and `tuned` takes long."""
    return tuple(
        named_policy(p, spec.instance, spec.selection, seed=spec.seed) if isinstance(p, str) else p
        for p in spec.policies
    )


def _piece(spec, policies, first, count, resume, save, progress):
    """`Batch.simulate`."""
    instance, early = spec.instance, None

    def halfway(counts):
        nonlocal early
        early = early_sums(instance, counts)

    arrivals, warmup = arrivals_and_warmup(instance, spec.steps)
    block = default_block(jax.local_devices()[0].platform)
    counts = simulate(
        instance, policies, arrivals=arrivals, warmup=warmup, replicas=count, first_replica=first, seed=spec.seed,
        chunk=max(1, min(CHUNK, MOST_PER_CALL // (block * count * len(policies)))), progress=progress, resume=resume,
        save=save, halfway=halfway,
    )  # fmt: skip
    return summed(instance, counts, early)._asdict()


def record_of_policies(policies: Sequence[Policy]) -> Record:
    """Built policies as plain values and arrays."""
    head = {"policies": [[p.name, p.rule, list(p.notes)] for p in policies]}
    tables = {f"{field} {i}": getattr(p, field) for i, p in enumerate(policies) for field in ("tier", "weight")}
    return Record(head, tables)


def policies_of(record: Record) -> tuple[Policy, ...]:
    """What `record_of_policies` was given."""
    return tuple(
        Policy(name, record.arrays[f"tier {i}"], record.arrays[f"weight {i}"], rule, tuple(notes))
        for i, (name, rule, notes) in enumerate(record.head["policies"])
    )


def described(specs: Sequence[LoadSpec]) -> dict:
    """What determines the results of these cells, readable, for `lagjax.runs.folder`."""
    first = specs[0]
    asked = {} if first.kiid == "auto" else {"kiid": first.kiid}
    return {
        "instances": described_instances([spec.instance for spec in specs]),
        "policies": [described_policy(same) for same in zip(*(spec.policies for spec in specs), strict=True)],
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
