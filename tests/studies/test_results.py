"""Results: named dimensions, missing cells, rows of plain values, files that are whole or absent."""

import dataclasses
import json
import os

import numpy as np
import pytest
import xarray as xr

from lagjax.errors import InputError
from lagjax.gallery import priority, specialist
from lagjax.policies import build_policy
from lagjax.runs.files import write_whole
from lagjax.stats import estimate, percent_of_bound
from lagjax.studies import dataset
from lagjax.studies.cell import Cell, assemble
from lagjax.studies.dataset import load, save
from lagjax.studies.show_sweep import ROW_KEYS, rows

RAN = [("specialist", 0.5), ("specialist", 0.8), ("priority", 0.3), ("priority", 0.8)]
POLICIES = ["whittle", "lag", "greedy"]


def test_dimensions_keep_the_order_given(small_sweep):
    assert small_sweep.instance.values.tolist() == ["specialist", "priority"]
    assert small_sweep.policy.values.tolist() == small_sweep.than.values.tolist() == POLICIES
    assert small_sweep.offered_load.values.tolist() == [0.3, 0.5, 0.8]
    assert small_sweep.reward.dims == ("instance", "offered_load", "policy", "replica")
    assert small_sweep.blocked.dims == ("instance", "offered_load", "replica")
    assert small_sweep.assigned_priority.dims == ("offered_load", "policy", "task_priority", "server_priority")
    assert small_sweep.server_priority.values.tolist() == list(priority().servers)
    assert small_sweep.task_specialist.values.tolist() == list(specialist().tasks)


def test_cells_that_did_not_run_are_nan_and_no_others(small_sweep):
    for name in ("specialist", "priority"):
        for rho in (0.3, 0.5, 0.8):
            cell = small_sweep.sel(instance=name, offered_load=rho).drop_dims(
                [d for d in small_sweep.dims if d.endswith(("_specialist", "_priority"))]
            )
            for key, variable in cell.data_vars.items():
                assert variable.isnull().all() if (name, rho) not in RAN else variable.notnull().all(), key
    assert small_sweep.assigned_priority.sel(offered_load=0.5).isnull().all()
    assert small_sweep.assigned_priority.sel(offered_load=[0.3, 0.8]).notnull().all()


def test_rows_have_the_agreed_keys_and_plain_values(small_sweep):
    table = rows(small_sweep)
    assert [(r["instance"], r["load"], r["policy"]) for r in table] == [
        (name, rho, policy) for name, rho in RAN for policy in POLICIES
    ]
    for row in table:
        assert tuple(row) == ROW_KEYS
        cell = small_sweep.sel(instance=row["instance"], offered_load=row["load"], policy=row["policy"])
        for key in ROW_KEYS[3:]:
            expected = 48 if key == "replicas" else float(cell[key])
            assert row[key] == expected, key
            kind = {"steps": int, "replicas": int, "stationary": bool}.get(key, float)
            assert type(row[key]) is kind, key
    assert json.loads(json.dumps(table, allow_nan=False)) == table


def test_attributes_say_where_the_numbers_come_from(small_sweep):
    attributes = small_sweep.attrs
    assert attributes["seed"] == "1"
    assert attributes["selection"] == "canonical"
    assert {"python", "lagjax", "jax", "jaxlib", "numpy"} <= set(json.loads(attributes["versions"]))
    configuration = json.loads(attributes["configuration"])
    assert [(c["instance"], c["load"]) for c in configuration] == RAN
    np.testing.assert_allclose(configuration[3]["arrival_rate"], priority(0.8).arrival_rate)
    assert configuration[0]["servers"] == 7
    assert list(configuration[0]["policies"]) == POLICIES


def cell(instance, policies, replicas=5, seed=0, blocked=0.1):
    rng = np.random.default_rng(seed)
    shape = instance.scores.shape
    return Cell(
        instance=instance, policies=tuple(build_policy(p, instance) for p in policies),
        reward=rng.uniform(1, 2, (len(policies), replicas)), blocked=rng.uniform(0, 2 * blocked, replicas),
        assigned=rng.uniform(0, 1, (len(policies), *shape)), occ_ub=3.0, occ_ub_0=3.5, kiid_ub=4.0,
        optimum=2.0, optimum_occ_ub=2.5, occ_slope=0.5, steps=100, warmup=10,
        drift=rng.normal(size=len(policies)), drift_ci95=rng.uniform(size=len(policies)),
        stationary=np.where(np.arange(len(policies)) == 1, 0.0, np.nan),
        selection_matters=np.arange(len(policies)) % 2 == 1, device="cpu",
    )  # fmt: skip


def test_every_number_of_a_cell_lands_in_its_place():
    given = cell(priority(0.5), ["greedy", "random"])
    data = assemble([given], seed=2**63, selection="vertex").sel(instance="priority", offered_load=0.5)
    percent = percent_of_bound(given.reward, given.blocked, 3.0, 0.5)
    for key, expected in {
        "reward_per_step": estimate(given.reward).mean, "reward_ci95": estimate(given.reward).ci95,
        "percent_of_occ_ub": estimate(percent).mean, "percent_ci95": estimate(percent).ci95,
        "blocking": given.blocked.mean(), "blocking_ci95": estimate(given.blocked).ci95,
        "occ_ub": 3.0, "occ_ub_0": 3.5, "kiid_ub": 4.0, "optimal_reward": 2.0,
        "optimal_percent_of_occ_ub": 80.0, "percent_of_optimum": 50 * given.reward.mean(axis=1),
        "percent_of_optimum_ci95": 50 * estimate(given.reward).ci95, "steps": 100, "warmup": 10,
        "drift": given.drift, "drift_ci95": given.drift_ci95, "stationary": [np.nan, 0],
        "selection_matters": [0, 1], "reward": given.reward, "blocked": given.blocked,
        "assigned_priority": given.assigned,
    }.items():  # fmt: skip
        np.testing.assert_allclose(data[key].values, expected, err_msg=key)
    assert [row["stationary"] for row in rows(assemble([given], seed=0, selection="vertex"))] == [None, False]
    paired = estimate(percent[0] - percent[1])
    pair = data.sel(policy="greedy", than="random")
    np.testing.assert_allclose([pair.difference, pair.difference_ci95], paired)
    assert data.attrs["seed"] == str(2**63)


def test_policies_of_one_instance_only():
    cells = [cell(priority(0.5), ["greedy"]), cell(specialist(0.5), ["random", "greedy"], seed=1)]
    data = assemble(cells, seed=0, selection="canonical")
    assert [(r["instance"], r["policy"]) for r in rows(data)] == [
        ("priority", "greedy"), ("specialist", "greedy"), ("specialist", "random"),
    ]  # fmt: skip
    assert data.reward.sel(instance="priority", policy="random").isnull().all()


def test_one_replica_gives_no_interval_in_rows():
    table = rows(assemble([cell(priority(0.5), ["greedy"], replicas=1)], seed=0, selection="canonical"))
    assert table[0]["reward_ci95"] is table[0]["percent_ci95"] is None
    assert table[0]["reward_per_step"] > 0


# ---- files ----


def test_saved_and_loaded_is_identical(small_sweep, tmp_path):
    path = tmp_path / "new folder" / "sweep.nc"
    save(small_sweep, path)
    again = load(path)
    xr.testing.assert_identical(again, small_sweep)
    assert rows(again) == rows(small_sweep)
    assert os.listdir(path.parent) == ["sweep.nc"]
    assert path.stat().st_mode & 0o777 == 0o644
    save(again, path)  # the file is closed and may be replaced
    xr.testing.assert_identical(load(path), small_sweep)


@pytest.mark.parametrize("name", ["a/b", "été", "评分", "журнал", "a b (c)", "space ", "1", "load", "", "𝒳" * 100])
def test_names_of_any_kind_survive(name, tmp_path):
    instance = dataclasses.replace(priority(0.5), name=name, tasks=("é/1", "论文"), servers=tuple("abcdefgh"))
    data = assemble([cell(instance, ["greedy"])], seed=0, selection="canonical")
    save(data, tmp_path / "x.nc")
    xr.testing.assert_identical(load(tmp_path / "x.nc"), data)
    assert rows(data)[0]["instance"] == name
    inside = names_inside(tmp_path / "x.nc")
    for field in inside:
        field.decode("ascii")
        assert b"/" not in field and field == field.strip() and len(field) <= 256
    if f"assigned_{name}".encode() in inside:
        assert {f"{part}_{name}".encode() for part in ("task", "server")} <= set(inside)


def names_inside(path):
    """Names of dimensions, variables and attributes as the bytes of the file have them, by the netCDF classic format."""
    data = path.read_bytes()
    assert data[:4] in (b"CDF\x01", b"CDF\x02")
    at, found, offset_bytes = 8, [], {1: 4, 2: 8}[data[3]]

    def number():
        nonlocal at
        at += 4
        return int.from_bytes(data[at - 4 : at])

    def text():
        nonlocal at
        size = number()
        value = data[at : at + size]
        at += -(-size // 4) * 4
        return value

    def attributes():
        nonlocal at
        number()
        for _ in range(number()):
            found.append(text())
            size = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8}[kind := number()]
            size *= number()
            if kind == 2:
                data[at : at + size].decode("utf-8")
            at += -(-size // 4) * 4

    number()
    for _ in range(number()):
        found.append(text())
        number()
    attributes()
    number()
    for _ in range(number()):
        found.append(text())
        for _ in range(number()):
            number()
        attributes()
        at += 8 + offset_bytes
    return found


def test_names_that_are_spelt_alike_stay_apart(tmp_path, monkeypatch):
    monkeypatch.setattr(dataset, "file_name", lambda name: "".join(c if c.isascii() else "_" for c in name))
    cells = [
        cell(dataclasses.replace(priority(0.5), name=name), ["greedy"], seed=i)
        for i, name in enumerate(["é", "è", "_"])
    ]
    data = assemble(cells, seed=0, selection="canonical")
    save(data, tmp_path / "x.nc")
    xr.testing.assert_identical(load(tmp_path / "x.nc"), data)
    assert {b"assigned__", b"assigned___", b"assigned____"} <= set(names_inside(tmp_path / "x.nc"))


def test_files_without_such_names_have_the_bytes_that_they_always_had(small_sweep, tmp_path):
    save(small_sweep, tmp_path / "x.nc")
    small_sweep.to_netcdf(tmp_path / "plain.nc", engine="scipy")
    assert (tmp_path / "x.nc").read_bytes() == (tmp_path / "plain.nc").read_bytes()


def test_longest_names_of_files_can_be_written(tmp_path):
    """File systems allow 255 bytes; the unfinished file has a longer name, but not that long."""
    path = tmp_path / ("评" * 83 + ".png")
    write_whole(path, lambda temporary: open(temporary, "w").close())
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("before", [None, "old"])
@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), RuntimeError("half way"), KeyboardInterrupt()]
)
def test_a_failing_write_leaves_nothing_of_itself(before, error, tmp_path):
    path = tmp_path / "out.txt"
    if before is not None:
        path.write_text(before)

    def write(temporary):
        assert os.path.dirname(temporary) == str(tmp_path)  # the same disk, so that the rename is one step
        with open(temporary, "w") as out:
            out.write("half")
        raise error

    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected) as stop:
        write_whole(path, write)
    if isinstance(error, OSError):
        assert str(stop.value) == f"{path}: cannot be written (No space left on device); choose a writable place"
    assert os.listdir(tmp_path) == ([] if before is None else ["out.txt"])
    if before is not None:
        assert path.read_text() == before


def test_no_reader_sees_half_a_file(tmp_path):
    path = tmp_path / "out.txt"
    path.write_text("old")

    def write(temporary):
        with open(temporary, "w") as out:
            out.write("new")
        assert path.read_text() == "old"

    write_whole(path, write)
    assert path.read_text() == "new"


def test_places_that_cannot_be_written(small_sweep, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"file/sweep\.nc: cannot be written"):
        save(small_sweep, tmp_path / "file" / "sweep.nc")
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="folder: cannot be written"):
        save(small_sweep, tmp_path / "folder")
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        load(tmp_path / "none.nc")
    for content in (b"", b"text, not netCDF", b"CDF\x01 broken"):
        (tmp_path / "bad.nc").write_bytes(content)
        with pytest.raises(InputError, match="not a readable netCDF file"):
            load(tmp_path / "bad.nc")
    with pytest.raises(InputError):
        load(tmp_path)


def test_a_cut_file_is_refused(small_sweep, tmp_path):
    path = tmp_path / "sweep.nc"
    save(small_sweep, path)
    whole = path.read_bytes()
    for part in (len(whole) // 4, len(whole) // 2, len(whole) - 64):
        path.write_bytes(whole[:part])
        with pytest.raises(InputError, match="not a readable netCDF file"):
            load(path)
