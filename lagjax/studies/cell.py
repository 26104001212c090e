"""A cell of a load sweep: what every policy earned on one instance at one load, and its part of the study's Dataset."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import xarray as xr

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.policies import Policy
from lagjax.runs.record import Record
from lagjax.stats import estimate, percent_of_bound
from lagjax.studies.dataset import merged, provenance, record_of, worded


class Cell(NamedTuple):
    """One instance at one load, with what every policy earned there; P policies, B replicas.

    Attributes:
      instance: at this load.
      policies: P policies, in the order of the arrays.
      reward: (P, B) reward per step.
      blocked: (B,) fraction of tasks lost, the same under every policy.
      assigned: (P, V, R) servers given per step, by task type and server, mean over replicas.
      occ_ub, occ_ub_0, kiid_ub: OPT(OCC-LP(B_hat)), OPT(OCC-LP(0)), OPT(KIID) (None where skipped), reward per step.
      optimum, optimum_occ_ub: reward per step of the best policy, and OPT(OCC-LP(B)) at the exact blocking B beside which
        it stands; None where the optimum is not known (`lagjax.exact.known_optimum`).
      occ_slope: d OPT(OCC-LP(B)) / dB at B_hat.
      steps, warmup: steps counted and dropped per replica.
      drift, drift_ci95: (P,) second half of what was counted less the first, in points of occ_ub; NaN where there are no halves.
      stationary: (P,) whether nothing is left of the empty start: 1 yes, 0 no, NaN not known (see `lagjax.stats.start`).
      selection_matters: (P,) whether the LP that made a policy has several optima that make different ones; NaN where unknown.
      device: what simulated it.
    """

    instance: Instance
    policies: tuple[Policy, ...]
    reward: np.ndarray
    blocked: np.ndarray
    assigned: np.ndarray
    occ_ub: float
    occ_ub_0: float
    kiid_ub: float | None
    optimum: float | None
    optimum_occ_ub: float | None
    occ_slope: float
    steps: int
    warmup: int
    drift: np.ndarray
    drift_ci95: np.ndarray
    stationary: np.ndarray
    selection_matters: np.ndarray
    device: str


def check_served(blocked) -> None:
    """Raises InputError where every counted task was lost, or none came: too few were counted to estimate anything."""
    if not np.mean(blocked) < 1:
        raise InputError("no counted task was served, so there is nothing to compare; use more steps or more replicas")


def assemble(cells: Sequence[Cell], *, seed: int, selection: str) -> xr.Dataset:
    """Builds the Dataset of a sweep from measured cells; see `assembled`."""
    return assembled([record_of_cell(cell) for cell in cells], seed=seed, selection=selection)


def assembled(records: Sequence[Record], *, seed: int, selection: str) -> xr.Dataset:
    """Builds the Dataset of a sweep; combinations of instance and load that were not run are NaN.

    Variables over (instance, offered_load, policy): reward_per_step, percent_of_occ_ub (of OPT(OCC-LP(B_hat))), each with its
    `_ci95` half-width (`reward_ci95`, `percent_ci95`), percent_of_optimum with percent_of_optimum_ci95 (NaN where the
    optimum is not known), drift (second half of the counted tasks less the first, in points of the bound) with drift_ci95,
    stationary (1 where nothing is left of the start, 0 where something is, NaN where that is not known), and
    selection_matters (1 where the policy comes from an LP with several optima that make different policies). Over (instance,
    offered_load, policy, than): difference, the paired difference of percent_of_occ_ub between two policies on the same
    arrivals, with difference_ci95. Over (instance, offered_load): blocking, blocking_ci95, occ_ub, occ_ub_0, kiid_ub,
    optimal_reward, optimal_percent_of_occ_ub (of OPT(OCC-LP(B)) at the exact B: no noise), steps, warmup. Over (instance,
    offered_load, policy, replica): reward. Over (instance, offered_load, replica): blocked. Per instance, over (offered_load,
    policy, task_NAME, server_NAME): assigned_NAME, servers given per step. Attributes: seed, selection, versions, device,
    configuration.
    """
    data = merged(records)
    about = [record.head["about"] for record in records]
    order = list(dict.fromkeys(cell["configuration"]["instance"] for cell in about))
    names = list(dict.fromkeys(policy for cell in about for policy in cell["configuration"]["policies"]))
    data = data.sel(instance=order, policy=names, than=names).sortby("offered_load")
    data.attrs = {
        "title": "Reward of assignment policies against their upper bound",
        **provenance(seed=seed, selection=selection, device=", ".join(dict.fromkeys(cell["device"] for cell in about))),
        "configuration": json.dumps([cell["configuration"] for cell in about]),
    }
    return worded(data)


def record_of_cell(cell: Cell) -> Record:
    """The cell's part of the Dataset."""
    at, name = ("instance", "offered_load"), cell.instance.name
    percent = percent_of_bound(cell.reward, cell.blocked, cell.occ_ub, cell.occ_slope)
    reward, share, blocking = estimate(cell.reward), estimate(percent), estimate(cell.blocked)
    optimum = np.nan if cell.optimum is None else cell.optimum
    kiid = np.nan if cell.kiid_ub is None else cell.kiid_ub
    optimum_occ_ub = np.nan if cell.optimum_occ_ub is None else cell.optimum_occ_ub
    difference = estimate(percent[:, None] - percent[None])
    per_cell: dict = {
        "blocking": blocking.mean, "blocking_ci95": blocking.ci95, "occ_ub": cell.occ_ub, "occ_ub_0": cell.occ_ub_0,
        "kiid_ub": kiid, "optimal_reward": optimum, "optimal_percent_of_occ_ub": 100 * optimum / optimum_occ_ub,
        "steps": float(cell.steps), "warmup": float(cell.warmup),
    }  # fmt: skip
    per_policy = {
        "reward_per_step": reward.mean, "reward_ci95": reward.ci95, "percent_of_occ_ub": share.mean,
        "percent_ci95": share.ci95, "percent_of_optimum": 100 * reward.mean / optimum,
        "percent_of_optimum_ci95": 100 * reward.ci95 / optimum,
        "drift": cell.drift, "drift_ci95": cell.drift_ci95, "stationary": cell.stationary,
        "selection_matters": cell.selection_matters.astype(float),
    }  # fmt: skip
    per_pair = {"difference": difference.mean, "difference_ci95": difference.ci95}
    names = [policy.name for policy in cell.policies]
    variables: dict = {key: (at, np.reshape(value, (1, 1))) for key, value in per_cell.items()}
    variables |= {key: ((*at, "policy"), value[None, None]) for key, value in per_policy.items()}
    variables |= {key: ((*at, "policy", "than"), value[None, None]) for key, value in per_pair.items()}
    variables["reward"] = ((*at, "policy", "replica"), cell.reward[None, None])
    variables["blocked"] = ((*at, "replica"), cell.blocked[None, None])
    axes = ("offered_load", "policy", f"task_{name}", f"server_{name}")
    variables[f"assigned_{name}"] = (axes, cell.assigned[None])
    coordinates: dict = {
        "instance": [name], "offered_load": [round(cell.instance.load, 9)], "policy": names, "than": names,
        f"task_{name}": list(cell.instance.tasks), f"server_{name}": list(cell.instance.servers),
    }  # fmt: skip
    return record_of(variables, coordinates, configuration=_configuration(cell), device=cell.device)


def _configuration(cell):
    instance = cell.instance
    return {
        "instance": instance.name,
        "load": round(instance.load, 9),
        "servers_per_task": instance.servers_per_task,
        "types": instance.num_types,
        "servers": instance.num_servers,
        "max_duration": instance.max_duration,
        "mean_duration": [float(x) for x in instance.mean_duration],
        "arrival_rate": [float(x) for x in instance.arrival_rate],
        "policies": {policy.name: list(policy.notes) for policy in cell.policies},
    }
