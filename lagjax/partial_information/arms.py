"""One server as an arm of a restless bandit: what the dispatcher believes about it, and what choosing it brings.

The state of an arm is (q, tau): the backlog q after it was last chosen and the slots tau = 1, 2, ... since. With P(tau)[q, j] the
probability that its backlog is now j, choosing it brings reward[j] and the state (q', 1) with probability landing[j, q'].
Every model, the paper's two and those with random arrivals, is one such (P, reward, landing).

Ages beyond T count as T. The beliefs at T and later differ by at most `tail` in total variation, the largest such distance
between two rows of P(T), because every later belief is a mixture of those rows.
"""

from __future__ import annotations

import bisect
import dataclasses

import numpy as np
from scipy.special import pdtr, pdtrc
from scipy.stats import poisson

from lagjax.engine.checks import whole_number
from lagjax.errors import InputError
from lagjax.partial_information.system import System

TAIL = 1e-12  # total variation left beyond T, unless a number of ages is asked for
MAX_AGES = 20_000


@dataclasses.dataclass(frozen=True, eq=False)
class Arm:
    """One server, all float64; ages are tau = 1, ..., T along the axis of length T.

    Attributes:
      belief: (K+1, T, K+1), P(tau)[q, j] at [q, tau - 1, j].
      reward: (K+1,) expected jobs taken where the backlog is j.
      landing: (K+1, K+1) law of the backlog after choosing, by the one before.
      tail: total variation between beliefs at T and later, at most.
      discount: beta in (0, 1].
      resets: whether choosing always leads to (K, 1) and nothing comes by itself (Model 1 of the paper).
    """

    belief: np.ndarray
    reward: np.ndarray
    landing: np.ndarray
    tail: float
    discount: float
    resets: bool

    @property
    def capacity(self) -> int:
        """K."""
        return len(self.reward) - 1

    @property
    def ages(self) -> int:
        """T."""
        return self.belief.shape[1]

    @property
    def expected(self) -> np.ndarray:
        """(K+1, T) expected reward of choosing now: the myopic index."""
        return self.belief @ self.reward


def arms_of(system: System, ages: int | None = None) -> list[Arm]:
    """Builds an arm for each of `system.kinds`; without `ages` each as old as TAIL asks for.

    Raises:
      InputError: `ages` is not a whole number in range, or more than MAX_AGES would be needed.
    """
    if ages is not None:
        whole_number("ages", ages, 2, MAX_AGES)
    reward, landing = choosing(system)
    arms = []
    for rate, exogenous in system.kinds[0]:
        count = needed_ages(rate, exogenous, system.capacity) if ages is None else ages
        belief = beliefs(rate, exogenous, system.capacity, count)
        arms.append(
            Arm(
                belief, reward, landing, _spread(belief[:, -1]), system.discount,
                system.plain and system.model == "finite",
            )
        )  # fmt: skip
    return arms


def choosing(system: System) -> tuple[np.ndarray, np.ndarray]:
    """(K+1,) expected reward and (K+1, K+1) law of the backlog after choosing, by the backlog before."""
    jobs = np.arange(system.capacity + 1)
    offered = (
        np.eye(1, len(jobs), len(jobs) - 1)[0] if system.arrivals is None else capped(system.arrivals, system.capacity)
    )
    room = system.capacity - jobs if system.model == "finite" else np.where(jobs == 0, system.capacity, 0)
    taken = np.minimum(jobs[None], room[:, None])  # [backlog, offered]
    landing = np.zeros((len(jobs), len(jobs)))
    np.add.at(landing, (jobs[:, None], jobs[:, None] + taken), np.broadcast_to(offered, taken.shape))
    return taken @ offered, landing


def capped(rate: float, most: int) -> np.ndarray:
    """(most + 1,) law of min(Poisson(rate), most)."""
    return np.r_[poisson.pmf(np.arange(most), rate), pdtrc(most - 1, rate) if rate > 0 else 0.0]


def slot_matrix(rate: float, exogenous: float, capacity: int) -> np.ndarray:
    """(K+1, K+1) law of the backlog one slot later, min(q + X, K) - D cut at 0, by the backlog q."""
    jobs = np.arange(capacity + 1)
    up, down = (np.zeros((len(jobs), len(jobs))) for _ in range(2))
    for n, (come, go) in enumerate(zip(capped(exogenous, capacity), capped(rate, capacity), strict=True)):
        up[jobs, np.minimum(jobs + n, capacity)] += come
        down[jobs, np.maximum(jobs - n, 0)] += go
    return up @ down


def beliefs(rate: float, exogenous: float, capacity: int, ages: int) -> np.ndarray:
    """(K+1, T, K+1): P(tau)[q, j] at [q, tau - 1, j]; from the Poisson law of tau slots where nothing comes by itself."""
    jobs = np.arange(capacity + 1)
    if exogenous:
        step = slot_matrix(rate, exogenous, capacity)
        path = [step]
        for _ in range(ages - 1):
            path.append(path[-1] @ step)
        return np.stack(path, axis=1)
    mean = rate * np.arange(1, ages + 1)[None, :, None]
    left = jobs[:, None, None] - jobs
    law = np.where(left >= 0, poisson.pmf(np.maximum(left, 0), mean), 0.0)
    law[1:, :, 0] = pdtrc(jobs[1:, None] - 1, mean[:, :, 0])  # all q served, or more than q could have been
    law[0] = jobs == 0
    return law


def needed_ages(rate: float, exogenous: float, capacity: int, tail: float = TAIL) -> int:
    """Least T at which beliefs differ by `tail` at most from all later ones (2 or more).

    Raises:
      InputError: that is more than MAX_AGES.
    """
    if exogenous:
        step = slot_matrix(rate, exogenous, capacity)
        here, count = step, 1
        while _spread(here) > tail and count <= MAX_AGES:
            here, count = here @ step, count + 1
    else:
        ages = range(MAX_AGES + 2)
        count = bisect.bisect_left(ages, True, key=lambda age: bool(pdtr(capacity - 1, rate * age) <= tail))
    if count > MAX_AGES:
        raise InputError(
            f"a server of rate {rate:g} with capacity {capacity} is uncertain for more than {MAX_AGES:,} slots; give fewer "
            "ages and a coarser precision, or use longer slots"
        )
    return max(count, 2)


def _spread(law):
    """Largest total variation distance between two rows."""
    return float(np.abs(law[:, None] - law[None]).sum(axis=-1).max() / 2)
