"""What no routing can beat."""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np

from lagjax.loss_routing.erlang import queue
from lagjax.loss_routing.system import System


class Bounds(NamedTuple):
    """Jobs per unit time: the most that can be served, V_R, and the least that is lost, lambda - V_R."""

    throughput: float
    loss: float


def relaxation_bounds(system: System) -> Bounds:
    """V_R = min(lambda, lambda (K - sum_k B_{m_k,n_k}(lambda / mu_k))), of the restless-bandit relaxation.

    No queue serves more than it would if it were offered every job (Nino-Mora, EJOR 2012, Proposition 3.3).
    """
    with jax.enable_x64(True):
        accepted = queue(system.servers, system.room, system.arrival_rate / system.service_rate).accepted
    served = float(np.asarray(accepted).sum())
    return Bounds(system.arrival_rate * min(1.0, served), system.arrival_rate * max(0.0, 1.0 - served))
