"""Programs that take long are heard of, at a modest rate; those that do not are not."""

import time

import numpy as np
import pytest

from lagjax.cli.terminal import bars
from lagjax.lp.watching import Step, solving
from lagjax.runs import progress
from lagjax.runs import solving as module
from lagjax.runs.execute import execute
from lagjax.runs.job import Job
from lagjax.runs.progress import Meter, lines
from lagjax.runs.record import Record
from lagjax.runs.running import Running
from lagjax.runs.solving import described, saying

STEPS = [(10.0, Step("interior", 1, 1e-1, 1e-9)), (14.0, Step("interior", 5, 1e-5, 1e-9))]


def test_a_line_names_program_step_gap_and_time_left():
    assert described("OCC-LP(0) of 'desk' at load 0.6", 12.0, []) == "OCC-LP(0) of 'desk' at load 0.6: 12 s"
    assert described("P", 4.0, STEPS[:1]) == "P: interior iteration 1, gap 1.0e-01 (to 1e-09), 4 s"
    assert described("P", 4.0, [(1.0, Step("highs", 0, np.nan, 1e-10))]) == "P: highs, 4 s"
    # four decades in 4 s, four to go
    assert described("P", 6.0, STEPS) == "P: interior iteration 5, gap 1.0e-05 (to 1e-09), 6 s, about 4 s left"


@pytest.mark.parametrize("gap", [0.2, 1e-1, 1e-10, 0.0, np.nan, np.inf])
def test_no_time_left_is_made_up(gap):
    """A gap that grew, stands, is reached or is no number tells nothing of the time left."""
    assert "left" not in described("P", 4.0, [STEPS[0], (14.0, Step("dual", 5, gap, 1e-9))])


def test_only_long_programs_are_heard_of(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    monkeypatch.setattr(module, "EVERY", 0.02)
    said = []
    with saying(said.append):
        with solving("short"):
            pass
        with pytest.raises(ArithmeticError), solving("long") as tell:
            tell(STEPS[0][1])
            while len(said) < 2:  # without a step in between, as inside HiGHS
                time.sleep(0.01)
            raise ArithmeticError
        count = len(said)
        time.sleep(0.1)
    assert len(said) == count and said[-1] == "" and all(text.startswith("long: interior") for text in said[:-1])


def slow(watch):
    with solving("P"):
        time.sleep(0.5)
    return Record({}, {"x": np.zeros(1)})


def test_a_job_tells_the_views(monkeypatch):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    seen = []
    execute([Job("a", "", 1.0, slow)], {}, Running(views=[seen.append]))
    events = [status.event for status in seen]
    assert events[0] == "started" and events[-2:] == ["solved", "finished"] and "solving" in events
    assert {s.said.split(":")[0] for s in seen if s.event == "solving"} == {"P"}


def test_bars_show_it_in_a_line_of_its_own(monkeypatch, capsys):
    monkeypatch.setattr(module, "PATIENCE", 0.05)
    with bars("sweep", "arrivals") as view:
        execute([Job("a", "", 1.0, slow)], {}, Running(views=[view]))
    assert "P: 0." in capsys.readouterr().err


def test_lines_name_a_program_at_once_and_then_seldom(monkeypatch):
    now = 0.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    said = []
    meter = Meter([Job("a", "", 1.0, slow)], [lines(said.append, "arrivals", every=30)])
    meter.started("a")
    for second in range(2, 40):
        now = float(second)
        meter.solving("a", f"P: {second} s")
    meter.solving("a", "")
    meter.finished("a")
    assert [line.split("] ")[1].split(",")[0] for line in said] == [
        "a: solving P: 2 s", "a: solving P: 32 s", "a: done in 39 s",
    ]  # fmt: skip
