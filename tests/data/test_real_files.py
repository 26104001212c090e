"""Real files, where a folder of them lies beside the repository.

They belong to others and are not shipped, so elsewhere these seven tests, and no others, are skipped. Each layout and rule that
they meet also has a made-up file in the tests beside this one, which run everywhere.
"""

import time
from pathlib import Path

import numpy as np
import pytest

from lagjax.data import instance_from_files, normalise, read_durations, read_scores, subsample
from lagjax.errors import InputError

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "data"


def real(name):
    if not (FOLDER / name).is_file():
        pytest.skip(f"no {name} beside the repository")
    return FOLDER / name


def test_affinities_in_the_layout_of_conference_systems():
    path = real("goldstandard_tpms_scores.csv")
    start = time.process_time()
    table = read_scores(path)
    assert time.process_time() - start < 0.3
    assert table.scores.shape == (463, 58)
    assert (table.scores.min(), table.scores.max()) == (0.001049, 0.609694)
    assert table.papers[0] == "p000" and table.reviewers[-1] == "r57"
    for line in path.read_text().splitlines()[::997]:
        paper, reviewer, score = line.split(",")
        assert table.scores[table.papers.index(paper), table.reviewers.index(reviewer)] == float(score)


def test_review_times():
    days = read_durations(real("tmlr_review_days.csv"))
    assert days.shape == (148,) and days.max() == pytest.approx(190.7, abs=0.05)
    assert days.mean() == pytest.approx(42.9, abs=0.05) and np.median(days) == pytest.approx(34.8, abs=0.05)


def test_bids_as_plain_text():
    path = real("aamas2015.in")
    table = read_scores(path)
    assert table.scores.shape == (613, 201)
    np.testing.assert_array_equal(table.scores, np.loadtxt(path, skiprows=1))


@pytest.mark.parametrize(("number", "papers", "reviewers"), [(1, 54, 31), (2, 52, 24), (3, 176, 146)])
def test_bids_with_conflicts(number, papers, reviewers):
    path = real(f"preflib{number}.npz")
    with pytest.raises(InputError, match="conflicts"):
        read_scores(path)
    table = read_scores(path, conflicts="zero")
    with np.load(path) as archive:
        mask, bids = archive["mask_matrix"], archive["similarity_matrix"]
    assert table.scores.shape == (papers, reviewers)
    np.testing.assert_array_equal(table.scores, (bids * (1 - mask)).T)
    np.testing.assert_array_equal(read_scores(path, conflicts="ignore").scores, bids.T)
    assert table.notes == (f"{mask.sum()} conflicts scored 0: the last choice, not a ban",)


SQUARE = np.array([[0.8, 0.5], [0.1, 0.9]])


@pytest.mark.parametrize("name", ["semicolon_decimal_comma", "index_column", "wide"])
def test_one_matrix_in_three_layouts(name):
    table = read_scores(real(f"cases/{name}.csv"))
    np.testing.assert_array_equal(table.scores, SQUARE)
    assert table.papers == ("p1", "p2") and table.reviewers == ("r1", "r2") and table.notes


def test_ids_that_look_like_something_else():
    table = read_scores(real("cases/odd_ids.csv"))
    np.testing.assert_array_equal(table.scores, [[0.1, 0.2], [0.3, 0.4]])
    assert table.papers == ("001", "2024-01-02") and table.reviewers == ("NA", "nan") and not table.notes


def test_what_the_owner_must_say_first():
    with pytest.raises(InputError, match="--normalise"):
        read_scores(real("cases/negative.csv"))
    table = read_scores(real("cases/negative.csv"), normalise=True)
    np.testing.assert_allclose(table.scores, [[0.125, 1], [0.5, 0]], rtol=1e-15)
    with pytest.raises(InputError, match=r"line 4.*--shortest 1"):
        read_durations(real("cases/durations_with_zero.csv"))
    np.testing.assert_array_equal(read_durations(real("cases/durations_with_zero.csv"), shortest=1), [3, 4, 1, 12])
    with pytest.raises(InputError, match=r"line 1: .*'submission_id', 'member_id', 'affinity'"):
        read_scores(real("cases/platform_header.csv"))


def test_a_journal_from_real_files():
    unit = normalise(read_scores(real("goldstandard_tpms_scores.csv")))
    made = instance_from_files(
        subsample(unit, 10, 30, seed=1), real("tmlr_review_days.csv"), servers_per_task=3, load=0.7
    )
    assert (made.num_types, made.num_servers, made.max_duration) == (10, 30, 191)
    assert made.mean_duration[0] == pytest.approx(42.9, abs=0.1)
    assert made.scores.min() >= 0 and made.scores.max() <= 1
