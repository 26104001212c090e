"""The convergence study: reward per copy against n and m, as a share of the upper bound (Lag, Figure 6)."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path

import xarray as xr

from lagjax.engine.checks import whole_number
from lagjax.engine.scaled_run import check_size
from lagjax.errors import InputError
from lagjax.gallery import instances_of
from lagjax.instance import Instance
from lagjax.lp import check_selection
from lagjax.policies import PolicyLike, build_policy
from lagjax.runs.running import Running
from lagjax.studies.dataset import merged, provenance, worded
from lagjax.studies.kiid import check_kiid
from lagjax.studies.load_cells import described_instances, described_policy
from lagjax.studies.published import published_among
from lagjax.studies.size_cells import Size, SizeSpec, size_job
from lagjax.studies.study import conduct
from lagjax.tune import TUNED

DEFAULT_COPIES = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536)
DEFAULT_REPLICAS = 256
STARTS = ("warm", "empty")


def sizes_of(copies: Sequence[int], dispatchers: str | Sequence[int] = "sqrt") -> list[Size]:
    """Pairs n and m: m = floor(sqrt(n)) for "sqrt"; else lists of equal length, or one number that goes with every other.

    Raises:
      InputError: a size that is not a positive whole number, a size twice, or lists of different lengths.
    """
    copies = list(copies)
    for n in copies:
        whole_number("copies", n, 1)
    if isinstance(dispatchers, str):
        if dispatchers != "sqrt":
            raise InputError(f"dispatchers is '{dispatchers}'; give sqrt or whole numbers")
        listed = [math.isqrt(n) for n in copies]
    else:
        listed = list(dispatchers)
        for m in listed:
            whole_number("dispatchers", m, 1)
    if len(listed) == 1:
        listed = listed * len(copies)
    if len(copies) == 1:
        copies = copies * len(listed)
    if len(copies) != len(listed) or not copies:
        raise InputError(
            f"{len(copies)} values of copies go with {len(listed)} of dispatchers; give as many of each, or one of either"
        )
    sizes = [Size(int(n), int(m)) for n, m in zip(copies, listed, strict=True)]
    for i, size in enumerate(sizes):
        if size in sizes[:i]:
            raise InputError(f"copies {size.copies} with dispatchers {size.dispatchers} is named twice; name it once")
    return sizes


def converge(
    instances: Instance | str | Sequence[Instance | str],
    *,
    sizes: Sequence[Size],
    policies: Sequence[PolicyLike] = ("lag",),
    steps: int | None = None,
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    selection: str = "canonical",
    start: str = "warm",
    kiid: str = "auto",
    progress: Callable[[int, int], object] | None = None,
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Simulates the scaled system at every size and compares reward per copy with OPT(OCC-LP(B_hat)).

    Args:
      instances: one or several, at their loads, or names in the gallery.
      sizes: from `sizes_of`.
      policies: `tuned`, which is tuned for each size, or what `lagjax.build_policy` takes.
      steps: steps counted per replica at every size. By default a pilot run of 200,000 tasks sizes each cell so that its
        interval comes to about ±0.25 points, 0.3 at most; the pilot is the beginning of the run that counts, or all of it.
        Where the two halves of a run differ by more than chance, it starts again with twice the warm-up.
      replicas: independent replicas.
      seed: of all randomness, in [0, 2^64).
      selection: which LP optimum makes LAG, ALG-SC-LP and the warm start.
      start: "warm" (the fluid fixed point x_hat, then 3 mean service times dropped) or "empty" (10, and at least d steps).
      kiid: whether OPT(KIID) is solved; see `lagjax.studies.load_sweep.sweep`.
      progress: called with the cells done so far and those in all.
      out: folder that keeps every finished cell, so that the same call goes on with what it finds there, and in the end what
        `lagjax converge` leaves: converge.nc, the table and the picture.
      running: where and how the cells run; see `lagjax.runs.running.Running`. No result depends on it.

    Returns:
      A Dataset with dimensions instance, system_size (coordinates copies and dispatchers), policy and replica; `drift` is the
      second half of the counted steps less the first, in points: what is left of the start, with its interval. `stationary` is 1
      where nothing is seen to be left of it, 0 where something is, NaN where that is not known (see `lagjax.stats.start`).

    Raises:
      InputError: an argument that cannot be used.
    """
    if steps is not None:
        whole_number("steps", steps, 2)
    whole_number("seed", seed, 0, 2**64 - 1)
    check_selection(selection)
    check_kiid(kiid)
    if start not in STARTS:
        raise InputError(f"start is '{start}'; choose from {', '.join(STARTS)}")
    if not policies or not sizes:
        raise InputError("nothing to simulate; give at least one policy and one size")
    chosen = instances_of(instances)
    names = [instance.name for instance in chosen]
    most = max(size.dispatchers for size in sizes)
    made = [[_built(p, instance, selection) for p in policies] for instance in chosen]
    specs = [
        SizeSpec(instance, policy, size, place, steps, replicas, seed, selection, start, most, kiid)
        for instance, built in zip(chosen, made, strict=True)
        for policy in built
        for place, size in enumerate(sizes)
    ]
    for spec in specs:
        like = build_policy("lag", spec.instance, selection) if isinstance(spec.policy, str) else spec.policy
        check_size(spec.instance, like, *spec.size, replicas)
    configuration = {
        "instances": described_instances(chosen),
        "policies": [
            p if isinstance(p, str) else described_policy([built[i] for built in made]) for i, p in enumerate(policies)
        ],
        "copies": [size.copies for size in sizes],
        "dispatchers": [size.dispatchers for size in sizes],
        "steps": steps,
        "replicas": replicas,
        "seed": seed,
        "selection": selection,
        "start": start,
        **({} if kiid == "auto" else {"kiid": kiid}),
    }
    ordered = list(dict.fromkeys(_name(spec.policy) for spec in specs))

    def assemble(records):
        data = merged(records).sel(instance=names, policy=ordered)
        data = data.assign_coords(
            copies=("system_size", [s.copies for s in sizes]),
            dispatchers=("system_size", [s.dispatchers for s in sizes]),
        )
        loads = {"start": start, "loads": {i.name: round(i.load, 9) for i in chosen}}
        devices = ", ".join(dict.fromkeys(record.head["about"]["device"] for record in records))
        data.attrs = {
            "title": "Reward per copy of the (m,n)-scaled system against its upper bound",
            **provenance(seed=seed, selection=selection, device=devices),
            "configuration": json.dumps(loads), "kiid": kiid, "published": published_among(chosen),
        }  # fmt: skip
        return worded(data)

    return conduct(
        "converge", [size_job(spec) for spec in specs], configuration, assemble, out=out,
        running=running or Running(unit="cells"), progress=progress, done=lambda status: (status.ended, status.jobs),
    )  # fmt: skip


def _name(policy):
    return policy if isinstance(policy, str) else policy.name


def _built(policy, instance, selection):
    """The policy, or its name where it is made for each size."""
    return policy if isinstance(policy, str) and policy == TUNED else build_policy(policy, instance, selection)
