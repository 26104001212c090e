"""Results as an xarray Dataset with named dimensions: built from cells, saved, loaded, and read out as rows."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import NamedTuple

import numpy as np
import xarray as xr

from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.instance import Instance
from lagjax.policies import Policy
from lagjax.runs.files import write_whole
from lagjax.runs.folder import file_name
from lagjax.stats import estimate, percent_of_bound, told

ROW_KEYS = (
    "instance", "load", "policy", "reward_per_step", "reward_ci95", "percent_of_occ_ub", "percent_ci95", "blocking",
    "occ_ub", "occ_ub_0", "kiid_ub", "steps", "replicas", "percent_of_optimum", "percent_of_optimum_ci95", "optimal_reward",
    "optimal_percent_of_occ_ub", "drift", "drift_ci95", "stationary",
)  # fmt: skip
NAMES = "names"  # attribute of a file: names of variables and dimensions in full, by their ASCII spelling there


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
    """Builds the Dataset of a sweep; combinations of instance and load that were not run are NaN.

    Variables over (instance, load, policy): reward_per_step, percent_of_occ_ub (of OPT(OCC-LP(B_hat))), each with its
    `_ci95` half-width (`reward_ci95`, `percent_ci95`), percent_of_optimum with percent_of_optimum_ci95 (NaN where the
    optimum is not known), drift (second half of the counted tasks less the first, in points of the bound) with drift_ci95,
    stationary (1 where nothing is left of the start, 0 where something is, NaN where that is not known), and
    selection_matters (1 where the policy comes from an LP with several optima that make different policies). Over (instance,
    load, policy, than): difference, the paired difference of percent_of_occ_ub between two policies on the same arrivals,
    with difference_ci95. Over (instance, load): blocking, blocking_ci95, occ_ub, occ_ub_0, kiid_ub, optimal_reward,
    optimal_percent_of_occ_ub (of OPT(OCC-LP(B)) at the exact B: no noise), steps, warmup. Over (instance, load, policy,
    replica): reward. Over (instance, load, replica): blocked. Per instance, over (load, policy, task_NAME, server_NAME):
    assigned_NAME, servers given per step. Attributes: seed, selection, versions, device, configuration.
    """
    parts = [_cell_dataset(cell) for cell in cells]
    data = xr.merge(parts, join="outer", compat="no_conflicts", combine_attrs="drop")
    order = list(dict.fromkeys(cell.instance.name for cell in cells))
    names = list(dict.fromkeys(policy.name for cell in cells for policy in cell.policies))
    data = data.sel(instance=order, policy=names, than=names).sortby("load")
    data.attrs = {
        "title": "Reward of assignment policies against their upper bound",
        **provenance(seed=seed, selection=selection, device=", ".join(dict.fromkeys(cell.device for cell in cells))),
        "configuration": json.dumps([_configuration(cell) for cell in cells]),
    }
    return data


def _cell_dataset(cell):
    at = ("instance", "load")
    name = cell.instance.name
    percent = percent_of_bound(cell.reward, cell.blocked, cell.occ_ub, cell.occ_slope)
    reward, share, blocking = estimate(cell.reward), estimate(percent), estimate(cell.blocked)
    optimum = np.nan if cell.optimum is None else cell.optimum
    kiid = np.nan if cell.kiid_ub is None else cell.kiid_ub
    optimum_occ_ub = np.nan if cell.optimum_occ_ub is None else cell.optimum_occ_ub
    difference = estimate(percent[:, None] - percent[None])
    per_cell = {
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
    axes = ("load", "policy", f"task_{name}", f"server_{name}")
    variables[f"assigned_{name}"] = (axes, cell.assigned[None])
    coordinates = {
        "instance": [name], "load": [round(cell.instance.load, 9)], "policy": names, "than": names,
        f"task_{name}": list(cell.instance.tasks), f"server_{name}": list(cell.instance.servers),
    }  # fmt: skip
    return xr.Dataset(variables, coordinates)


def rows(data: xr.Dataset) -> list[dict]:
    """Returns one dict per instance, load and policy that was run, with the keys `ROW_KEYS` and plain Python values."""
    out = []
    for instance in data.instance.values:
        for load in data["load"].values:
            for policy in data.policy.values:
                cell = data.sel(instance=instance, load=load, policy=policy)
                if np.isnan(cell.reward_per_step):
                    continue
                row = {"instance": str(instance), "load": float(load), "policy": str(policy)}
                for key in ROW_KEYS[3:]:
                    value = data.sizes["replica"] if key == "replicas" else cell[key].item()
                    row[key] = int(value) if key in ("steps", "replicas") else _finite(value)
                row["stationary"] = told(cell.stationary)
                out.append(row)
    return out


def save(data: xr.Dataset, path) -> None:
    """Writes the Dataset as netCDF: complete or not at all.

    Names of variables and dimensions that netCDF cannot hold everywhere, such as those with Chinese letters, are written in
    ASCII; the attribute `names` (JSON) has them in full, and `load` gives them back.
    """
    spelt = _spelt([str(name) for name in dict.fromkeys([*data.variables, *data.dims])])
    if spelt:
        names = json.dumps({short: name for name, short in spelt.items()}, ensure_ascii=False)
        data = data.rename(spelt).assign_attrs({NAMES: names})
    write_whole(path, lambda temporary: data.to_netcdf(temporary, engine="scipy"))


def _spelt(names):
    """Names that every reader of netCDF takes, for those that not every one does; different for different names."""
    spelt: dict[str, str] = {}
    for name in names:
        if name.isascii() and name.isprintable() and "/" not in name and not name.endswith(" "):
            continue
        short = file_name(name)
        while short in names or short in spelt.values():
            short += "_"
        spelt[name] = short
    return spelt


def load(path) -> xr.Dataset:
    """Reads a Dataset that `save` wrote.

    Raises:
      InputError: there is no such file, or it is not netCDF.
    """
    try:
        with xr.open_dataset(expanded(path), engine="scipy") as file:
            data = file.load()
        names = json.loads(data.attrs.pop(NAMES, "{}"))
        return data.rename(names)
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the sweep.nc of a finished sweep") from None
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a readable netCDF file ({error}); give the sweep.nc of a finished sweep"
        ) from None


def _finite(value):
    return float(value) if np.isfinite(value) else None


def versions() -> dict[str, str]:
    """Returns the versions of what results depend on."""
    packages = ("lagjax", "jax", "jaxlib", "numpy", "scipy", "xarray")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def provenance(*, seed: int, selection: str, device: str) -> dict[str, str]:
    """Returns the attributes that say what made a Dataset: seed, selection, versions, device."""
    return {"seed": str(seed), "selection": selection, "versions": json.dumps(versions()), "device": device}


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
