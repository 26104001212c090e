"""Exact values: policies of small systems without simulation, beside their bound and the best that any policy can do."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from lagjax.engine.checks import whole_number
from lagjax.engine.devices import device_name
from lagjax.errors import InputError
from lagjax.exact import evaluate, exact_blocking, improve, level_bound, optimum
from lagjax.exact.chain import build_chain
from lagjax.exact.groups import equal_servers
from lagjax.exact.many import is_small
from lagjax.gallery import instances_of
from lagjax.instance import Instance
from lagjax.lp import check_selection, occ_upper_bound
from lagjax.policies import POLICIES, Policy, PolicyLike
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record
from lagjax.runs.running import Running
from lagjax.studies.dataset import merged, provenance, record_of, worded
from lagjax.studies.load_cells import described_instances, described_policy
from lagjax.studies.study import conduct, named_apart
from lagjax.tune import SINGLE_NAMES, TUNED, named_policy

IMPROVED = "improved"  # one step of policy improvement on `tuned`: it depends on the state, so it has no table
KNOWN = (*SINGLE_NAMES, IMPROVED)


class ExactSpec(NamedTuple):
    """What determines a cell: an instance at its load, policies built or named, and how they are built."""

    instance: Instance
    policies: tuple[Policy | str, ...]
    selection: str
    seed: int


def exact(
    instances: Instance | str | Sequence[Instance | str],
    *,
    policies: Sequence[PolicyLike] | None = None,
    selection: str = "canonical",
    seed: int = 0,
    progress: Callable[[int, int], object] | None = None,
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Solves small systems exactly.

    Args:
      instances: one or several, at their loads, or names in the gallery.
      policies: names of KNOWN, or whatever else `lagjax.build_policy` takes; by default all names, but those that take a search
        only where all systems are small.
      selection: which LP optimum makes LAG and ALG-SC-LP.
      seed: of `tuned` and `improved`, in [0, 2^64).
      progress: called with the instances done so far and those in all.
      out: folder that keeps every finished instance, and in the end what `lagjax exact` leaves.
      running: where and how the cells run; see `lagjax.runs.running.Running`. No result depends on it.

    Returns:
      A Dataset with dimensions instance and policy: reward_per_step, percent_of_occ_ub, percent_of_optimum and states; and over
      instance offered_load, blocking, occ_ub, optimal_reward, optimal_states and level_bound (NaN unless durations are geometric
      with one mean).

    Raises:
      InputError: an argument that cannot be used, or a system that is too large.
      SolverError: a chain or a program was not solved, and no folder keeps the other cells.
    """
    check_selection(selection)
    whole_number("seed", seed, 0, 2**64 - 1)
    chosen = instances_of(instances)
    for one in chosen:
        build_chain(one, equal_servers(one.scores))  # refuses what is too large
    if policies is None:
        policies = KNOWN if all(map(is_small, chosen)) else tuple(POLICIES)
    if not policies:
        raise InputError("policies is empty; give a list of at least one policy")
    specs = [ExactSpec(one, tuple(_policy(p, one) for p in policies), selection, seed) for one in chosen]
    names = [p if isinstance(p, str) else p.name for p in specs[0].policies]
    named_apart("policies", names)
    configuration = {
        "instances": described_instances(chosen),
        "policies": [described_policy(same) for same in zip(*(spec.policies for spec in specs), strict=True)],
        "selection": selection,
        "seed": int(seed),
    }

    def assemble(records):
        data = merged(records).sel(instance=[one.name for one in chosen], policy=names)
        data.attrs = {
            "title": "Exact rewards of policies, their upper bound, and the optimum",
            **provenance(seed=seed, selection=selection, device=device_name()),
            "configuration": json.dumps({"loads": {one.name: round(one.load, 9) for one in chosen}}),
        }
        return worded(data, "exact")

    return conduct(
        "exact", [exact_job(spec) for spec in specs], configuration, assemble, out=out,
        running=running or Running(unit="cells"), progress=progress, done=lambda status: (status.ended, status.jobs),
    )  # fmt: skip


def _policy(policy, instance):
    """The name of a policy that is built later, or any other policy built."""
    return policy if isinstance(policy, str) and policy in KNOWN else named_policy(policy, instance)


def exact_job(spec: ExactSpec) -> Job:
    """The job of an instance."""
    return Job(f"{spec.instance.name} {spec.instance.load:.10g}", "exact", 1.0, functools.partial(run_exact, spec))


def run_exact(spec: ExactSpec, watch: Watch) -> Record:
    """Solves the chains of an instance, in one process of a team."""
    return watch.gather(functools.partial(_solved, spec))[0]


def _solved(spec):
    instance = spec.instance
    best, blocking = optimum(instance), exact_blocking(instance)
    bound = occ_upper_bound(instance, blocking)
    try:
        levels = level_bound(instance).reward
    except InputError:  # not geometric with one mean
        levels = np.nan
    values = [_value(policy, spec) for policy in spec.policies]
    reward = np.array([value for value, _ in values])
    names = [p if isinstance(p, str) else p.name for p in spec.policies]
    of_instance = {
        "offered_load": round(instance.load, 9), "blocking": blocking, "occ_ub": bound, "optimal_reward": best.reward,
        "optimal_states": float(best.chain.num_states), "level_bound": levels,
    }  # fmt: skip
    of_policy = {
        "reward_per_step": reward, "percent_of_occ_ub": 100 * reward / bound, "percent_of_optimum": 100 * reward / best.reward,
        "states": np.array([float(states) for _, states in values]),
    }  # fmt: skip
    variables: dict = {key: ("instance", np.array([value])) for key, value in of_instance.items()}
    variables |= {key: (("instance", "policy"), value[None]) for key, value in of_policy.items()}
    return record_of(variables, {"instance": [instance.name], "policy": names})


def _value(policy, spec):
    """Reward per step and states of the chain."""
    instance, seed = spec.instance, spec.seed
    if isinstance(policy, str) and policy == IMPROVED:
        better = improve(instance, named_policy(TUNED, instance, seed=seed))
        return better.reward, better.chain.num_states
    value = evaluate(instance, named_policy(policy, instance, spec.selection, seed=seed))
    return value.reward, value.states
