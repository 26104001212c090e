"""What the commands print and write."""

import json
import os
import threading
from pathlib import Path

import numpy as np
import pytest

from lagjax import gallery, solve_occ
from lagjax.cli.inputs import default_loads, loads_of
from lagjax.runs.files import write_whole
from lagjax.studies.dataset import load
from lagjax.studies.show_sweep import ROW_KEYS

SMALL = ("--steps", "2000", "--replicas", "16")


def test_loads_are_lists_and_ranges_with_both_ends():
    assert loads_of("0.1,0.25") == (0.1, 0.25)
    assert loads_of("0.1:0.9:0.1") == pytest.approx([0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9])
    assert loads_of("0.2,0.5:0.7:0.1") == pytest.approx([0.2, 0.5, 0.6, 0.7])


def test_default_loads_are_the_papers():
    assert default_loads(gallery("priority"))[-1] == 0.8
    assert default_loads(gallery("unfriendly"))[-1] == 0.9


def test_sweep_writes_table_plot_and_dataset(lagjax, tmp_path):
    code, out, err = lagjax("sweep", "specialist", "--loads", "0.2,0.7", *SMALL, "--out", "results")
    assert code == 0
    folder = tmp_path / "results"
    assert {p.name for p in folder.iterdir()} == {"specialist.png", "table.txt", "sweep.nc", "run"}
    assert (folder / "specialist.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "table.txt").read_text() == out
    data = load(folder / "sweep.nc")
    assert data.sizes["offered_load"] == 2 and data.sizes["replica"] == 16
    assert "90.6 (" in out  # the published LAG cell at load 0.7
    assert "results" in err and "arrivals" not in err  # no progress bar in a pipe


def test_sweep_without_argument_is_the_gallery_in_the_default_folder(lagjax, tmp_path):
    code, out, _ = lagjax("sweep", "--loads", "0.5", "--steps", "500", "--replicas", "4")
    assert code == 0
    written = {p.name for p in (tmp_path / "lagjax-results").iterdir()}
    names = ("specialist", "priority", "unfriendly", "low-rank", "journal")
    assert written == {"table.txt", "sweep.nc", "run", *(f"{name}.png" for name in names)}
    assert all(f"\n{name}\n" in "\n" + out for name in names)


def test_json_rows(lagjax, tmp_path):
    code, out, _ = lagjax(
        "sweep", "priority", "--loads", "0.3,0.7", "--policies", "lag,random", *SMALL, "--seed", "5", "--json", "-"
    )
    assert code == 0
    page = json.loads(out)
    assert page["seed"] == 5
    rows = page["rows"]
    assert [(r["instance"], r["load"], r["policy"]) for r in rows] == [
        ("priority", 0.3, "lag"), ("priority", 0.3, "random"), ("priority", 0.7, "lag"), ("priority", 0.7, "random"),
    ]  # fmt: skip
    for row in rows:
        assert tuple(row) == ROW_KEYS
        assert row["steps"] == 2000 and row["replicas"] == 16
        assert row["percent_of_occ_ub"] == pytest.approx(100 * row["reward_per_step"] / row["occ_ub"])
        assert row["occ_ub_0"] == pytest.approx(solve_occ(gallery("priority", row["load"])).objective)
    assert not (tmp_path / "lagjax-results").exists()
    lagjax(
        "sweep",
        "priority",
        "--loads",
        "0.3,0.7",
        "--policies",
        "lag,random",
        *SMALL,
        "--seed",
        "5",
        "--json",
        "rows.json",
    )
    again = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert again == rows


def test_one_replica_has_no_interval(lagjax):
    code, out, _ = lagjax("sweep", "priority", "--loads", "0.5", "--steps", "500", "--replicas", "1", "--json", "-")
    assert code == 0
    assert all(row["reward_ci95"] is None and row["percent_ci95"] is None for row in json.loads(out)["rows"])


def test_own_files(lagjax, tmp_path):
    rng = np.random.default_rng(0)
    lines = [f"p{p},r{r},{rng.random():.3f}" for p in range(12) for r in range(9)]
    (tmp_path / "priority.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "days.csv").write_text("days\n" + "\n".join(str(x) for x in rng.integers(2, 30, 40)) + "\n")
    args = ("sweep", "--scores", "priority.csv", "--durations", "days.csv", "--per-task", "2", "--sample-papers", "5")
    code, out, err = lagjax(*args, "--sample-reviewers", "7", "--loads", "0.4", *SMALL)
    assert code == 0
    assert "5 of 12 papers" in err and "7 of 9 reviewers" in err
    assert "published" not in out  # a file that shares a gallery name is not the paper's instance
    data = load(tmp_path / "lagjax-results" / "sweep.nc")
    assert data.sizes["task_priority"] == 5 and data.sizes["server_priority"] == 7


def test_bare_command_and_version(lagjax):
    assert lagjax().code == 0
    assert lagjax("--version").out.startswith("lagjax 0.")


def test_a_pipe_or_device_is_written_to_and_never_replaced(tmp_path):
    """Named pipe: what is written arrives, and it stays a pipe."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, lambda path: Path(path).write_text("rows"))
    reader.join(timeout=30)
    assert got == ["rows"]
    assert pipe.is_fifo()


def test_names_with_dollars_are_plain_text(lagjax, tmp_path):
    (tmp_path / "$\\bad{$.csv").write_text("a,x,1\na,y,0.5\n")
    code, _, err = lagjax("sweep", "--scores", "$\\bad{$.csv", "--service", "geometric:5", "--loads", "0.3", *SMALL)
    assert code == 0, err
    assert (tmp_path / "lagjax-results" / "$\\bad{$.png").exists()


@pytest.mark.parametrize("service", [("--durations", "d.tsv", "--column", "days"), ("--service", "sample:d.tsv:days")])
def test_files_as_spreadsheets_write_them(lagjax, tmp_path, service):
    """Semicolons, decimal commas, a score below 0, a gap and a time of 0: the fault names the options that then work."""
    (tmp_path / "s.csv").write_text("paper;reviewer;score\np1;r1;0,75\np1;r2;-0,25\np2;r1;0,25\n")
    (tmp_path / "d.tsv").write_text("id\tdays\na\t12,5\nb\t0\n")
    command = ("solve", "--scores", "s.csv", *service, "--load", "0.3", "--json", "-")
    assert "(`--normalise --missing 0`)" in lagjax(*command).err
    assert "d.tsv, line 3: field 2 is '0'" in lagjax(*command, "--normalise", "--missing", "0").err
    code, out, err = lagjax(*command, "--normalise", "--missing", "0", "--shortest", "1")
    assert code == 0 and json.loads(out)["tasks"] == ["p1", "p2"]
    assert err.splitlines() == [
        "note: s.csv is read with semicolons between fields and decimal commas",
        "note: scores rescaled from [-0.25, 0.75] to [0, 1]",
        "note: 1 missing scores (no line) set to 0",
        "note: d.tsv is read with tabs between fields and decimal commas",
        "note: d.tsv: 1 of 2 times raised to 1, the shortest in steps",
    ]
