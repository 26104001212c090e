"""Every bad score file ends in one line: which file, where in it, what was found, how to mend it."""

import io
import zipfile

import numpy as np
import pytest

from lagjax.data import cells, read_durations, read_scores
from lagjax.errors import InputError

PAPERS = {"orientation": "papers-by-reviewers"}
REVIEWERS = {"orientation": "reviewers-by-papers"}


def npy(value):
    buffer = io.BytesIO()
    np.save(buffer, value)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return buffer.getvalue()


def archive(member, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(member, content)
    return buffer.getvalue()


OK = np.full((2, 3), 0.5)
OBJECTS = np.array([[{"a": 1}, None]], dtype=object)

# (file name, its bytes, options of read_scores, what the message says)
CASES = [
    ("empty.csv", "", {}, "is empty; expected lines of paper,reviewer,score"),
    ("hash.csv", "#1,r,1\n#2,r,1\n", {}, "line 1: begins with #, as a comment does, and all other lines do too"),
    ("hash.csv", "p,r,1\n#2,r,1\n", {}, "line 2: begins with # but would do as data; write '# ' and the rest to leave"),
    ("blank.csv", "\n \n\r\n", {}, "is empty"),
    ("head.csv", "paper,reviewer,score\n", {}, "has a header but no scores"),
    ("two.csv", "p,r\n", {}, "line 1: has 2 fields; expected 3 (paper, reviewer, score)"),
    ("ragged.csv", "p,r,1\np,s,1,2\n", {}, "line 2: has 4 fields"),
    ("short.csv", "paper,reviewer,score\n\np,r\n", {}, "line 3: has 2 fields"),
    ("bars.csv", "p|r|1\n", {}, "line 1: has 1 field; expected 3 (paper, reviewer, score), so separate them with commas"),
    ("comma.csv", "p,r,0,5\n", {}, "has 4 fields; expected 3 (paper, reviewer, score), so write a decimal point, 0.5, or"),
    ("tabs.csv", "p,r,1\np\ts\t1\n", {}, "line 2: has 1 field; expected 3"),
    ("names.csv", "submission,user,bid\np,r,1\n", {}, "line 1: field 3 is 'bid', neither a score nor part of"),
    ("names.csv", "submission,user,bid\np,r,1\n", {}, "if 'submission', 'user', 'bid' name the columns, call them paper"),
    ("names.csv", "id,submission,user,bid\n1,p,r,1\n", {}, "line 1: names the columns 'id', 'submission', 'user', 'bid'"),
    ("names.csv", "id" + ",r" * 99 + "\n", {}, "line 1: names the columns 'id', 'r', 'r', 'r', 'r', 'r', ...; call three"),
    ("more.csv", "paper,reviewer,score,bid\np,r,1,2\n", {}, "line 1: has a column 'bid' beside paper, reviewer, score"),
    ("first.csv", "p,r,O.5\n", {}, "line 1: field 3 is 'O.5', neither a score"),
    ("word.csv", "p,r,1\np,s,high\n", {}, "line 2: field 3 (the score) is 'high'; scores are finite numbers"),
    ("none.csv", "p,r,1\np,s,\n", {}, "1 of 2 scores are missing (no number, the first on line 2), the first paper 'p'"),
    ("comma.csv", 'p,r,"0,5"\np,s,1\n', {}, "line 1: field 3 (the score) is '0,5'; scores are finite numbers"),
    ("under.csv", "p,r,1\np,s,1_0\n", {}, "line 2: field 3 (the score) is '1_0'"),
    ("nan.csv", "p,r,nan\n", {}, "1 of 1 scores are missing (no number, the first on line 1)"),
    ("nan.csv", "p,r,1\nq,s,NA\n", {}, "3 of 4 scores are missing (1 with no number, the first on line 2; 2 with no line)"),
    ("inf.csv", "p,r,1\np,s,inf\n", {}, "line 2: field 3 (the score) is 'inf'"),
    ("huge.csv", "p,r,1\np,s,1e999\n", {}, "line 2: field 3 (the score) is '1e999'"),
    ("minus.csv", "p,r,-0.1\n", {}, "1 of 1 scores are negative (first: line 1), the first -0.1 of paper 'p', reviewer 'r'; all"),
    ("moved.csv", "score,paper,reviewer\n1,p,r\n-2,p,s\n", {}, "negative (first: line 3), the first -2 of paper 'p'"),
    ("moved.csv", "score,paper,reviewer\n1,p,r\n-2,p,s\n", {}, "normalise=True (`--normalise`) to rescale [-2, 1] to [0, 1]"),
    ("flat.csv", "p,r,-1\n", {"normalise": True}, "all scores are -1, so no scale to [0, 1] exists"),
    ("far.csv", "p,r,-1e308\np,s,1e308\n", {"normalise": True}, "scores from -1e+308 to 1e+308 are too far apart"),
    ("nothing.csv", "p,r,nan\n", {"normalise": True, "missing": 0}, "no score is known"),
    ("swapped.csv", "0.5,p,r\n", {}, "line 1: field 3 is 'r', neither a score"),
    ("nopaper.csv", "p,r,1\n ,s,1\n", {}, "line 2: field 1 (the paper) is empty; name it"),
    ("noreviewer.csv", "p,,1\n", {}, "line 1: field 2 (the reviewer) is empty"),
    ("twice.csv", "p,r,1\np,s,1\n\np,r,2\np,s,3\n", {}, "line 4: paper 'p', reviewer 'r' was already scored on line 1"),
    ("thrice.csv", "a,r,1\np,s,1\np,s,2\np,s,3\n", {}, "line 3: paper 'p', reviewer 's' was already scored on line 2"),
    ("order.csv", "a,r,1\nb,r,1\nb,r,1\na,r,1\n", {}, "line 3: paper 'b', reviewer 'r' was already scored on line 2"),
    ("spaced.csv", "p,r,1\n p , r ,2\n", {}, "line 2: paper 'p', reviewer 'r' was already scored on line 1"),
    ("lines.csv", '"p\n1",r,1\np,r,1\np,r,x\n', {}, "line 4: field 3 (the score) is 'x'"),
    ("gap.csv", "p,r,1\np,s,1\nq,r,1\n", {}, "1 of 4 scores are missing (no line), the first paper 'q', reviewer 's'"),
    ("gap.csv", "p,r,1\nq,s,1\n", {}, "2 of 4 scores are missing"),
    ("gap.csv", "p,r,1\nq,s,1\n", {}, "pass missing=0 (`--missing 0`) to score missing ones 0"),
    ("quote.csv", 'p,r,1\n"p,s,1\np,t,1\n', {}, "line 2: is not well-formed csv"),
    ("quote.csv", "p,r,1\n" + '"' + "p,s,1\n" * 40000, {}, "line 2: is not well-formed csv"),
    ("after.csv", 'p,r,1\n"p"x,s,1\n', {}, "line 2: is not well-formed csv"),
    ("latin.csv", b"p,r,1\np\xe9,r,1\n", {}, "line 2: is not UTF-8 text; save the file as UTF-8"),
    ("latin.csv", b"p,r,1\n" * 9000 + b"p\xe9,r,1\n", {}, "line 9001: is not UTF-8 text"),
    ("utf16.csv", "p,r,1\np,s,1\n".encode("utf-16")[:-1], {}, "line 2: is not UTF-16 text; save the file as UTF-8"),
    ("nomark.csv", "p,r,1\n".encode("utf-16-le"), {}, "line 1: holds NUL characters, as UTF-16 without a byte-order mark"),
    ("sheet.csv", b"PK\x03\x04...", {}, "is a packed file, such as a spreadsheet, not text; export it as csv"),
    ("turned.csv", "p,r,1\n", REVIEWERS, "but a .csv file says itself which are the papers"),
    ("ok.csv", "p,r,1\n", {"orientation": "rows"}, "orientation is 'rows'; give 'papers-by-reviewers' or"),
    ("ok.csv", "p,r,1\n", {"missing": "zero"}, "missing is 'zero'; give 'refuse' or a finite number, 0 or more"),
    ("ok.csv", "p,r,1\n", {"missing": -1}, "missing is -1; give 'refuse'"),
    ("ok.csv", "p,r,1\n", {"missing": float("nan")}, "missing is nan"),
    ("ok.csv", "p,r,1\n", {"missing": None}, "missing is None"),
    ("ok.csv", "p,r,1\n", {"missing": True}, "missing is True"),
    ("ok.csv", "p,r,1\n", {"missing": 5, "normalise": True}, "missing is 5, but it is filled in after normalise"),
    ("ok.csv", "p,r,1\n", {"conflicts": "ban"}, "conflicts is 'ban'; give one of refuse, zero, ignore"),
    ("scores.xlsx", "p,r,1\n", {}, "cannot tell its format by '.xlsx'; name it .csv, .tsv, .npy, .npz or .in"),
    ("scores", "p,r,1\n", {}, "cannot tell its format by ''"),
    ("empty.in", "\n\n", {}, "is empty; expected a line 'papers reviewers'"),
    ("nohead.in", "0.5 0.25 1\n", {}, "line 1: is '0.5 0.25 1'; expected the number of papers and of reviewers"),
    ("zero.in", "0 3\n", {}, "line 1: is '0 3'; expected the number"),
    ("digits.in", "9" * 5000 + " 3\n", {}, "line 1: is '9999"),
    ("short.in", "3 2\n1 1\n1 1\n", {}, "has 2 rows of scores, but the header says 3 papers"),
    ("long.in", "1 2\n1 1\n1 1\n", {}, "line 3: is row 2, but the header says 1 papers"),
    ("ragged.in", "2 2\n1 1\n1\n", {}, "line 3: has 1 scores, but the header says 2 reviewers; mend"),
    ("turned.in", "2 3\n1 1\n1 1\n1 1\n", {}, "line 2: has 2 scores, but the header says 3 reviewers; papers come first"),
    ("word.in", "1 2\n1 x\n", {}, "line 2: field 2 is 'x'; scores are finite numbers"),
    ("nan.in", "1 2\nnan 1\n", {}, "1 of 2 scores are missing (nan), the first paper 'paper 0', reviewer 'reviewer 0' (line 2)"),
    ("inf.in", "1 2\n1 inf\n", {}, "line 2: field 2 is 'inf'"),
    ("minus.in", "1 2\n1 -1\n", {}, "negative (first: line 2), the first -1 of paper 'paper 0', reviewer 'reviewer 1'"),
    ("latin.in", b"1 1\n\xff\n", {}, "line 2: is not UTF-8 text"),
    ("turned.in", "1 1\n1\n", REVIEWERS, "but a .in file says itself which are the papers"),
    ("bare.npy", npy(OK), {}, "does not say whether its rows are papers; pass orientation='papers-by-reviewers' or"),
    ("cut.npy", npy(OK)[:-8], PAPERS, "is not readable as .npy (cut short or damaged?); save it again"),
    ("head.npy", npy(OK)[:40], PAPERS, "is not readable as .npy"),
    ("empty.npy", b"", PAPERS, "is not readable as .npy"),
    ("text.npy", b"p,r,1\n", PAPERS, "is not readable as .npy"),
    ("objects.npy", npy(OBJECTS), PAPERS, "holds Python objects, not numbers"),
    ("words.npy", npy(np.array([["a"]])), PAPERS, "the matrix holds <U1, not real numbers"),
    ("complex.npy", npy(OK + 1j), PAPERS, "the matrix holds complex128, not real numbers"),
    ("flat.npy", npy(OK[0]), PAPERS, "the matrix has shape (3,); expected 2 non-empty dimensions"),
    ("none.npy", npy(OK[:0]), PAPERS, "the matrix has shape (0, 3)"),
    ("nan.npy", npy([[1, 2], [np.nan, 3]]), REVIEWERS,
     "missing (nan), the first paper 'paper 0', reviewer 'reviewer 1' (matrix[1, 0]"),
    ("minus.npy", npy([[1, -1], [-2, 1]]), PAPERS, "2 of 4 scores are negative (first: matrix[0, 1]), the first -1 of"),
    ("long.npy", npy(np.array([[np.longdouble("1e4000")]])), PAPERS, "matrix[0, 0] is inf"),
    ("inf.npy", npy([[np.inf]]), PAPERS, "matrix[0, 0] is inf (one of 1 such entries); scores are finite numbers"),
    ("both.npy", npy([[np.nan, -1, 1]]), PAPERS, "pass normalise=True, missing=0 (`--normalise --missing 0`) to rescale [-1, 1]"),
    ("really.npy", npz(a=OK), PAPERS, "is an archive of arrays, not one matrix; name it .npz"),
    ("really.npz", npy(OK), {}, "is one bare array, not an archive; name it .npy"),
    ("cut.npz", npz(similarity_matrix=OK)[:-30], {}, "is not readable as .npz (cut short or damaged?)"),
    ("empty.npz", b"", {}, "is not readable as .npz"),
    ("keys.npz", npz(scores=OK, mask_matrix=OK), {}, "no key 'similarity_matrix' (its keys: scores, mask_matrix)"),
    ("nothing.npz", npz(), {}, "no key 'similarity_matrix' (its keys: none)"),
    ("objects.npz", npz(similarity_matrix=OBJECTS), {}, "key 'similarity_matrix' holds Python objects, not numbers"),
    ("inner.npz", archive("similarity_matrix.npy", npy(OK)[:-8]), {}, "key 'similarity_matrix' is not readable as .npz"),
    ("bytes.npz", archive("similarity_matrix", b"hello"), {}, "key 'similarity_matrix' is not readable as .npz"),
    ("flat.npz", npz(similarity_matrix=OK[0]), {}, "similarity_matrix has shape (3,); expected 2"),
    ("nan.npz", npz(similarity_matrix=OK * np.nan), {}, "6 of 6 scores are missing (nan), the first paper"),
    ("minus.npz", npz(similarity_matrix=[[1, -0.25]]), {}, "(first: similarity_matrix[0, 1]), the first -0.25 of"),
    ("open.npz", npz(similarity_matrix=[[-1, -0.5]]), {}, "similarity_matrix[0, 0] is -1, which marks an empty document in this"),
    ("blank.npz", npz(similarity_matrix=[[1, -1]]), {}, "1 of 2 scores are missing (-1, an empty document)"),
    ("mask.npz", npz(similarity_matrix=OK, mask_matrix=OK), {}, "mask_matrix[0, 0] is 0.5; entries are 1 (conflict) or 0"),
    ("mask.npz", npz(similarity_matrix=OK, mask_matrix=OK.T), {}, "is (3, 2) but similarity_matrix is (2, 3); it looks"),
    ("mask.npz", npz(similarity_matrix=OK, mask_matrix=OK[:1]), {}, "is (1, 3) but similarity_matrix is (2, 3); give"),
    ("mask.npz", npz(similarity_matrix=OK, mask_matrix=OBJECTS), {}, "key 'mask_matrix' holds Python objects"),
    ("clash.npz", npz(similarity_matrix=OK, mask_matrix=OK * 2), {}, "declares 6 conflicts, the first paper 'paper 0'"),
    ("clash.npz", npz(similarity_matrix=OK, mask_matrix=OK * 2), {}, "pass conflicts='zero' (`--conflicts zero`)"),
    ("all.npz", npz(similarity_matrix=[[np.nan, -2, 1, 0]], mask_matrix=[[0, 0, 0, 1]]), {},
     "(`--conflicts zero --normalise --missing 0`)"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "content", "options", "expected"), CASES, ids=[c[0] + ": " + c[3][:30] for c in CASES]
)
def test_bad_file_is_refused_in_one_line(tmp_path, name, content, options, expected):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as fault:
        read_scores(path, **options)
    message = str(fault.value)
    assert expected in message
    assert "\n" not in message and len(message) < 350 + len(str(path))
    assert message.startswith(str(path)) or name.startswith("ok.")  # an option at fault is named, not the file


def test_absent_files_and_directories_are_refused(tmp_path):
    (tmp_path / "folder.csv").mkdir()
    for path, expected in [
        (tmp_path / "no.csv", "no.csv: no such file; check the path"),
        (tmp_path / ("x" * 300 + ".csv"), "no such file"),
        (tmp_path / "folder.csv", "folder.csv: is a directory; give the file inside it"),
        (tmp_path / "folder.csv" / "no.npz", "no such file"),
    ]:
        with pytest.raises(InputError, match=expected):
            read_scores(path)


def test_a_table_too_large_for_memory_is_refused_before_it_is_made(tmp_path, monkeypatch):
    monkeypatch.setattr(cells, "MAX_CELLS", 8)
    (tmp_path / "s.csv").write_text("".join(f"p{i},r{i},1\n" for i in range(3)))
    with pytest.raises(
        InputError, match=r"3 papers x 3 reviewers make 9 pairs \(it has 3 scores\); at most 8 are read"
    ):
        read_scores(tmp_path / "s.csv", missing=0)


TEXTS = [
    "paper;reviewer;score\np1;r1;0,8\np1;r2;0,5\n", "p,r,1\np,s,2\n", "paper,r1,r2\np1,0.5,1\np2,2,3\n", "2 3\n1 2 3\n4 5 6\n",
    "id\tdays\na\t12,5\nb\t0\n", "# x\n0;1\n1;0\n", "sep=;\na;1\n",
]  # fmt: skip


def test_damaged_text_never_raises_anything_else(tmp_path):
    """Characters put in and cut out, in four encodings: something is read, or one line says why not."""
    draw = np.random.default_rng(1)
    read = refused = 0
    for _ in range(100):
        text = list(draw.choice(TEXTS))
        for at in draw.integers(len(text), size=draw.integers(3)):
            text[at : at + draw.integers(3)] = draw.choice(list(',;\t \n\r"#.-+059eNa\0\u00e9\u2028\u0663'))
        path = tmp_path / f"t{draw.choice(['.csv', '.tsv', '.in'])}"
        path.write_bytes("".join(text).encode(draw.choice(["utf-8", "utf-8-sig", "utf-16", "latin-1"]), "replace"))
        for attempt in (
            read_scores,
            lambda p: read_scores(p, normalise=True, missing=0),
            read_durations,
            lambda p: read_durations(p, "2"),
        ):
            try:
                attempt(path)
                read += 1
            except InputError as fault:
                assert len(str(fault).splitlines()) == 1
                refused += 1
    assert min(read, refused) > 20


@pytest.mark.parametrize("suffix", [".npy", ".npz"])
def test_damaged_arrays_never_raise_anything_else(tmp_path, suffix):
    """Single damaged bytes and every cut of small files: a table or an InputError, nothing else."""
    whole = npy(OK) if suffix == ".npy" else npz(similarity_matrix=OK)
    draw = np.random.default_rng(0)
    damaged = [whole[:cut] for cut in range(0, len(whole), 7)]
    for at in draw.integers(0, len(whole), 150):
        damaged.append(whole[:at] + bytes([draw.integers(256)]) + whole[at + 1 :])
    refused = 0
    for i, content in enumerate(damaged):
        path = tmp_path / f"{i}{suffix}"
        path.write_bytes(content)
        try:
            assert read_scores(path, **PAPERS).scores.ndim == 2
        except InputError:
            refused += 1
    assert refused > len(damaged) // 4
