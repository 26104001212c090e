"""Linear programs that take long: which one is being solved, at which iteration and gap, and the time left."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from lagjax.lp.watching import Step, watching
from lagjax.runs.progress import duration

PATIENCE = 2.0  # seconds before anything is said of a program
EVERY = 1.0  # seconds between two words; a method without steps, such as HiGHS, is heard of by its time alone


@contextmanager
def saying(say: Callable[[str], object]) -> Iterator[None]:
    """Calls `say(line)` again and again while a program inside takes long, and `say("")` when it is solved.

    The calls come from a thread of their own, so that they come while a solver is inside a single operation.
    """

    @contextmanager
    def watcher(program):
        begun = time.monotonic()
        steps: list[tuple[float, Step]] = []  # the first and the last

        def hear(step):
            steps[1:] = [(time.monotonic(), step)]

        over, said = threading.Event(), False

        def speak():
            nonlocal said
            pause = PATIENCE
            while not over.wait(pause):
                say(described(program, time.monotonic() - begun, steps))
                said, pause = True, EVERY

        speaker = threading.Thread(target=speak, daemon=True)
        speaker.start()
        try:
            yield hear
        finally:
            over.set()
            speaker.join()
            if said:
                say("")

    with watching(watcher):
        yield


def described(program: str, seconds: float, steps: list[tuple[float, Step]]) -> str:
    """One line: the program, the iteration, the gap and what it is to be, the time spent and left, as far as they are known.

    Args:
      program: its name.
      seconds: since it began.
      steps: the first and the last one heard, with their times; none, or one, early on.
    """
    parts = []
    if steps:
        when, step = steps[-1]
        parts += [f"{step.method} iteration {step.iteration}" if step.iteration else step.method]
        parts += [] if math.isnan(step.gap) else [f"gap {step.gap:.1e} (to {step.aim:.0e})"]
    parts.append(duration(seconds))
    if len(steps) > 1:
        first, opening = steps[0]
        left = _left(when - first, opening.gap, step.gap, step.aim)
        parts += [] if left is None else [f"about {duration(left)} left"]
    return f"{program}: {', '.join(parts)}"


def _left(seconds, first, now, aim):
    """Seconds until the gap is at its aim if its logarithm falls as it did so far."""
    if not 0 < aim < now < first < math.inf:
        return None
    return seconds * math.log(now / aim) / math.log(first / now)
