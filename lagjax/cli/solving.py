"""Linear programs that take long, on a terminal or in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lagjax.cli import interrupts
from lagjax.cli.terminal import note, text_line


@contextmanager
def solving_line(shown: str = "auto", place: int = 0) -> Iterator[None]:
    """Around commands that solve linear programs: those that take long are seen, as `--progress` says.

    Args:
      shown: "bar" (a line that changes), "lines" (one at first and one every half minute), "none", or "auto" as in `shown_as`.
      place: lines below the first bar.
    """
    from lagjax.runs.solving import saying

    interrupts.begin_work()
    shown = shown_as(shown)
    if shown == "none":
        yield
    elif shown == "lines":
        with saying(seldom(note)):
            yield
    else:
        with text_line(place) as show, saying(show):
            yield


def shown_as(progress: str) -> str:
    """What `--progress auto` means here: a bar on a terminal, nothing in a pipe."""
    if progress == "auto":
        return "bar" if sys.stderr.isatty() else "none"
    return progress


def seldom(write: Callable[[str], object], every: float = 30.0) -> Callable[[str], None]:
    """Passes on the first of the texts that follow each other, and then one every so many seconds; "" ends them."""
    last: float | None = None

    def show(text):
        nonlocal last
        if not text:
            last = None
        elif last is None or time.monotonic() - last >= every:
            last = time.monotonic()
            write(text)

    return show
