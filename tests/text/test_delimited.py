"""The reader of delimited text: one content, however it is written; what is ambiguous or no text is refused."""

import os
import threading

import pytest

from lagjax.errors import InputError
from lagjax.text import BLANKS, WITH_COMMAS, Reading, read_delimited

ROWS = [["a", 0.8], ["b", 12.0]]


def pairs(rows, reading):
    """A layout of a name and a number; a first line of two words is a header."""
    found = []
    at = -1
    for at, (line, row) in enumerate(rows):
        if len(row) != 2:
            raise InputError(f"line {line}: {len(row)} fields")
        if at == 0 and not reading.could_be_number(row[1]):
            continue
        try:
            found.append([row[0], reading.number(row[1])])
        except ValueError:
            raise InputError(f"line {line}: no number") from None
    if at < 0:
        raise InputError("is empty")
    return found


def read(tmp_path, content, name="t.csv", **options):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    found, notes = read_delimited(path, pairs, **options)
    return found, [note.removeprefix(f"{path} is read ") for note in notes]


def written(delimiter, decimal, header="", end="\n", quote=""):
    head = [header.replace(",", delimiter)] if header else []
    rows = [f"{quote}{name}{quote}{delimiter}{number:g}".replace(".", decimal) for name, number in ROWS]
    return end.join([*head, *rows, ""])


PLACES = {",": "commas", ";": "semicolons", "\t": "tabs"}
VARIANTS = [
    (written(delimiter, decimal, header, end, quote), PLACES[delimiter], decimal)
    for delimiter in PLACES
    for decimal in ".,"
    for header in ("", "name,number")
    for end in ("\n", "\r\n", "\r")
    for quote in ("", '"')
    if delimiter != "," or decimal == "."
]


@pytest.mark.parametrize(("content", "separator", "decimal"), VARIANTS, ids=[repr(v[0]) for v in VARIANTS])
def test_every_way_to_write_them_gives_the_same_rows(tmp_path, content, separator, decimal):
    said = [f"{separator} between fields"] * (separator != "commas") + ["decimal commas"] * (decimal == ",")
    notes = [f"with {' and '.join(said)}"] if said else []
    for encoding in ("utf-8", "utf-8-sig"):
        assert read(tmp_path, content.encode(encoding)) == (ROWS, notes)
    assert read(tmp_path, content.encode("utf-16"))[1] == [", ".join(["as UTF-16", *notes])]
    assert read(tmp_path, content.encode("utf-16"))[0] == ROWS


@pytest.mark.parametrize(
    ("content", "options", "rows", "notes"),
    [
        ("sep=;\na;0,8\nb;12\n", {}, ROWS, ["with semicolons between fields and decimal commas"]),
        ("a\t0.8\nb\t12\n", {"name": "t.tsv"}, ROWS, []),
        ("a,0.8\nb,12\n", {"name": "t.tsv"}, ROWS, ["with commas between fields"]),
        ("a\t1,5\n", {"name": "t.TSV"}, [["a", 1.5]], ["with tabs between fields and decimal commas"]),
        ("\n# about\na,0.8\n \n  # more\nb,12\n\n", {}, ROWS, ["without 2 comments (line 2 on)"]),
        ('"#1",0.8\n"a\n#b",12\n', {}, [["#1", 0.8], ["a\n#b", 12.0]], []),
        ("a , 0.8\nb,12 # as told\n", {"trailing_comments": True}, [["a ", 0.8], ["b", 12.0]], []),
        ("a 0.8\n b \t 12\n", {"readings": BLANKS}, ROWS, []),
        ("a 0,8\nb 12\n", {"readings": BLANKS}, ROWS, ["with blanks between fields and decimal commas"]),
        ("a;,5\nb;-1,5e2\n", {}, [["a", 0.5], ["b", -150.0]], ["with semicolons between fields and decimal commas"]),
        ("a;1,234.5\n", {}, [["a", 1234.5]], ["with semicolons between fields and commas between thousands"]),
        ("a;1,234\nb;0,5\n", {}, [["a", 1.234], ["b", 0.5]], ["with semicolons between fields and decimal commas"]),
        ("x;0,8\n", {}, [["x", 0.8]], ["with semicolons between fields and decimal commas"]),
        ("Doe, J.;0,8\nRoe;1\n", {}, [["Doe, J.", 0.8], ["Roe", 1.0]], ["with semicolons between fields and decimal commas"]),
        ("name;number\nDoe, J.;0,8\n", {}, [["Doe, J.", 0.8]], ["with semicolons between fields and decimal commas"]),
        ('"Doe; J.",0.8\n', {}, [["Doe; J.", 0.8]], []),
        ("a;1\n" * 300 + "a;0,5\n", {}, [["a", 1.0]] * 300 + [["a", 0.5]], ["with semicolons between fields and decimal commas"]),
    ],
)  # fmt: skip
def test_what_else_is_read(tmp_path, content, options, rows, notes):
    assert read(tmp_path, content, **options) == (rows, notes)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1;2;0,8\n", "line 1: 3 fields"),
        ("sep=,\na,1\na;0,8;1\n", "line 3: no number"),
        ("a;1,234\n", "line 1: can be read as 'a' | 1.234 (with semicolons between fields and decimal commas), or 'a' | 1234"),
        ("a;12\nb;1,234\n", "line 2: can be read as 'b' | 1.234"),
        ("a;0,5\nb;0.5\n", "no number"),
        ("a;1\nb;1.234,5\n", "line 2: no number"),
        ("a,1\nb;2\n", "line 2: 1 fields"),
        ("a;1\nb;2\nc,3\n", "line 3: 1 fields"),
        ("a,1\n" * 300 + "b\n", "line 301: 1 fields"),
        ("a,1\n#b,2\n", "line 2: begins with # but would do as data; write '# ' and the rest to leave it out"),
        ("#a,1\n#b,2\n", "line 1: begins with #, as a comment does, and all other lines do too"),
        ("sep=|\na|1\n", "line 1: sep='|' is no separator that is read here"),
        ('a,1\n"b,2\n', "line 2: is not well-formed csv"),
        (b"a,1\nb\xe9,2\n", "line 2: is not UTF-8 text; save the file as UTF-8"),
        ("a,1\nb,2\n".encode("utf-16")[:-1], "line 2: is not UTF-16 text"),
        ("a,1\n".encode("utf-16-be"), "line 1: holds NUL characters"),
        ("a,1\n".encode("utf-32"), "line 1: holds NUL characters"),
        (b"PK\x03\x04\x14\x00", "is a packed file, such as a spreadsheet"),
    ],
)  # fmt: skip
def test_what_is_refused_names_the_line(tmp_path, content, expected):
    with pytest.raises(InputError) as fault:
        read(tmp_path, content)
    assert expected in str(fault.value) and "\n" not in str(fault.value)


def test_rows_are_never_lost_among_comments_and_blank_lines(tmp_path):
    lines = [f"n{i},{i}" if i % 3 else ("# n" if i % 2 else "") for i in range(1000)]
    found, _ = read(tmp_path, "\n".join(lines))
    assert found == [[f"n{i}", i] for i in range(1000) if i % 3]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_read_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(b"a;0,8\nb;12\n",))
    writer.start()
    found, _ = read_delimited(tmp_path / "pipe", pairs)
    writer.join()
    assert found == ROWS


@pytest.mark.parametrize(
    ("reading", "text", "number"),
    [
        (Reading(","), "1e-3", 1e-3),
        (Reading(";", "decimal"), " 1,5 ", 1.5),
        (Reading(";", "thousands"), "-1,234,567.5", -1234567.5),
        (Reading(","), "1_0", None),
        (Reading(","), "0,8", None),
        (Reading(";", "decimal"), "0.8", None),
        (Reading(";", "decimal"), "4,", None),
        (Reading(";", "decimal"), "1,2,3", None),
        (Reading(";", "thousands"), "0,123", None),
        (Reading(";", "thousands"), "12,34", None),
    ],
)  # fmt: skip
def test_numbers(reading, text, number):
    assert reading.is_number(text) == (number is not None)
    if number is not None:
        assert reading.number(text) == number


def test_readings_are_distinct_and_the_plain_one_comes_first():
    assert len(set(WITH_COMMAS)) == len(WITH_COMMAS) == 7
    assert WITH_COMMAS[0] == Reading(",") and WITH_COMMAS[0].describe() == "with commas between fields"
