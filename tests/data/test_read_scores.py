"""Reading scores: what good files give, format by format, and what the caller's choices change."""

import pickle
import time

import numpy as np
import pytest

from lagjax.data import read_scores
from lagjax.errors import InputError

BY_PAPERS, BY_REVIEWERS = "papers-by-reviewers", "reviewers-by-papers"


def write(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


PLAIN = "p2,r1,0.5\np2,r0,0.25\np1,r1,1\np1,r0,0\n"
SAME_TABLE = {
    "plain": PLAIN,
    "no last line end": PLAIN.rstrip("\n"),
    "header": "paper,reviewer,score\n" + PLAIN,
    "header in capitals": " Paper , Reviewer , SCORE\n" + PLAIN,
    "header in another order": "score,reviewer,paper\n.5,r1,p2\n0.25,r0,p2\n1e0,r1,p1\n0,r0,p1\n",
    "crlf": PLAIN.replace("\n", "\r\n"),
    "byte-order mark": b"\xef\xbb\xbf" + PLAIN.encode(),
    "byte-order mark and header": b"\xef\xbb\xbfpaper,reviewer,score\r\n" + PLAIN.encode(),
    "blank lines and spaces": "\n p2 , r1 , 0.5\n \t\n" + "p2,r0, 0.25 \n\np1,r1,1\np1,r0,0\n\n",
    "quotes": '"p2","r1","0.5"\n"p2",r0,0.25\np1,r1,1\np1,r0,0\n',
}


@pytest.mark.parametrize("content", SAME_TABLE.values(), ids=SAME_TABLE)
def test_csv_variants_give_one_table(tmp_path, content):
    path = write(tmp_path / "s.csv", content)
    table = read_scores(path)
    assert table.papers == ("p2", "p1") and table.reviewers == ("r1", "r0")
    assert table.scores.dtype == np.float64 and table.scores.flags.c_contiguous
    np.testing.assert_array_equal(table.scores, [[0.5, 0.25], [1, 0]])
    assert table.source == path and table.notes == ()


def test_csv_lines_may_come_in_any_order(tmp_path):
    draw = np.random.default_rng(0)
    scores = draw.random((7, 5))
    pairs = [(p, r) for p in range(7) for r in range(5)]
    draw.shuffle(pairs)
    path = write(tmp_path / "s.csv", "".join(f"P{p},R{r},{float(scores[p, r])!r}\n" for p, r in pairs))
    table = read_scores(path)
    rows = [int(name[1:]) for name in table.papers]
    columns = [int(name[1:]) for name in table.reviewers]
    assert rows == list(dict.fromkeys(p for p, _ in pairs))
    np.testing.assert_array_equal(table.scores, scores[np.ix_(rows, columns)])


def test_csv_ids_may_hold_commas_and_line_ends(tmp_path):
    table = read_scores(write(tmp_path / "s.csv", '"Doe, J.","a\nb",1\n"Roe","a\nb",2\n'))
    assert table.papers == ("Doe, J.", "Roe") and table.reviewers == ("a\nb",)


@pytest.mark.parametrize("fill", [0, 0.25, "0.25"])
def test_missing_pairs_take_the_number_asked_for(tmp_path, fill):
    path = write(tmp_path / "s.csv", "p0,r0,1\np1,r1,2\n")
    table = read_scores(path, missing=fill)
    np.testing.assert_array_equal(table.scores, [[1, float(fill)], [float(fill), 2]])
    assert table.notes == (f"2 missing scores (no line) set to {float(fill):g}",)


def test_half_a_million_lines_are_read_fast(tmp_path):
    lines = (f"paper{p},reviewer{r},0.{r:03d}\n" for p in range(1000) for r in range(500))
    path = write(tmp_path / "s.csv", "".join(lines))
    start = time.process_time()
    table = read_scores(path)
    assert time.process_time() - start < 5  # processor time; about 0.7 s
    assert table.scores.shape == (1000, 500)
    np.testing.assert_array_equal(table.scores[-1], np.arange(500) / 1000)


def test_in_layout_has_papers_as_rows(tmp_path):
    table = read_scores(write(tmp_path / "bids.in", "2 3\r\n0.5 1 0\r\n\r\n  0.25 0 1\r\n"))
    np.testing.assert_array_equal(table.scores, [[0.5, 1, 0], [0.25, 0, 1]])
    assert table.papers == ("paper 0", "paper 1") and table.reviewers[2] == "reviewer 2"
    again = read_scores(table.source, orientation=BY_PAPERS)
    np.testing.assert_array_equal(again.scores, table.scores)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.uint8, bool])
@pytest.mark.parametrize("order", ["C", "F"])
def test_npy_is_oriented_by_the_caller(tmp_path, dtype, order):
    matrix = np.array([[0, 1, 1], [1, 0, 1]], dtype=dtype, order=order)
    np.save(tmp_path / "s.npy", matrix)
    by_papers = read_scores(tmp_path / "s.npy", orientation=BY_PAPERS)
    by_reviewers = read_scores(tmp_path / "s.npy", orientation=BY_REVIEWERS)
    np.testing.assert_array_equal(by_papers.scores, matrix)
    np.testing.assert_array_equal(by_reviewers.scores, matrix.T)
    assert by_papers.scores.dtype == by_reviewers.scores.dtype == np.float64
    assert by_reviewers.scores.flags.c_contiguous
    assert (len(by_papers.papers), len(by_papers.reviewers)) == (2, 3)
    assert (len(by_reviewers.papers), len(by_reviewers.reviewers)) == (3, 2)


def test_npz_is_reviewers_by_papers_unless_stated(tmp_path):
    matrix = np.array([[0.1, 0.2, 0.3], [0.4, 0.5, 0.6]])
    np.savez(tmp_path / "s.npz", similarity_matrix=matrix, mask_matrix=np.zeros((2, 3)))
    table = read_scores(tmp_path / "s.npz")
    np.testing.assert_array_equal(table.scores, matrix.T)
    assert table.reviewers == ("reviewer 0", "reviewer 1") and table.notes == ()
    np.testing.assert_array_equal(read_scores(tmp_path / "s.npz", orientation=BY_PAPERS).scores, matrix)


class Bomb:
    """Anything that unpickles it fails the test."""

    def __reduce__(self):
        return (pytest.fail, ("the reader unpickled an object",))


@pytest.fixture
def conference(tmp_path):
    """Laid out like the public iclr2018.npz: 3 reviewers x 2 papers, pickled ids, a gap and conflicts."""
    similarity = np.array([[0.5, -1.0], [0.2, -1.0], [0.3, 0.4]])
    mask = np.array([[0, 1], [0, 0], [1, 0]])
    bomb = np.empty((), dtype=object)
    bomb[()] = Bomb()
    np.savez(tmp_path / "iclr.npz", similarity_matrix=similarity, mask_matrix=mask, author_idx=bomb, paper_idx=bomb)
    with pytest.raises(pytest.fail.Exception):  # the bomb works
        pickle.loads(pickle.dumps(Bomb()))
    return tmp_path / "iclr.npz"


def test_conference_archive_is_read_without_unpickling(conference):
    table = read_scores(conference, missing=0.1, conflicts="zero")
    np.testing.assert_array_equal(table.scores, [[0.5, 0.2, 0], [0, 0.1, 0.4]])
    assert table.notes == (
        "2 conflicts scored 0: the last choice, not a ban",
        "1 missing scores (-1, an empty document) set to 0.1",
    )


def test_ignored_conflicts_keep_their_scores(conference):
    table = read_scores(conference, missing=0, conflicts="ignore")
    np.testing.assert_array_equal(table.scores, [[0.5, 0.2, 0.3], [0, 0, 0.4]])
    assert table.notes[0] == "2 conflicts ignored: their scores are kept"


def test_conflicts_and_gaps_are_refused_by_default(conference):
    with pytest.raises(InputError, match="declares 2 conflicts, the first paper 'paper 0', reviewer 'reviewer 2'"):
        read_scores(conference, missing=0)
    with pytest.raises(InputError, match=r"1 of 6 scores are missing .*paper 'paper 1', reviewer 'reviewer 1'"):
        read_scores(conference, conflicts="zero")


def test_reading_twice_gives_the_same_and_shares_nothing(tmp_path):
    path = write(tmp_path / "s.csv", PLAIN)
    one, two = read_scores(path), read_scores(str(path))
    one.scores[:] = 7
    np.testing.assert_array_equal(two.scores, [[0.5, 0.25], [1, 0]])
