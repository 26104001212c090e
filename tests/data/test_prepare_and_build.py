"""Draws, rescaling and the instance that files make."""

from pathlib import Path

import numpy as np
import pytest

from lagjax.data import ScoreTable, instance_from_files, normalise, read_scores, subsample
from lagjax.errors import InputError


@pytest.fixture
def table():
    scores = np.arange(1, 61, dtype=float).reshape(10, 6)
    names = tuple(f"p{i}" for i in range(10)), tuple(f"r{i}" for i in range(6))
    return ScoreTable(scores, *names, source=Path("made.csv"), notes=("read",))


def test_a_draw_is_a_part_of_the_table_in_file_order(table):
    part = subsample(table, 4, 3, seed=5)
    rows = [table.papers.index(name) for name in part.papers]
    columns = [table.reviewers.index(name) for name in part.reviewers]
    assert rows == sorted(set(rows)) and columns == sorted(set(columns))
    np.testing.assert_array_equal(part.scores, table.scores[np.ix_(rows, columns)])
    assert part.notes == ("read", "4 of 10 papers drawn with seed 5", "3 of 6 reviewers drawn with seed 5")
    assert table.scores.shape == (10, 6)


def test_papers_and_reviewers_have_streams_of_their_own(table):
    square = ScoreTable(np.ones((6, 6)), table.papers[:6], table.reviewers, table.source)
    unlike = 0
    for seed in range(50):
        both = subsample(table, 4, 3, seed)
        assert both.papers == subsample(table, 4, None, seed).papers == subsample(table, 4, 1, seed).papers
        assert both.reviewers == subsample(table, None, 3, seed).reviewers == subsample(table, 9, 3, seed).reviewers
        part = subsample(square, 3, 3, seed)
        unlike += [p[1:] for p in part.papers] != [r[1:] for r in part.reviewers]
    assert unlike > 30  # a shared stream would make 0; independent ones agree with probability 1/20


def test_smaller_draws_are_nested_and_seeds_matter(table):
    assert set(subsample(table, 3, seed=1).papers) < set(subsample(table, 7, seed=1).papers)
    assert len({subsample(table, 5, seed=seed).papers for seed in range(20)}) > 10
    assert subsample(table, 5, seed=3).papers == subsample(table, np.int64(5), seed=np.int64(3)).papers


def test_every_paper_is_drawn_equally_often(table):
    """2000 draws of 3 out of 10: counts are binomial, sd 20.5; 5 sd errs below 1 in 1e5."""
    counts = np.zeros(10)
    for seed in range(2000):
        for name in subsample(table, 3, seed=seed).papers:
            counts[int(name[1:])] += 1
    assert counts.sum() == 6000 and np.abs(counts - 600).max() < 5 * 20.5


def test_whole_draws_keep_the_table(table):
    for whole in (subsample(table), subsample(table, 10, 6, seed=9)):
        np.testing.assert_array_equal(whole.scores, table.scores)
        assert whole.papers == table.papers and whole.reviewers == table.reviewers
    assert subsample(table).notes == table.notes


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ((11, None), "made.csv: cannot draw 11 papers, it has 10; ask for 10 or fewer"),
        ((None, 7), "made.csv: cannot draw 7 reviewers, it has 6"),
        ((0, None), "papers is 0; give a whole number, 1 or more"),
        ((None, -1), "reviewers is -1; give"),
        ((2.0, None), "papers is 2.0; give a whole number"),
        ((True, None), "papers is True; give"),
        ((2, 2, -1), "seed is -1; give a whole number, 0 or more"),
        ((2, 2, "x"), "seed is 'x'; give"),
    ],
)
def test_impossible_draws_are_refused(table, numbers, expected):
    with pytest.raises(InputError) as fault:
        subsample(table, *numbers)
    assert expected in str(fault.value)


def test_normalised_scores_reach_zero_and_one_and_keep_their_ratios(table):
    unit = normalise(table)
    assert unit.scores.min() == 0 and unit.scores.max() == 1
    np.testing.assert_allclose(unit.scores, (table.scores - 1) / 59)
    assert unit.notes == ("read", "scores rescaled from [1, 60] to [0, 1]")
    np.testing.assert_array_equal(normalise(unit).scores, unit.scores)
    part = subsample(unit, 2, 2)
    assert part.scores.min() > 0 or part.scores.max() < 1  # the sample is not rescaled again


def test_equal_scores_cannot_be_normalised(table):
    flat = ScoreTable(np.full((2, 2), 0.5), ("a", "b"), ("c", "d"), Path("flat.csv"))
    with pytest.raises(InputError, match=r"flat\.csv: all scores are 0.5, so no scale"):
        normalise(flat)


@pytest.fixture
def folder(tmp_path):
    scores = "".join(f"p{p},r{r},{p + r / 10}\n" for p in range(2) for r in range(4))
    (tmp_path / "venue.csv").write_text(scores)
    (tmp_path / "times.csv").write_text("id,days\na,9.6\nb,20.2\n")
    return tmp_path


def test_files_make_an_instance(folder):
    made = instance_from_files(folder / "venue.csv", folder / "times.csv", column="days", servers_per_task=2, load=0.4)
    np.testing.assert_array_equal(made.scores, read_scores(folder / "venue.csv").scores)
    assert made.tasks == ("p0", "p1") and made.servers == ("r0", "r1", "r2", "r3")
    assert made.name == "venue" and made.servers_per_task == 2
    np.testing.assert_allclose(made.mean_duration, 15)
    assert made.load == pytest.approx(0.4)
    # rho = k Lambda E[D] / R, all papers equally often
    np.testing.assert_allclose(made.arrival_rate, [0.4 * 4 / (2 * 15) / 2] * 2)


def test_a_prepared_table_and_a_written_law_make_an_instance(folder):
    table = subsample(normalise(read_scores(folder / "venue.csv")), reviewers=3)
    made = instance_from_files(table, service="deterministic:5", servers_per_task=1, load=0.5, name="mine")
    np.testing.assert_array_equal(made.scores, table.scores)
    assert made.servers == table.reviewers and made.name == "mine" and made.max_duration == 5


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"service": None}, "durations file or a service law, and neither is given; give one (geometric:MEAN"),
        ({"durations": "times.csv"}, "and both are given; give one"),
        ({"column": "days"}, "column is 'days' but durations is not given; write sample:FILE:COLUMN"),
        ({"service": None, "durations": "times.csv"}, "has 2 columns (1 'id', 2 'days')"),
        ({"service": "poisson:3"}, "write it as geometric:MEAN"),
        ({"scores": "no.csv"}, "no.csv: no such file"),
        ({"load": 0.9}, "load 0.9 of instance 'venue' is outside"),
        ({"servers_per_task": 9}, "servers_per_task is 9"),
    ],
)
def test_files_that_make_no_instance_are_refused(folder, monkeypatch, change, expected):
    monkeypatch.chdir(folder)
    given = {"scores": "venue.csv", "service": "geometric:20", "servers_per_task": 1, "load": 0.5} | change
    with pytest.raises(InputError) as fault:
        instance_from_files(**given)
    assert expected in str(fault.value)
