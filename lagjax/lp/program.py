"""The two linear programs in one scaled form.

With w_vr = u_vr / lambda_v every number below is of order one. Maximise sum_vr lambda_v s_vr w_vr over

    sum_r w_vr (+ spare_v) = demand                    one row per type      multiplier lambda_v price_v
    idle_r + sum_v lambda_v E[D_v] w_vr = 1            one row per server    multiplier q_r
    0 <= w_vr <= bound,  idle_r >= 0,  spare_v >= 0

OCC-LP(B): bound = idle_r (`coupled`), demand = k (1 - B), no spare_v. KIID: bound = 1, demand = k, spare_v
present.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.instance import Instance


@dataclasses.dataclass(frozen=True, eq=False)
class Program:
    """One assignment program.

    Attributes:
      scores: (V, R) s_vr divided by `scale`.
      rate: (V,) lambda_v per step.
      duration: (V,) E[D_v] in steps.
      demand: sum_r w_vr asked for every type, in servers.
      coupled: True for OCC-LP (w_vr <= idle_r and an exact demand), False for KIID (w_vr <= 1, at most the demand).
      scale: max s_vr, or 1 when all scores are zero.
    """

    scores: np.ndarray
    rate: np.ndarray
    duration: np.ndarray
    demand: float
    coupled: bool
    scale: float

    @property
    def occupancy(self) -> np.ndarray:
        """(V,) a_v = lambda_v E[D_v]."""
        return self.rate * self.duration

    def slack_up(self, w: np.ndarray, idle: np.ndarray) -> np.ndarray:
        """(V, R) room below the upper bound of w."""
        return (idle if self.coupled else 1.0) - w

    def reduced(self, price: np.ndarray, server_price: np.ndarray) -> np.ndarray:
        """(V, R) s_vr - price_v - E[D_v] q_r, in units of `scale`."""
        return self.scores - price[:, None] - np.outer(self.duration, server_price)


def occ_program(instance: Instance, blocking: float) -> Program:
    """OCC-LP(B) of an instance (Lag, eq. 2-4)."""
    return _program(instance, instance.servers_per_task * (1 - blocking), coupled=True)


def kiid_program(instance: Instance) -> Program:
    """KIID LP of an instance (Lag, section 5.1)."""
    return _program(instance, float(instance.servers_per_task), coupled=False)


def _program(instance: Instance, demand: float, coupled: bool) -> Program:
    scores = np.asarray(instance.scores, dtype=np.float64)
    scale = float(scores.max()) or 1.0
    rate = np.asarray(instance.arrival_rate, dtype=np.float64)
    duration = np.asarray(instance.mean_duration, dtype=np.float64)
    return Program(scores / scale, rate, duration, float(demand), coupled, scale)
