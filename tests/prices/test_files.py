"""A solution on disk: the same policy bit for bit from csv and npz, ids of every kind, one line for every damaged file."""

import csv
import dataclasses
import json
import os
import shutil

import numpy as np
import pytest

from lagjax.errors import InputError
from lagjax.gallery import gallery
from lagjax.instance import make_instance
from lagjax.lp import SELECTIONS, solve_occ
from lagjax.policies import build_policy
from lagjax.prices import load_policy, read_solution, save_solution, stored

FILES = ("index.csv", "shares.csv", "tasks.csv", "servers.csv", "about.json", "solution.npz")
ODD = ("001", "NA", "a,b", 'say "hi"', "été ∂", "2024-01-02", " x ", "", "'", "#1", "-1", "task")


def odd_instance():
    """Ids that spreadsheets, csv readers and programs like to change, on both sides."""
    rng = np.random.default_rng(3)
    scores = rng.random((len(ODD), len(ODD)))
    service = [np.ones(d) / d for d in rng.integers(1, 9, len(ODD))]
    return make_instance(
        scores, service, load=0.4, servers_per_task=2, tasks=ODD, servers=ODD[::-1], name='odd, "é"'
    )  # fmt: skip


def same_policy(one, other):
    assert (one.name, one.rule, one.notes) == (other.name, other.rule, other.notes)
    for field in ("tier", "weight"):
        assert getattr(one, field).dtype == getattr(other, field).dtype
        np.testing.assert_array_equal(getattr(one, field), getattr(other, field))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    instance = odd_instance()
    save_solution(folder, instance, solve_occ(instance))
    return folder


@pytest.fixture
def copy(saved, tmp_path):
    """A folder to damage."""
    return shutil.copytree(saved, tmp_path / "copy")


def test_both_forms_read_back_to_the_bit(saved):
    instance = odd_instance()
    solution = solve_occ(instance)
    assert sorted(os.listdir(saved)) == sorted(FILES)
    for path in (saved, saved / "solution.npz"):
        page = read_solution(path)
        assert (page.tasks, page.servers, page.instance) == (ODD, ODD[::-1], instance.name)
        assert (page.load, page.servers_per_task, page.largest_score) == (instance.load, 2, instance.scores.max())
        np.testing.assert_array_equal(page.arrival_rate, instance.arrival_rate)
        np.testing.assert_array_equal(page.mean_duration, instance.mean_duration)
        for field in dataclasses.fields(solution):
            mine, theirs = getattr(page.solution, field.name), getattr(solution, field.name)
            assert type(mine) is type(theirs), field.name
            np.testing.assert_array_equal(mine, theirs, err_msg=field.name)
        same_policy(load_policy(path), build_policy("lag", instance, solution=solution))


@pytest.mark.parametrize("selection", SELECTIONS)
def test_policies_of_the_gallery_come_back(selection, tmp_path):
    for name in ("priority", "unfriendly", "journal"):
        instance = gallery(name, 0.5)
        save_solution(tmp_path, instance, solve_occ(instance, selection=selection))
        for path in (tmp_path, tmp_path / "solution.npz"):
            same_policy(load_policy(path), build_policy("lag", instance, selection))


def test_the_same_solution_makes_the_same_bytes(saved, tmp_path):
    save_solution(tmp_path, odd_instance(), solve_occ(odd_instance()))
    for name in FILES:
        assert (tmp_path / name).read_bytes() == (saved / name).read_bytes(), name


def test_csv_is_for_people_and_npz_for_programs(saved):
    instance = odd_instance()
    solution = solve_occ(instance)
    with (saved / "index.csv").open(encoding="utf-8", newline="") as text:
        header, *lines = csv.reader(text)
    assert header == ["task", *ODD[::-1]] and [line[0] for line in lines] == list(ODD)
    assert [[float(x) for x in line[1:]] for line in lines] == solution.index.tolist()
    with (saved / "servers.csv").open(encoding="utf-8", newline="") as text:
        assert next(csv.reader(text)) == ["server", "price", "free fraction"]
    with (saved / "tasks.csv").open(encoding="utf-8", newline="") as text:
        assert next(csv.reader(text)) == ["task", "price", "arrival rate", "mean duration"]
    with np.load(saved / "solution.npz", allow_pickle=False) as held:
        assert held["servers"].tolist() == list(ODD[::-1])
        np.testing.assert_array_equal(held["server_price"], solution.server_price)
        assert {"format", "lagjax", "checksum"} <= set(json.loads(str(held["about"])))


def test_a_new_task_is_ranked_by_the_prices():
    """Two servers, the second better and dearer: the longer the task, the more its price counts."""
    instance = gallery("priority", 0.7)
    page = stored(instance, solve_occ(instance))
    price = page.solution.server_price
    scores = np.where(np.arange(8) < 2, 5.0, 1.0)
    assert price[0] > 0.2 > 1e-3 > price[2]
    assert page.rank(scores, 1)[:2].tolist() == [0, 1]
    assert page.rank(scores, 20)[:6].tolist() == [2, 3, 4, 5, 6, 7]  # 5 - 20 * 0.24 < 1


def cut(name, keep):
    return lambda folder: (folder / name).write_bytes((folder / name).read_bytes()[:keep])


def text(name, change):
    def damage(folder):
        path = folder / name
        path.write_text(change(path.read_text(encoding="utf-8")), encoding="utf-8")

    return damage


def digit(page):
    """Another last digit of the last number."""
    return page[:-2] + ("1" if page[-2] != "1" else "2") + "\n"


def format_2(page):
    return json.dumps({**json.loads(page), "format": 2, "lagjax": "9.9"})


FAULTS = [
    ("no index", lambda f: (f / "index.csv").unlink(), "index.csv: no such file"),
    ("no about", lambda f: (f / "about.json").unlink(), "about.json: no such file"),
    ("empty table", text("index.csv", lambda page: ""), "index.csv holds no lines"),
    ("a line less", text("shares.csv", lambda page: "".join(page.splitlines(True)[:-1])), "shares.csv has other tasks"),
    ("a task less everywhere but in tables", text("tasks.csv", lambda page: "".join(page.splitlines(True)[:-1])), "tasks"),
    ("cut within a number", cut("index.csv", -4), "damaged or altered"),
    ("cut within a line", cut("index.csv", -40), "index.csv line 13 has"),
    ("another digit", text("servers.csv", digit), "damaged or altered"),
    ("no number", text("servers.csv", lambda page: page[:-3] + "x\n"), "servers.csv line 13 holds what is no number"),
    ("nan", text("servers.csv", lambda page: page.rsplit(",", 1)[0] + ",nan\n"), "no finite number"),
    ("other columns", text("tasks.csv", lambda page: page.replace("arrival rate", "rate")), "tasks.csv has the columns"),
    ("open quotes", text("index.csv", lambda page: page + '"a'), "index.csv line"),
    ("latin-1", lambda f: (f / "index.csv").write_bytes("é,1\n".encode("latin-1")), "index.csv line 1"),
    ("about is no json", text("about.json", lambda page: page[:-9]), "no solution that can be read"),
    ("about is a list", text("about.json", lambda page: "[]"), "no solution that can be read"),
    ("about of another file", text("about.json", lambda page: '{"name": "lagjax"}'), "format is missing"),
    ("a later format", text("about.json", format_2), "written by lagjax 9.9, in a later format"),
]  # fmt: skip


@pytest.mark.parametrize(("damage", "message"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_damaged_folders_are_refused_in_one_line(damage, message, copy):
    damage(copy)
    with pytest.raises(InputError, match=message) as error:
        load_policy(copy)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("at", ["cut", "flipped", "text", "array", "foreign", "empty", "absent"])
def test_damaged_npz_are_refused_in_one_line(at, copy):
    path = copy / "solution.npz"
    whole = path.read_bytes()
    if at == "cut":
        path.write_bytes(whole[: len(whole) // 2])
    elif at == "flipped":
        for place in range(200, len(whole), 499):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ 64]) + whole[place + 1 :])
            try:
                same_policy(load_policy(path), load_policy(copy))  # a byte that means nothing, such as a date
            except InputError as error:
                assert "\n" not in str(error)
    elif at == "text":
        path.write_text("index\n")
    elif at == "array":
        with path.open("wb") as out:
            np.save(out, np.eye(2))
    elif at == "foreign":
        np.savez(path, scores=np.eye(2))
    elif at == "empty":
        path.write_bytes(b"")
    else:
        path.unlink()
    if at != "flipped":
        with pytest.raises(InputError, match=r"solution\.npz: no (solution that can be read|such file)") as error:
            load_policy(path)
        assert "\n" not in str(error.value)


def test_files_of_two_solutions_do_not_mix(copy, tmp_path):
    """As after an interruption between two files."""
    instance = odd_instance().with_load(0.3)
    save_solution(tmp_path / "other", instance, solve_occ(instance))
    shutil.copy(tmp_path / "other" / "index.csv", copy / "index.csv")
    with pytest.raises(InputError, match="damaged or altered"):
        load_policy(copy)
    save_solution(copy, instance, solve_occ(instance))  # what is replaced is whole again
    same_policy(load_policy(copy), load_policy(tmp_path / "other"))


def test_bad_arguments(tmp_path):
    with pytest.raises(InputError, match=r"solution has an index of shape \(2, 8\)"):
        save_solution(tmp_path / "x", gallery("specialist", 0.5), solve_occ(gallery("priority", 0.5)))
    assert not (tmp_path / "x").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot be written"):
        save_solution(tmp_path / "file", gallery("priority", 0.5), solve_occ(gallery("priority", 0.5)))
