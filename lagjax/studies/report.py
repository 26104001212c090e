"""What a folder of results says, as one page: the sections of its study, its configuration, and how to reproduce it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from lagjax.errors import InputError
from lagjax.given import expanded
from lagjax.runs.folder import INSIDE, read_manifest
from lagjax.runs.record import Damaged
from lagjax.studies.dataset import load
from lagjax.studies.page import Section, page
from lagjax.studies.study import study_in


def report(folder: str | Path) -> str:
    """Returns the page about a folder that a study has finished.

    Raises:
      InputError: there is no such folder, it holds no results, or the run is not finished.
    """
    folder = expanded(folder)
    study = study_in(folder)
    if study is None:
        if (folder / INSIDE).is_dir():
            cells = len(list((folder / INSIDE / "cells").glob("*.cell")))
            raise InputError(f"{folder}: the run is not finished ({cells} cells are); run its command again first")
        raise InputError(f"{folder}: no results here; name the folder of a finished study, such as lagjax sweep leaves")
    data = load(folder / study.file)
    try:
        manifest = read_manifest(folder)
    except Damaged as error:
        raise InputError(f"{folder / INSIDE}: the manifest is damaged ({error}); run the command again") from None
    return page(
        data.attrs["title"], [study.lead(data)], [*study.sections(data), *_provenance(data.attrs, manifest, study)]
    )


def _provenance(attributes, manifest, study):
    versions = json.loads(attributes["versions"])
    if manifest is not None:
        facts = [(key, _plain(value)) for key, value in manifest["configuration"].items() if key != "versions"]
        command = shlex.join(manifest["command"]) if manifest["command"] else "# from Python"
        yield Section("Configuration", facts=facts)
        pins = " ".join(f"{name}=={version}" for name, version in versions.items() if name != "python")
        yield Section(
            "How to reproduce",
            says=[
                f"With Python {versions['python']}. The same command in the same folder goes on where it was interrupted; the "
                f"result has the same bytes however often that happened. What every replica gave is in {study.file}.",
            ],
            code=f"pip install {pins}\n{command}",
        )
    yield Section("Versions", facts=[*versions.items(), ("device", attributes["device"])])


def _plain(value):
    if isinstance(value, dict):
        return "; ".join(f"{key}: {_plain(inner)}" for key, inner in value.items())
    if isinstance(value, list):
        return ", ".join(map(_plain, value))
    return "default" if value is None else str(value)
