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
    ("days\n12,5\n3\n", None),
    ("12,5\n3\n", None),
    ("id\tdays\na\t12.5\nb\t3\n", "days"),
    ("id\tdays\na\t12,5\nb\t3\n", "2"),
    ("id;days\na;12,5\nb;3\n", "days"),
    ("a;12,5\nb;3,0\n", "2"),
    ("sep=;\nid;days\na;12,5\nb;3\n", "days"),
    ("# from the office\ndays\n12.5\n# a gap\n3\n", None),
    ("id,days\n1,12.5\n1,3\n", "days"),
]


@pytest.mark.parametrize(("content", "column"), GOOD)
def test_good_files_give_their_times_in_order(tmp_path, content, column):
    for encoding in ("utf-8", "utf-16"):
        (tmp_path / "t.csv").write_bytes(content.encode(encoding))
        times = read_durations(tmp_path / "t.csv", column)
        assert times.dtype == np.float64
        np.testing.assert_array_equal(times, [12.5, 3])


def test_a_header_says_whether_commas_separate(tmp_path):
    for content, column, times in [("a,b\n1,5\n2,7\n", "b", [5, 7]), ("days\n1,5\n2,7\n", None, [1.5, 2.7])]:
        (tmp_path / "t.csv").write_text(content)
        np.testing.assert_array_equal(read_durations(tmp_path / "t.csv", column), times)
    (tmp_path / "t.csv").write_text("1,5\n2,7\n")  # neither a header nor a second column that is asked for
    np.testing.assert_array_equal(read_durations(tmp_path / "t.csv", "2"), [5, 7])
    with pytest.raises(InputError, match=r"line 1: can be read as 1 \| 5"):
        read_durations(tmp_path / "t.csv", "1")


def test_short_times_are_raised_when_asked_and_said(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("id\tdays\na\t3\nb\t0\nc\t0,25\nd\t1\n")
    said = []
    np.testing.assert_array_equal(read_durations(path, "days", shortest=1, note=said.append), [3, 1, 1, 1])
    assert said == [
        f"{path} is read with tabs between fields and decimal commas",
        f"{path}: 2 of 4 times raised to 1, the shortest in steps",
    ]
    np.testing.assert_array_equal(read_durations(path, "days", shortest=np.int64(2)), [3, 2, 2, 2])
    law = parse_service(f"sample:{path}:days", shortest=1, note=said.append)
    np.testing.assert_array_equal(law, from_sample([3, 1, 1, 1]))
    assert said[2:] == said[:2]
    path.write_text("2\n3\n")
    np.testing.assert_array_equal(read_durations(path, shortest=1, note=said.append), [2, 3])
    assert len(said) == 4


@pytest.mark.parametrize(
    ("content", "shortest", "expected"),
    [
        ("1\n-2\n0\n", 1, "line 2: field 1 is '-2'; times are finite numbers above 0"),
        ("1\nnan\n", 1, "line 2: field 1 is 'nan'"),
        ("1\n0\n", 0, "shortest is 0; give a whole number, 1 or more"),
        ("1\n0\n", 1.5, "shortest is 1.5; give a whole number"),
        ("1\n0\n", True, "shortest is True"),
    ],
)
def test_what_shortest_does_not_mend(tmp_path, content, shortest, expected):
    (tmp_path / "t.csv").write_text(content)
    with pytest.raises(InputError) as fault:
        read_durations(tmp_path / "t.csv", shortest=shortest)
    assert expected in str(fault.value)


def test_shortest_goes_with_observed_times():
    with pytest.raises(InputError, match="shortest is 1 but service 'geometric:3' is no sample"):
        parse_service("geometric:3", shortest=1)


BAD = [
    ("", None, "is empty; expected one time per line"),
    ("\n\n", None, "is empty"),
    ("days\n", None, "has a header but no times"),
    (
        TWO,
        None,
        "has 3 columns (1 'id', 2 'days', 3 'note'); say which one holds the times, by name or number: `--column days` (in "
        "a service law sample:FILE:days)",
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
    ("id\tdays\tweeks\na\t7\t1\n", None, "by name or number: `--column days` or `--column weeks` (in a service law"),
    ("id;review days\na;7\n", None, "`--column 'review days'`"),
    ("id,note\na,b\n", None, "say which one holds the times, by name or number (none holds numbers only)"),
    ("days\n1,500\n2,250\n", None, "line 2: can be read as 1.5 (with decimal commas), or 1500 (with commas between"),
    ("days\n1.500,5\n", None, "line 2: field 1 is '1.500,5'"),
    (
        "12,5\n3,25\n",
        None,
        "can be read as 12 | 5 (with commas between fields), or 12.5 (with decimal commas); add a header",
    ),
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
