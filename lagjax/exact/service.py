"""Service laws as phases of a Markov chain: one that lasts with a fixed probability, or a count of the steps left."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from lagjax.durations import GEOMETRIC_TAIL
from lagjax.instance import Instance

_SAME = 1e-9  # relative: laws and ratios this close are equal


class Service(NamedTuple):
    """The laws of an instance, and the phases that a running task goes through.

    Phases 0..C-1 are the C geometric laws: the task ends with probability `finish` per step and stays otherwise. Phases
    C..C+d-1 count 1..d steps left. A task that has just been assigned does not lose a step in that same step.

    Attributes:
      law: (V,) which law type v has.
      finish: (C,) per step, of the geometric laws, which come first.
      steps: the other laws, each P(D = 1), P(D = 2), ...
      longest: d, the largest number of steps in `steps`; 0 if all laws are geometric.
    """

    law: np.ndarray
    finish: np.ndarray
    steps: tuple[np.ndarray, ...]
    longest: int

    @property
    def num_phases(self) -> int:
        """C + d."""
        return len(self.finish) + self.longest


def service_of(instance: Instance) -> Service:
    """Reads the laws of an instance as phases.

    A law made by `lagjax.geometric` is taken as the untruncated geometric law that it approximates. It ends where less
    than 1e-9 of the mass is left, so the two differ by less than 2e-9 in total variation and by less than
    1e-9 (d + mean) steps in the mean; rewards and blocking differ by about as much, relative to their size. A law that was
    cut where more is left is taken as it is, step by step.
    """
    laws = [row[: np.flatnonzero(row)[-1] + 1] for row in np.asarray(instance.service_pmf)]
    finish = [_finish(pmf) for pmf in laws]
    geometric: list[float] = []
    stepwise: list[np.ndarray] = []
    places: list[tuple[bool, int]] = []
    for pmf, p in zip(laws, finish, strict=True):
        if p is not None:
            same = [i for i, q in enumerate(geometric) if abs(p - q) <= _SAME * q]
            places.append((True, same[0] if same else len(geometric)))
            geometric += [] if same else [p]
        else:
            same = [i for i, other in enumerate(stepwise) if np.array_equal(pmf, other)]
            places.append((False, same[0] if same else len(stepwise)))
            stepwise += [] if same else [pmf]
    law = np.array([i if is_geometric else len(geometric) + i for is_geometric, i in places])
    return Service(law, np.array(geometric), tuple(stepwise), max((len(pmf) for pmf in stepwise), default=0))


def _finish(pmf: np.ndarray) -> float | None:
    """1 / mean of the geometric law that `pmf` truncates, or None."""
    if len(pmf) < 2 or pmf[0] == 0:
        return None
    stay = pmf[1] / pmf[0]
    fits = 0 < stay < 1 and stay ** len(pmf) <= GEOMETRIC_TAIL * (1 + 1e-6)
    if not fits or not np.allclose(pmf, pmf[0] * stay ** np.arange(len(pmf)), rtol=1e-6, atol=1e-6 * GEOMETRIC_TAIL):
        return None
    return 1 - stay
