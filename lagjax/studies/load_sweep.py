"""The load sweep: instances x loads x policies, each cell with its bound and its interval, as one xarray Dataset."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import xarray as xr

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.run import check_length
from lagjax.errors import InputError
from lagjax.gallery import instances_of
from lagjax.instance import Instance, as_number
from lagjax.lp import check_selection
from lagjax.policies import PolicyLike
from lagjax.runs.running import Running
from lagjax.studies.cell import assembled
from lagjax.studies.kiid import check_kiid
from lagjax.studies.load_cells import LoadSpec, described, load_job
from lagjax.studies.measure import arrivals_and_warmup
from lagjax.studies.published import published_among
from lagjax.studies.study import conduct, named_apart
from lagjax.tune import SINGLE_NAMES, named_policy

DEFAULT_POLICIES = ("lag", "greedy", "random", "alg-sc-lp", "whittle", "whittle-rate")
DEFAULT_REPLICAS = 1024


def sweep(
    instances: Instance | str | Sequence[Instance | str],
    *,
    loads: Sequence[float] | Callable[[Instance], Sequence[float]],
    policies: Sequence[PolicyLike] = DEFAULT_POLICIES,
    steps: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    selection: str = "canonical",
    kiid: str = "auto",
    progress: Callable[[int, int], object] | None = None,
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Simulates every policy on every instance at every load and compares it with its upper bound.

    Every input is checked before the first simulation starts. A cell's programs are solved, and its policies made from them,
    when its turn comes, `tuned` on random numbers other than the sweep's.

    Processes: JAX starts threads, which `os.fork` does not copy, so a process forked after anything was simulated is refused
    (the start method "fork" of multiprocessing, which Linux had by default before Python 3.14); use "spawn". A script whose
    `running` has workers does its work below `if __name__ == "__main__":`, since workers import it.

    Args:
      instances: one or several, or names in the gallery; their own loads are not used.
      loads: rho values in (0, 1 - k/R], or a function that gives those of an instance.
      policies: names from `lagjax.tune.SINGLE_NAMES`, or whatever else `lagjax.build_policy` takes for an instance at its load.
      steps: steps counted per replica at each load; by default as many as bring 6,144 tasks.
      replicas: independent replicas, at least 2 for intervals.
      seed: of all randomness, in [0, 2^64).
      selection: which LP optimum makes LAG and ALG-SC-LP; see `lagjax.lp.SELECTIONS`.
      kiid: whether OPT(KIID), which is for reference only, is solved: "always", "never" (it is NaN then), or "auto", unless it
        would cost more than the rest; see `lagjax.studies.kiid`.
      progress: called again and again with the arrivals simulated so far, over policies and replicas, and those in all.
      out: folder that keeps every finished cell, so that the same call goes on with what it finds there, and in the end what
        `lagjax sweep` leaves: sweep.nc, the table and the pictures.
      running: where and how the cells run; see `lagjax.runs.running.Running`. No result depends on it.

    Returns:
      A Dataset with dimensions instance, offered_load, policy and replica; see `lagjax.studies.cell.assembled`.

    Raises:
      InputError: an argument that cannot be used.
      RunError: cells failed; the others are kept. Or this process was forked after JAX had started.
      SolverError: a program was not solved, and no folder keeps the other cells.
    """
    if steps is not None and not _positive_whole(steps):
        raise InputError(f"steps is {steps!r}; give a whole number, 1 or more")
    check_selection(selection)
    check_kiid(kiid)
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    whole_number("seed", seed, 0, 2**64 - 1)
    chosen = instances_of(instances)
    policies = _listed("policies", policies, "policy")
    if not callable(loads):
        loads = _listed("loads", loads, "load")
    specs = [
        LoadSpec(
            at, _named_apart(map(functools.partial(_policy, at), policies)), steps, replicas, seed, selection, kiid
        )
        for instance in chosen
        for at in map(instance.with_load, _distinct(loads(instance) if callable(loads) else loads))
    ]
    for spec in specs:
        check_length(sum(arrivals_and_warmup(spec.instance, spec.steps)))

    def assemble(records):
        data = assembled(records, seed=seed, selection=selection)
        return data.assign_attrs(kiid=kiid, published=published_among(chosen))

    return conduct(
        "sweep", [load_job(spec) for spec in specs], described(specs), assemble, out=out, running=running,
        progress=progress,
    )  # fmt: skip


def _policy(instance, policy):
    """The name of a policy that is built later, or any other policy built."""
    return policy if isinstance(policy, str) and policy in SINGLE_NAMES else named_policy(policy, instance)


def _named_apart(policies):
    policies = tuple(policies)
    named_apart("policies", [policy if isinstance(policy, str) else policy.name for policy in policies])
    return policies


def _listed(field, values, one):
    """The values as a list; a lone one or none is named."""
    try:
        listed = [] if isinstance(values, str) else list(values)
    except TypeError:
        listed = []
    if not listed:
        raise InputError(f"{field} is {values!r}; give a list of at least one {one}")
    return listed


def _positive_whole(value):
    try:
        return not isinstance(value, bool) and value == int(value) and value >= 1
    except (OverflowError, TypeError, ValueError):
        return False


def _distinct(loads):
    """Loads in order; those that results would not tell apart count once."""
    return sorted({round(as_number("load", load), 9): load for load in loads}.values())
