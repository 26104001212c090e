"""How far the solution of a linear program has come, for whoever wants to show it."""

from __future__ import annotations

from collections.abc import Callable
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
