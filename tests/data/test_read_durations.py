"""Reading observed durations, and the service laws written as text."""

import numpy as np
import pytest

from lagjax.data import parse_service, read_durations
from lagjax.durations import deterministic, from_sample, geometric, mean_duration
from lagjax.errors import InputError

TWO = "id,days,note\na,12.5,x\nb,3,y\n"

GOOD = [
    ("12.5\n3\n", None),
    ("days\n12.5\n3\n", None),
    ("\ufeffdays\r\n12.5\r\n\r\n3", None),
    ('"days"\n"12.5"\n 3 \n', None),
    ("days\n12.5\n3\n", "days"),
    ("days\n12.5\n3\n", 1),
    (TWO, "days"),
    (TWO, " days "),
    (TWO, "2"),
    (",days\n0,12.5\n1,3\n", "days"),
    ("a,12.5\nb,3\n", "2"),
    ("12.5,1\n3,1\n", 1),
]


@pytest.mark.parametrize(("content", "column"), GOOD)
def test_good_files_give_their_times_in_order(tmp_path, content, column):
    (tmp_path / "t.csv").write_bytes(content.encode())
    times = read_durations(tmp_path / "t.csv", column)
    assert times.dtype == np.float64
    np.testing.assert_array_equal(times, [12.5, 3])


BAD = [
    ("", None, "is empty; expected one time per line"),
    ("\n\n", None, "is empty"),
    ("days\n", None, "has a header but no times"),
    (
        TWO,
        None,
        "has 3 columns (1 'id', 2 'days', 3 'note'); say which one holds the times, by name or number: `--column days`",
    ),
    (
        "1,2.5\n",
        None,
        "has 2 columns (1 to 2); say which one holds the times, by name or number: `--column 1` or `--column 2`",
    ),
    ("1,2\n", None, "line 1: can be read as 1 | 2 (with commas between fields), or 1.2 (with decimal commas)"),
    (TWO, "weeks", "has no column 'weeks'; its columns: 1 'id', 2 'days', 3 'note'; choose one"),
    (TWO, "4", "has no column '4'"),
    (TWO, "0", "has no column '0'"),
    (TWO, "9" * 5000, "has no column '999"),
    ("1,2\n", "days", "has no column 'days'; its columns and no header: 1 to 2; choose one"),
    ("days,days\n1,2\n", "days", "2 columns are named 'days' (1 'days', 2 'days'); choose one by its number"),
    (TWO, "note", "line 2: field 3 is 'x'; times are finite numbers above 0"),
    (
        "days\n1\n0\n",
        None,
        "line 3: field 1 is '0' (1 of 2); times are finite numbers above 0: pass shortest=1 (`--shortest 1`)",
    ),
    ("days\n" + "0\n3\n" * 7, None, "lines 2, 4, 6, 8, 10 and 2 more: field 1 is '0' (7 of 14)"),
    ("1\n-2\n", None, "line 2: field 1 is '-2'"),
    ("1\n\nnan\n", None, "line 3: field 1 is 'nan'"),
    ("inf\n", None, "line 1: field 1 is 'inf'"),
    ("n/a\n1\n", None, "line 1: field 1 is 'n/a'"),
    ("12 days\n1\n", None, "line 1: field 1 is '12 days'"),
    ("1\n1_0\n", None, "line 2: field 1 is '1_0'"),
    ("a,1\nb,\n", "2", "line 2: field 2 is ''"),
    ("id,days\n1,1\n2,2,5\n", "days", "line 3: has 3 fields, but line 1 has 2; mend the line"),
    ("days\n1.5\n2,5\n", None, "line 3: field 1 is '2,5'; times are finite numbers above 0"),
    (b"days\n\xff\n", None, "line 2: is not UTF-8 text"),
    ('days\n"1\n', None, "line 2: is not well-formed csv"),
]


@pytest.mark.parametrize(("content", "column", "expected"), BAD)
def test_bad_files_are_refused_in_one_line(tmp_path, content, column, expected):
    path = tmp_path / "t.csv"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(InputError) as fault:
        read_durations(path, column)
    assert str(fault.value).startswith(f"{path}") and expected in str(fault.value)
    assert "\n" not in str(fault.value)


def test_absent_file_and_directory_are_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        read_durations(tmp_path / "no.csv")
    with pytest.raises(InputError, match="is a directory"):
        read_durations(tmp_path)


def test_service_laws_are_those_of_the_library(tmp_path):
    (tmp_path / "t.csv").write_text("id,days\na,1.4\nb,2.6\nc,0.2\n")
    np.testing.assert_array_equal(parse_service("geometric:20"), geometric(20))
    np.testing.assert_array_equal(parse_service(" deterministic: 43 "), deterministic(43))
    np.testing.assert_array_equal(parse_service("deterministic:43.0"), deterministic(43))
    law = parse_service(f"sample:{tmp_path / 't.csv'}:days")
    np.testing.assert_array_equal(law, from_sample([1.4, 2.6, 0.2]))
    assert mean_duration(law) == pytest.approx((1 + 3 + 1) / 3)


def test_a_colon_may_belong_to_the_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a:b.csv").write_text("2\n")
    np.testing.assert_array_equal(parse_service("sample:a:b.csv"), deterministic(2))
    np.testing.assert_array_equal(parse_service("sample:a:b.csv:1"), deterministic(2))


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("", "service is ''; write it as geometric:MEAN, deterministic:STEPS or sample:FILE[:COLUMN]"),
        ("geometric", "service is 'geometric'; write it as geometric:MEAN"),
        ("geometric:", "write it as geometric:MEAN"),
        ("weibull:3", "service is 'weibull:3'; write it as"),
        ("Geometric:20", "write it as geometric:MEAN"),
        ("geometric:x", "service 'geometric:x': 'x' is not a number"),
        ("geometric:0.5", "durations are between 1 and 1000000 steps"),
        ("geometric:nan", "durations are between 1 and 1000000 steps"),
        ("geometric:1e308", "durations are between 1 and 1000000 steps"),
        ("geometric:1000000", "service 'geometric:1000000': durations reach"),
        ("deterministic:43.5", "takes a whole number of steps; round it"),
        ("deterministic:0", "durations are between 1 and 1000000 steps"),
        ("deterministic:inf", "durations are between 1 and 1000000 steps"),
        ("deterministic:2000000", "durations are between 1 and 1000000 steps"),
        ("sample:", "write it as geometric:MEAN"),
        ("sample:no.csv", "no.csv: no such file"),
        ("sample:no.csv:days", "no.csv: no such file"),
        ("sample::days", "lacks a file or a column"),
        ("sample:no.csv:", "lacks a file or a column"),
        ("sample:.", "is a directory"),
        ("sample:long.csv", "long.csv: durations reach"),
    ],
)
def test_bad_service_laws_are_refused(tmp_path, monkeypatch, spec, expected):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.csv").write_text("1e9\n")
    with pytest.raises(InputError) as fault:
        parse_service(spec)
    assert expected in str(fault.value) and "\n" not in str(fault.value)
