"""What a folder of results says, as sections of a page: a load sweep or a convergence study."""

from __future__ import annotations

import functools
import json
import shlex
from pathlib import Path

import xarray as xr

from lagjax import tables
from lagjax.errors import InputError
from lagjax.gallery import GALLERY, gallery
from lagjax.given import expanded
from lagjax.plots.convergence import draw_lost, draw_share
from lagjax.plots.load_sweep import draw_percents, draw_rewards
from lagjax.report.page import Picture, Section, Table, page
from lagjax.results import load
from lagjax.runs.folder import INSIDE, read_manifest
from lagjax.runs.record import Damaged, digest

FILES = {"sweep.nc": "sweep", "converge.nc": "converge"}


def report(folder: str | Path) -> str:
    """Returns the page about a folder that `lagjax sweep` or `lagjax converge` has finished.

    Raises:
      InputError: there is no such folder, it holds no results, or the run is not finished.
    """
    folder = expanded(folder)
    found = [name for name in FILES if (folder / name).is_file()]
    if not found:
        if (folder / INSIDE).is_dir():
            cells = len(list((folder / INSIDE / "cells").glob("*.cell")))
            raise InputError(f"{folder}: the run is not finished ({cells} cells are); run its command again first")
        raise InputError(f"{folder}: no results here; name the folder of a finished lagjax sweep or converge")
    data = load(folder / found[0])
    try:
        manifest = read_manifest(folder)
    except Damaged as error:
        raise InputError(f"{folder / INSIDE}: the manifest is damaged ({error}); run the command again") from None
    sections = _sweep(data, manifest) if FILES[found[0]] == "sweep" else _convergence(data, manifest)
    title = data.attrs["title"]
    names = ", ".join(str(name) for name in data.instance.values)
    policies = ", ".join(str(name) for name in data.policy.values)
    lead = [
        f"Systems: {names}. Policies: {policies}. {data.sizes['replica']:,} replicas, seed {data.attrs['seed']}, "
        f"selection {data.attrs['selection']}."
    ]
    return page(title, lead, [*sections, *_provenance(data, manifest, found[0])])


def _sweep(data, manifest):
    for instance in map(str, data.instance.values):
        header, lines = tables.percent_lines(data, instance)
        shown = [Table("Reward as % of OCC-UB, ± half-width of the 95% interval", header, lines)]
        published = tables.published_lines(data, instance) if _is_gallery(instance, manifest) else None
        if published is not None:
            shown.append(Table("The paper's Table 3, and (ours - published)", *published))
        yield Section(
            instance,
            says=[_verdict(header, lines)],
            pictures=[
                Picture(
                    functools.partial(draw_percents, data=data, instance=instance),
                    f"{instance}: reward as percent of OCC-UB against load",
                ),
                Picture(
                    functools.partial(draw_rewards, data=data, instance=instance),
                    f"{instance}: reward per step and its upper bounds against load",
                ),
            ],
            tables=shown,
            note=tables.LEGEND + ("\n" + tables.PUBLISHED_LEGEND if published is not None else ""),
        )


def _verdict(header, lines):
    """Who is best where, in a sentence."""
    wins: dict[str, list[str]] = {}
    for line in lines:
        for policy in line[-1].split(" +")[0].split(" (")[0].split(" = "):
            wins.setdefault(policy, []).append(line[0])
    said = [f"{policy} at {_loads(loads, len(lines))}" for policy, loads in wins.items()]
    return "Best, alone or level within the interval: " + "; ".join(said) + "."


def _loads(loads, number):
    if len(loads) == number:
        return "every load" if number > 1 else f"load {loads[0]}"
    return f"load{'s' if len(loads) > 1 else ''} {', '.join(loads)}"


def _convergence(data, manifest):
    yield Section(
        "Reward and blocking by size",
        pictures=[
            Picture(functools.partial(draw_share, data=data), "Reward per copy as percent of OCC-UB against size"),
            Picture(functools.partial(draw_lost, data=data), "Percent of tasks lost against size"),
        ],
    )
    for instance in map(str, data.instance.values):
        header, lines = tables.convergence_lines(data, instance, _is_gallery(instance, manifest))
        yield Section(
            instance,
            tables=[Table("Reward per copy by size", header, lines)],
            note=tables.CONVERGENCE_LEGEND,
        )


def _is_gallery(name, manifest):
    """Whether the paper's numbers are about this very system, and not about a file that shares its name."""
    if manifest is None or name not in GALLERY:
        return False
    known = manifest["configuration"].get("instances", {}).get(name, {})
    return known.get("scores") == digest(gallery(name).scores)[:16]


def _provenance(data: xr.Dataset, manifest, file):
    versions = json.loads(data.attrs["versions"])
    if manifest is not None:
        facts = [(key, _plain(value)) for key, value in manifest["configuration"].items() if key != "versions"]
        command = shlex.join(manifest["command"]) if manifest["command"] else "# from Python: lagjax.sweep(...)"
        yield Section("Configuration", facts=facts)
        pins = " ".join(f"{name}=={version}" for name, version in versions.items() if name != "python")
        yield Section(
            "How to reproduce",
            says=[
                f"With Python {versions['python']}. The same command in the same folder goes on where it was interrupted; the "
                f"result has the same bytes however often that happened. Every replica's reward is in {file}.",
            ],
            code=f"pip install {pins}\n{command}",
        )
    yield Section("Versions", facts=[*versions.items(), ("device", data.attrs["device"])])


def _plain(value):
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return "default" if value is None else str(value)
