"""Every Dataset says what its variables are, and none of their names hides a method of xarray; reports have them all."""

import pytest
import xarray as xr

from lagjax.compatibility import complete, jsq
from lagjax.gallery import priority
from lagjax.loss_routing import make_system as make_queues
from lagjax.partial_information import make_system as make_servers
from lagjax.runs.folder import read_manifest
from lagjax.studies.compatibility import compat
from lagjax.studies.convergence import converge, sizes_of
from lagjax.studies.dataset import load, save
from lagjax.studies.dispatching import dispatch
from lagjax.studies.exact_values import exact
from lagjax.studies.load_sweep import sweep
from lagjax.studies.report import report
from lagjax.studies.routing import route
from lagjax.studies.show_sweep import rows as sweep_rows
from lagjax.studies.study import NAMES, study_in, study_of

QUEUES = make_queues([1, 2], [3, 4], [1.0, 0.8], 2.0)
STUDIES = {
    "sweep": lambda **how: sweep([priority()], loads=[0.4], policies=["lag", "random"], steps=300, replicas=4, **how),
    "converge": lambda **how: converge([priority(0.5)], sizes=sizes_of([1, 4]), steps=20, replicas=4, **how),
    "route": lambda **how: route(
        [QUEUES, QUEUES.with_arrival_rate(3.0)], policies=["rb", "sq"], arrivals=200, replicas=4, **how
    ),
    "compat": lambda **how: compat(
        [complete(4, 4), complete(6, 6)], jsq(2), [0.5], time=4, warmup=1, replicas=128, horizon=1, **how
    ),
    "exact": lambda **how: exact(priority(0.4), policies=["lag", "random"], **how),
    "partial": lambda **how: dispatch(
        make_servers([0.1, 0.3], 2), policies=["round-robin", "jsq"], horizon=40, replicas=4, **how
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Every study with a folder: its Dataset, and the folder."""
    found = {}
    for name, run in STUDIES.items():
        out = tmp_path_factory.mktemp(name)
        found[name] = run(out=out), out
    return found


@pytest.mark.parametrize("study", NAMES)
def test_variables_are_described_and_hide_nothing(study, folders):
    data, _ = folders[study]
    for name in data.variables:
        said = data[name].attrs
        assert set(said) == {"long_name", "units", "description"} and all(said.values()), name
        assert not hasattr(xr.Dataset, str(name)) and not hasattr(xr.DataArray, str(name)), name
    assert {"title", "seed", "selection", "versions", "device", "configuration"} <= set(data.attrs)


@pytest.mark.parametrize("study", NAMES)
def test_a_folder_holds_what_the_command_leaves(study, folders):
    """The Dataset, the table, pictures and the run; the study is found in it, and the page shows every number of the table."""
    data, out = folders[study]
    shown = study_of(study)
    assert study_in(out) is shown
    pictures = {f"{name}.png" for name in shown.pictures(data)}
    assert {path.name for path in out.iterdir()} == {shown.file, "table.txt", "run", *pictures}
    again = load(out / shown.file)
    assert again.identical(data) and shown.rows(again) == shown.rows(data)
    assert (out / "table.txt").read_text() == shown.table(data) + "\n"
    assert read_manifest(out)["configuration"]["command"] == study
    page = report(out)
    for line in shown.table(data).splitlines():
        for number in (word for word in line.split() if word.replace(".", "").isdigit() and len(word) > 4):
            assert number in page, number
    assert page.count("<svg") >= len(pictures) and "How to reproduce" in page


@pytest.mark.parametrize("study", NAMES)
def test_the_same_call_finds_its_cells(study, folders):
    data, out = folders[study]
    cells = {path: path.stat().st_mtime_ns for path in (out / "run" / "cells").iterdir()}
    assert STUDIES[study](out=out).identical(data) and cells
    assert {path: path.stat().st_mtime_ns for path in (out / "run" / "cells").iterdir()} == cells


def test_files_of_earlier_versions_are_read(folders, tmp_path):
    """There the coordinate was called load."""
    data, _ = folders["sweep"]
    save(data.rename(offered_load="load"), tmp_path / "old.nc")
    assert load(tmp_path / "old.nc").identical(data)
    assert sweep_rows(load(tmp_path / "old.nc")) == sweep_rows(data)
