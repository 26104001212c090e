"""Linear programs that take long, on a terminal or in a log."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from lagjax.cli import interrupts
from lagjax.cli.terminal import note, seldom, text_line


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
