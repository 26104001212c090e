"""Who hears how far a linear program is: programs are solved deep inside policies and studies, and the terminal far outside.

Whoever shows progress names a watcher for the code that it calls; the solvers tell it. Nothing here changes a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import NamedTuple


class Step(NamedTuple):
    """One step of a method.

    Attributes:
      method: its name.
      iteration: steps done.
      gap: relative gap reached; nan where the method does not tell.
      aim: gap at which it stops.
    """

    method: str
    iteration: int
    gap: float
    aim: float


Progress = Callable[[Step], object]
Watcher = Callable[[str], AbstractContextManager[Progress]]


def _deaf(step: Step) -> None:
    pass


def _nobody(program: str) -> AbstractContextManager[Progress]:
    return nullcontext(_deaf)


_watcher: ContextVar[Watcher] = ContextVar("watcher", default=_nobody)


@contextmanager
def watching(watcher: Watcher) -> Iterator[None]:
    """Lets `watcher` see every program that is solved inside, in this thread.

    Args:
      watcher: from a program's name to what is entered while that program is solved and hears its steps.
    """
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def solving(program: str, progress: Progress | None = None) -> Iterator[Progress]:
    """Around the solution of one program: yields what to call after every iteration.

    Args:
      program: what messages call it, as in "OCC-LP(0) of 'desk' at load 0.6".
      progress: hears the steps too.
    """
    with _watcher.get()(program) as hear:

        def both(step: Step) -> None:
            if progress is not None:
                progress(step)
            hear(step)

        yield both
