"""The Dataset of a study: built from the records of its jobs, described, saved, loaded, and read out as rows."""

from __future__ import annotations

import itertools
import json
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import xarray as xr

from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.runs.files import write_whole
from lagjax.runs.folder import file_name
from lagjax.runs.record import Record
from lagjax.stats import told
from lagjax.studies.words import WHOLE, words_of

NAMES = "names"  # attribute of a file: names of variables and dimensions in full, by their ASCII spelling there
FORMER = {"load": "offered_load", "size": "system_size"}  # names in files of version 0.1.0


def record_of(variables: Mapping[str, tuple], coordinates: Mapping[str, Sequence], **about) -> Record:
    """A part of a Dataset as a job gives it back.

    Args:
      variables: dimensions and values by name.
      coordinates: names or numbers along dimensions.
      about: plain values that the study wants to know beside.
    """
    arrays = {name: np.asarray(values) for name, (_, values) in variables.items()}
    dims = {name: [at] if isinstance(at, str) else list(at) for name, (at, _) in variables.items()}
    return Record({"dims": dims, "coordinates": dict(coordinates), "about": about}, arrays)


def part_of(record: Record) -> xr.Dataset:
    """The part of a Dataset that a job gave back."""
    variables = {name: (dims, np.require(record.arrays[name], requirements="W"))
                 for name, dims in record.head["dims"].items()}  # fmt: skip
    return xr.Dataset(variables, record.head["coordinates"])


def merged(records: Sequence[Record]) -> xr.Dataset:
    """All parts side by side; what no part has is NaN."""
    return xr.merge(map(part_of, records), join="outer", compat="no_conflicts", combine_attrs="drop")


def worded(data: xr.Dataset, study: str = "") -> xr.Dataset:
    """Returns the Dataset with long_name, units and description at every variable and coordinate."""
    for name in data.variables:
        data[name].attrs = words_of(str(name), study)._asdict()
    return data


def versions() -> dict[str, str]:
    """Returns the versions of what results depend on."""
    packages = ("lagjax", "jax", "jaxlib", "numpy", "scipy", "xarray")
    return {"python": platform.python_version(), **{name: version(name) for name in packages}}


def provenance(*, seed: int, device: str, selection: str = "none") -> dict[str, str]:
    """Returns the attributes that say what made a Dataset: seed, selection, versions, device."""
    return {"seed": str(seed), "selection": selection, "versions": json.dumps(versions()), "device": device}


def rows_of(
    data: xr.Dataset, by: Sequence[str], keys: Sequence[str], given: Callable[[xr.Dataset], dict] = lambda cell: {}
) -> Iterator[dict]:
    """Yields one dict for every cell, with plain Python values; None where a number is not known.

    Args:
      data: of a study.
      by: dimensions, the last one varying fastest.
      keys: of the dicts, in order.
      given: from a cell to the values that are no variable of that name.
    """
    for place in itertools.product(*(range(data.sizes[dim]) for dim in by)):
        cell = data.isel(dict(zip(by, place, strict=True)))
        known = given(cell)
        yield {key: plain(key, known[key] if key in known else cell[key]) for key in keys}


def plain(key: str, value: Any):
    """A value as rows have it: a name, a whole number, a float, whether a figure is stationary, or None where not known."""
    value = value.item() if hasattr(value, "item") else value
    if value is None or isinstance(value, str):
        return value
    if key == "stationary":
        return told(value)
    if not np.isfinite(value):
        return None
    return int(value) if key in WHOLE else float(value)


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
    """Reads a Dataset that `save` wrote, by this version or an earlier one.

    Raises:
      InputError: there is no such file, or it is not netCDF.
    """
    try:
        with xr.open_dataset(expanded(path), engine="scipy") as file:
            data = file.load()
        names = json.loads(data.attrs.pop(NAMES, "{}"))
        return data.rename(names | {old: new for old, new in FORMER.items() if old in data.dims or old in data.coords})
    except FileNotFoundError:
        raise InputError(f"{path}: no such file; give the Dataset of a finished study, such as sweep.nc") from None
    except (OSError, TypeError, ValueError) as error:
        raise InputError(
            f"{path}: not a readable netCDF file ({error}); give the Dataset of a finished study, such as sweep.nc"
        ) from None
