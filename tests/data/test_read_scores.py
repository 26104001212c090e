"""Reading scores: what good files give, format by format, and what the caller's choices change."""

import pickle
import time

import numpy as np
import pytest

from lagjax.data import normalise, read_scores
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
    "semicolons": PLAIN.replace(",", ";"),
    "semicolons and decimal commas": PLAIN.replace(",", ";").replace(".", ","),
    "semicolons, decimal commas and a header": "paper;reviewer;score\n" + PLAIN.replace(",", ";").replace(".", ","),
    "tabs": PLAIN.replace(",", "\t"),
    "tabs, decimal commas and crlf": PLAIN.replace(",", "\t").replace(".", ",").replace("\n", "\r\n"),
    "sep line of a spreadsheet": "sep=;\r\n" + PLAIN.replace(",", ";"),
    "utf-16": PLAIN.encode("utf-16"),
    "utf-16, tabs, decimal commas": PLAIN.replace(",", "\t").replace(".", ",").encode("utf-16"),
    "comments": "# from the committee\n" + PLAIN + "# end\n",
    "row numbers of a data frame": ",paper,reviewer,score\n"
    + "".join(f"{i},{x}\n" for i, x in enumerate(PLAIN.split())),
    "table": "paper,r1,r0\np2,0.5,0.25\np1,1,0\n",
    "table of a data frame": ",r1,r0\np2,0.5,0.25\np1,1,0\n",
    "table with semicolons and decimal commas": "Paper;r1;r0\np2;0,5;0,25\np1;1;0\n",
    "quotes": '"p2","r1","0.5"\n"p2",r0,0.25\np1,r1,1\np1,r0,0\n',
}


@pytest.mark.parametrize("content", SAME_TABLE.values(), ids=SAME_TABLE)
def test_csv_variants_give_one_table(tmp_path, content):
    path = write(tmp_path / "s.csv", content)
    table = read_scores(path)
    assert table.papers == ("p2", "p1") and table.reviewers == ("r1", "r0")
    assert table.scores.dtype == np.float64 and table.scores.flags.c_contiguous
    np.testing.assert_array_equal(table.scores, [[0.5, 0.25], [1, 0]])
    assert table.source == path and all(note.startswith(str(path)) for note in table.notes)


@pytest.mark.parametrize(
    ("name", "notes"),
    [
        ("plain", []),
        ("byte-order mark and header", []),
        ("semicolons", ["is read with semicolons between fields"]),
        ("tabs, decimal commas and crlf", ["is read with tabs between fields and decimal commas"]),
        ("utf-16", ["is read as UTF-16"]),
        ("comments", ["is read without 2 comments (line 1 on)"]),
        ("row numbers of a data frame", ["has a column without a name, which is left out"]),
        ("table", ["is read as a table: 2 papers down, 2 reviewers across ('r1', ...)"]),
    ],
)
def test_how_a_file_was_read_is_said_where_it_is_not_plain(tmp_path, name, notes):
    path = write(tmp_path / "s.csv", SAME_TABLE[name])
    assert read_scores(path).notes == tuple(f"{path} {note}" for note in notes)


@pytest.mark.parametrize("ending", ["tsv", "TSV", "txt"])
def test_text_may_end_otherwise(tmp_path, ending):
    table = read_scores(write(tmp_path / f"s.{ending}", "p\tr\t0,5\np\ts\t1\n"))
    np.testing.assert_array_equal(table.scores, [[0.5, 1]])


def test_ids_are_kept_as_they_are(tmp_path):
    ids = "001,NA,0.1\n001,nan,0.2\n2024-01-02,NA,0.3\n2024-01-02,nan,0.4\n"
    table = read_scores(write(tmp_path / "s.csv", "paper,reviewer,score\n" + ids))
    assert table.papers == ("001", "2024-01-02") and table.reviewers == ("NA", "nan")
    table = read_scores(write(tmp_path / "s.csv", "~Ann_Lee1;7;0,5\n~Ann_Lee1;\u5f20\u4f1f;1\n"))
    assert table.papers == ("~Ann_Lee1",) and table.reviewers == ("7", "\u5f20\u4f1f")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("paper,r1,r2\np1,0,1\n", "can be read as a table of the reviewers 'r1' and 'r2', or as lines of paper"),
        ("paper,1,2\np1,3,0.5\n", "can be read as a table of the reviewers '1' and '2', or as lines"),
        (
            "p;1;1,234\n",
            "line 1: can be read as 'p' | 1 | 1.234 (with semicolons between fields and decimal commas), or",
        ),
        ("paper,r1,r1\np1,0,0.5\n", "line 1: names the reviewer 'r1' twice"),
        ("paper,r1,\np1,0,0.5\n", "line 1: has a reviewer without a name"),
        ("paper,r1,r2\np1,0.5,1\np1,0,1\n", "line 3: paper 'p1' is already there"),
        ("paper,r1,r2\n,0.5,1\n", "line 2: field 1 (the paper) is empty"),
        ("paper,r1,r2\np1,0.5\n", "line 2: has 2 fields, but line 1 has 3"),
        ("paper,r1,r2\np1,0.5,x\n", "line 2: field 3 (the score of 'r2') is 'x'"),
        ("paper,r1,r2\n", "has a header but no scores"),
    ],
)
def test_tables_that_are_none_and_two_ways_to_read_are_refused(tmp_path, content, expected):
    with pytest.raises(InputError) as fault:
        read_scores(write(tmp_path / "s.csv", content))
    assert expected in str(fault.value) and "\n" not in str(fault.value)


GAPS = {"no line": "a,x,-0.5\na,y,0.5\nb,x,0\n", "nan": "a,x,-0.5\na,y,0.5\nb,x,0\nb,y,nan\n"}
GAPS |= {word: f"paper;x;y\na;-0,5;0,5\nb;0;{word}\n" for word in ("", "NA", "n/a", "None", "NULL", "NaN")}


@pytest.mark.parametrize("content", GAPS.values(), ids=GAPS)
def test_known_scores_are_rescaled_before_gaps_are_filled(tmp_path, content):
    path = write(tmp_path / "s.csv", content)
    table = read_scores(path, normalise=True, missing=0.25)
    np.testing.assert_array_equal(table.scores, [[0, 1], [0.5, 0.25]])
    assert [note.split(" (")[0] for note in table.notes[-2:]] == [
        "scores rescaled from [-0.5, 0.5] to [0, 1]",
        "1 missing scores",
    ]
    with pytest.raises(InputError, match=r"pass normalise=True, missing=0 \(`--normalise --missing 0`\) to rescale"):
        read_scores(path)
    with pytest.raises(InputError, match=r"1 of 3 scores are negative.* \(`--normalise`\) to rescale \[-0.5, 0.5\]"):
        read_scores(path, missing=0)
    with pytest.raises(InputError, match=r"1 of 4 scores are missing.* \(`--missing 0`\)"):
        read_scores(path, normalise=True)


def test_a_filled_gap_does_not_move_the_scale(tmp_path):
    path = write(tmp_path / "s.csv", "a,x,1\na,y,3\nb,x,2\n")
    np.testing.assert_array_equal(read_scores(path, normalise=True, missing=0).scores, [[0, 1], [0.5, 0]])
    np.testing.assert_array_equal(normalise(read_scores(path, missing=0)).scores, np.array([[1, 3], [2, 0]]) / 3)


@pytest.mark.parametrize(("conflicts", "scores"), [("zero", [[0, 0, 1]]), ("ignore", [[1, 0, 0.6]])])
def test_conflicts_take_part_in_the_scale_only_if_their_scores_are_kept(tmp_path, conflicts, scores):
    np.savez(tmp_path / "s.npz", similarity_matrix=[[4.0], [-0.5], [2.2]], mask_matrix=[[1], [0], [0]])
    table = read_scores(tmp_path / "s.npz", conflicts=conflicts, normalise=True)
    np.testing.assert_allclose(table.scores, scores, rtol=1e-15)


@pytest.mark.parametrize("form", ["csv", "table", "in", "npy", "npz"])
def test_a_large_matrix_of_both_signs_is_rescaled_in_every_format(tmp_path, form):
    """177 x 118 scores in [-1, 1] with 2,380 negative ones; the places of the first are named without the option."""
    draw = np.random.default_rng(5)
    scores = draw.uniform(0, 1, (177, 118))
    scores.ravel()[draw.choice(scores.size, 2380, replace=False)] *= -1
    if form == "csv":
        content = "".join(
            f"p{p},r{r},{x!r}\n" for (p, r), x in zip(np.ndindex(scores.shape), scores.ravel().tolist(), strict=True)
        )
    else:
        content = "\n".join(" ".join(map(repr, row)) for row in scores.tolist())
    path = tmp_path / ("s.csv" if form == "table" else f"s.{form}")
    if form in ("csv", "in"):
        write(path, ("177 118\n" if form == "in" else "") + content)
    elif form == "table":
        rows = "\n".join(f"{p} {row}" for p, row in enumerate(content.splitlines()))
        write(path, ("paper " + " ".join(map(str, range(118))) + "\n" + rows).replace(" ", "\t"))
    else:
        np.save(path, scores) if form == "npy" else np.savez(path, similarity_matrix=scores.T)
    options = {"orientation": BY_PAPERS} if form == "npy" else {}
    low, high = scores.min(), scores.max()
    np.testing.assert_array_equal(read_scores(path, normalise=True, **options).scores, (scores - low) / (high - low))
    with pytest.raises(InputError) as fault:
        read_scores(path, **options)
    paper, reviewer = np.argwhere(scores < 0)[0]
    place = {"csv": f"line {118 * paper + reviewer + 1}", "npz": f"similarity_matrix[{reviewer}, {paper}]"}
    place |= {"npy": f"matrix[{paper}, {reviewer}]"}
    first = place.get(form, f"line {paper + 2}")
    assert f"2380 of 20886 scores are negative (first: {first}), the first {scores[paper, reviewer]:g} of" in str(
        fault.value
    )
    assert "; pass normalise=True (`--normalise`) to rescale [" in str(fault.value)


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
