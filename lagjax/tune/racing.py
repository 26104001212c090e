"""Races of candidates against an incumbent on common random numbers, with a bound on the chance of a false choice."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtrit

STAGES = 3  # the better half stays after each
_NOISE = 1e-12  # relative to the rewards: differences below are rounding


class Race(NamedTuple):
    """The outcome of a race.

    Attributes:
      winner: the candidate that replaces the incumbent, or None.
      gain: (K,) mean reward above the incumbent's, over all stages that a candidate saw.
      error: (K,) its standard error.
    """

    winner: int | None
    gain: np.ndarray
    error: np.ndarray


def race(
    sample: Callable[[Sequence[int], int], np.ndarray], candidates: int, false_choice: float, stages: int = STAGES
) -> Race:
    """Races candidates in stages by successive halving; one that is proved better than the incumbent may replace it.

    After each stage a candidate is proved better when the lower confidence bound of its mean paired difference, on all
    replicas so far, is above zero. Bounds are one-sided Student intervals at false_choice / (candidates * stages). By the
    union bound the chance that any candidate which is no better than the incumbent is ever proved better, and so the
    chance of a false choice, is at most `false_choice`, whatever the halving does; it rests on replicas being independent
    and their means close to normal, and on candidates fixed before the race's own replicas are drawn. Of those proved
    better the one of the largest mean in the last stage that any reached wins.

    Args:
      sample: (arms, stage) -> (1 + arms, B) rewards of the incumbent and of those candidates on the same fresh replicas.
      candidates: K.
      false_choice: in (0, 1).
      stages: each halves the field, and doubles the replicas by calling `sample` for more stages.
    """
    if candidates == 0:
        return Race(None, np.empty(0), np.empty(0))
    live = list(range(candidates))
    drawn: list[list[np.ndarray]] = [[] for _ in live]
    gain, error = np.zeros(candidates), np.full(candidates, np.inf)
    level = false_choice / (candidates * stages)
    winner = None
    for stage in range(stages):
        rewards = np.asarray(sample(live, stage))
        for arm, row in zip(live, rewards[1:], strict=True):
            drawn[arm].append(row - rewards[0])
            together = np.concatenate(drawn[arm])
            spread = max(together.std(ddof=1), _NOISE * float(np.abs(rewards[0]).max()))
            gain[arm], error[arm] = together.mean(), spread / math.sqrt(len(together))
        replicas = len(np.concatenate(drawn[live[0]]))
        bound = stdtrit(replicas - 1, 1 - level) * error
        live.sort(key=lambda arm: (-gain[arm], arm))
        better = [arm for arm in live if gain[arm] > bound[arm]]
        winner = better[0] if better else winner
        live = live[: math.ceil(len(live) / 2)]
    return Race(winner, gain, error)
