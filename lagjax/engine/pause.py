"""Where a run stands between two calls of its compiled program: what it takes to go on later, in another process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np


class Pause(NamedTuple):
    """A run that can go on.

    Attributes:
      done: arrivals, or steps, of every replica behind it.
      arrays: the leaves of its carry on the host. Random words are addressed by number, so nothing else is needed.
    """

    done: int
    arrays: Sequence[np.ndarray]


# save(done, fetch): called between two chunks; fetch() brings the arrays of the pause to the host, if they are wanted.
Save = Callable[[int, Callable[[], list[np.ndarray]]], object]
