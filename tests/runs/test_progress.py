"""Progress: sums, rates without what was found done, and plain lines."""

import pytest
from toys import CONFIGURATION, jobs

from lagjax.cli.terminal import bars
from lagjax.runs import progress
from lagjax.runs.execute import execute
from lagjax.runs.progress import Meter, describe, duration, lines, quantity
from lagjax.runs.running import Running


def test_numbers_in_words():
    assert [quantity(x) for x in (0.5, 12, 1234, 43_200_000, 6e9, 7e13)] == [
        "0.5", "12", "1.23 k", "43.2 M", "6 G", "7e+04 G",
    ]  # fmt: skip
    assert [duration(x) for x in (0.123, 9.2, 42.4, 150, 9000)] == ["0.12 s", "9.2 s", "42 s", "2 min", "2 h 30 min"]


def test_rate_and_time_left_count_only_what_this_run_did(monkeypatch):
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    seen = []
    meter = Meter(jobs(), [seen.append])
    meter.kept("a")
    meter.started("b")
    meter.moved("b", 2.0)  # found in a checkpoint
    now = 102.0
    meter.moved("b", 3.0)
    assert (seen[-1].done, seen[-1].work, seen[-1].rate, seen[-1].left) == (7.0, 12.0, 0.5, 10.0)
    meter.finished("b")
    meter.moved("b", 1.0)  # a late word
    assert (seen[-1].event, seen[-1].ended, seen[-1].done, seen[-1].seconds) == ("finished", 2, 8.0, 2.0)
    assert describe(seen[-1], "arrivals") == "[2/3 cells, 67%] b: done in 2 s, 1 arrivals/s, 4 s left"
    meter.failed("c", "no luck")
    assert "c: failed: no luck" in describe(seen[-1], "arrivals")


def test_lines_come_at_a_modest_rate(monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    said = []
    meter = Meter(jobs(), [lines(said.append, "arrivals", every=30)])
    meter.started("a")
    for second in range(100):
        now = float(second)
        meter.moved("a", second / 25)
    meter.finished("a")
    assert len(said) == 4  # three while it ran, one when it ended
    assert said[0].startswith("[0/3 cells, 10%] a: 30%, ")


def test_a_run_tells_its_log_and_its_views(tmp_path):
    seen = []
    execute(jobs(), CONFIGURATION, Running(out=tmp_path, views=[seen.append]))
    assert [s.event for s in seen if s.event != "moved"] == ["started", "finished"] * 3
    log = (tmp_path / "run" / "log.txt").read_text().splitlines()
    assert len(log) == 3 and log[-1].startswith("[3/3 cells, 100%] c: done in ")
    seen.clear()
    execute(jobs(), CONFIGURATION, Running(out=tmp_path, views=[seen.append]))
    assert [s.event for s in seen] == ["kept"] * 3
    assert (tmp_path / "run" / "log.txt").read_text().splitlines() == log


def test_bars_follow(capsys):
    with bars("sweep", "arrivals") as view:
        execute(jobs(), CONFIGURATION, Running(views=[view]))
    text = capsys.readouterr().err
    assert "sweep:" in text and "3/3 cells" in text and "c:" in text


@pytest.mark.parametrize("shown", [False])
def test_no_bars_no_output(capsys, shown):
    with bars("sweep", "arrivals", shown) as view:
        execute(jobs(), CONFIGURATION, Running(views=[view]))
    assert capsys.readouterr().err == ""
