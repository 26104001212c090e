"""What is dispatched to: N servers with finite buffers that drain at random, seen only when they are chosen."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lagjax.engine.checks import whole_number
from lagjax.errors import InputError

MODELS = ("finite", "blocking")
MAX_SERVERS = 256
MAX_ROOM = 100


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """N servers and a dispatcher that chooses one of them in every slot; make one with `make_system`.

    A slot: backlogs Q change to max(min(Q + X, K) - D, 0), with D ~ Poisson(rate) jobs served and X ~ Poisson(exogenous) jobs
    that come by themselves; the dispatcher chooses a server, learns its Q and adds jobs, as many as are offered and let in.

    Attributes:
      rates: (N,) float64 mu, jobs per slot that each server can serve.
      capacity: K, most jobs at a server.
      model: "finite" (a server takes jobs until it is full) or "blocking" (only an empty one takes any).
      discount: beta in (0, 1] per slot; 1 stands for the long-run average.
      arrivals: jobs that come to the dispatcher per slot, Poisson, those not taken are lost; None: there are always K.
      exogenous: (N,) jobs per slot that come to each server by themselves.
    """

    rates: np.ndarray
    capacity: int
    model: str
    discount: float
    arrivals: float | None
    exogenous: np.ndarray

    @property
    def num_servers(self) -> int:
        """N."""
        return len(self.rates)

    @property
    def plain(self) -> bool:
        """Whether this is the paper's model: nothing comes but what is dispatched, and there is always enough of it."""
        return self.arrivals is None and not self.exogenous.any()

    @property
    def kinds(self) -> tuple[np.ndarray, np.ndarray]:
        """(C, 2) different pairs of rate and exogenous arrivals, and (N,) which of them each server has."""
        kinds, which = np.unique(np.stack([self.rates, self.exogenous], axis=1), axis=0, return_inverse=True)
        return kinds, which.reshape(-1)


def make_system(
    rates, capacity: int, *, model: str = "finite", discount: float = 0.99, arrivals: float | None = None, exogenous=0.0
) -> System:
    """Checks and builds a system.

    Args:
      rates: N positive numbers, jobs per slot.
      capacity: K, 1 to MAX_ROOM.
      model, discount, arrivals, exogenous: as in `System`; one number of exogenous arrivals stands for all servers.

    Raises:
      InputError: an argument outside its range.
    """
    rates = _numbers("rates", rates)
    if not 1 <= len(rates) <= MAX_SERVERS:
        raise InputError(f"{len(rates)} servers; give 1 to {MAX_SERVERS} rates")
    for i, rate in enumerate(rates, 1):
        if not (math.isfinite(rate) and rate > 0):
            raise InputError(f"server {i} has rate {rate:g}; give a positive number of jobs per slot")
    whole_number("capacity", capacity, 1, MAX_ROOM)
    if model not in MODELS:
        raise InputError(f"no model '{model}'; choose from {', '.join(MODELS)}")
    discount = _numbers("discount", discount)[0]
    if not 0 < discount <= 1:
        raise InputError(f"discount is {discount:g}; give a number in (0, 1], 1 for the long-run average")
    if arrivals is not None:
        arrivals = float(_numbers("arrivals", arrivals)[0])
        if not (math.isfinite(arrivals) and arrivals > 0):
            raise InputError(f"arrivals is {arrivals:g}; give a positive number of jobs per slot")
    exogenous = _numbers("exogenous", exogenous)
    if len(exogenous) not in (1, len(rates)):
        raise InputError(f"{len(exogenous)} exogenous rates for {len(rates)} servers; give one, or one for each")
    exogenous = np.broadcast_to(exogenous, rates.shape).copy()
    for i, rate in enumerate(exogenous, 1):
        if not (math.isfinite(rate) and rate >= 0):
            raise InputError(f"server {i} has exogenous arrivals {rate:g}; give jobs per slot, 0 or more")
    return System(rates, int(capacity), model, float(discount), arrivals, exogenous)


def _numbers(name, values):
    try:
        return np.atleast_1d(np.asarray(values, np.float64)).reshape(-1)
    except (TypeError, ValueError):
        raise InputError(f"{name} {values!r} are not numbers") from None
