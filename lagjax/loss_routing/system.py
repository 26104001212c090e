"""What is routed to: K parallel queues, each with servers of its own, a service rate and finite room."""

from __future__ import annotations

import dataclasses
import math

import numpy as np

from lagjax.errors import InputError

MAX_QUEUES = 1000
MAX_ROOM = 10_000
MIN_LOAD, MAX_LOAD = 1e-6, 1e6  # arrivals over the service rate of a queue: what the blocking formulas are tested for
SLOWEST, FASTEST = 1e-100, 1e100  # arrival rates whose squares are still numbers
MAX_IDLE = 1e6  # services of the uniformised chain, busy or not, per arrival


@dataclasses.dataclass(frozen=True, eq=False)
class System:
    """K queues in parallel and one Poisson stream of jobs; make one with `make_system`.

    Attributes:
      servers: (K,) int64 m, servers of each queue.
      room: (K,) int64 n >= m, jobs that a queue holds in all, in service and waiting.
      service_rate: (K,) float64 mu, jobs per unit time of one busy server; service times are exponential.
      arrival_rate: lambda, jobs per unit time.
    """

    servers: np.ndarray
    room: np.ndarray
    service_rate: np.ndarray
    arrival_rate: float

    @property
    def num_queues(self) -> int:
        """K."""
        return len(self.servers)

    @property
    def capacity(self) -> float:
        """Jobs per unit time of all servers busy: sum of m mu."""
        return float(self.servers @ self.service_rate)

    @property
    def traffic(self) -> float:
        """lambda / sum of m mu."""
        return self.arrival_rate / self.capacity

    @property
    def event_rate(self) -> float:
        """Rate of the uniformised chain: arrivals and services of all servers, busy or not."""
        return self.arrival_rate + self.capacity

    @property
    def states(self) -> int:
        """States of the joint chain: the product of n + 1."""
        return math.prod(int(n) + 1 for n in self.room)

    @property
    def typical_jobs(self) -> np.ndarray:
        """(K,) a state that is not rare: every server as busy as the traffic asks, or all queues full at traffic 1 and above."""
        busy = np.round(self.traffic * self.servers).astype(np.int64)
        return self.room if self.traffic >= 1 else busy

    def with_arrival_rate(self, arrival_rate: float) -> System:
        """The same queues under another stream."""
        return make_system(self.servers, self.room, self.service_rate, arrival_rate)


def make_system(servers, room, service_rate, arrival_rate: float) -> System:
    """Checks and builds a system.

    Args:
      servers: K whole numbers m, 1 or more.
      room: K whole numbers n, m or more: jobs in service and waiting.
      service_rate: K positive rates mu of one server, jobs per unit time.
      arrival_rate: positive, jobs per unit time.

    Raises:
      InputError: lists of different lengths, too many or no queues, n < m, a rate that is not positive and finite, or rates
        too far apart.
    """
    servers, room = _whole("servers", servers, 1), _whole("room", room, 1)
    try:
        service_rate = np.atleast_1d(np.asarray(service_rate, np.float64))
    except (TypeError, ValueError):
        raise InputError(f"rates {service_rate!r} are not numbers; give one service rate per queue") from None
    lengths = {"servers": servers.shape, "room": room.shape, "rates": service_rate.shape}
    if len(set(lengths.values())) > 1 or servers.ndim != 1:
        listed = ", ".join(f"{name} {_size(shape)}" for name, shape in lengths.items())
        raise InputError(f"the lists differ in length ({listed}); give each one value per queue")
    if not 1 <= len(servers) <= MAX_QUEUES:
        raise InputError(f"{len(servers)} queues; give 1 to {MAX_QUEUES}")
    for k, (m, n, rate) in enumerate(zip(servers, room, service_rate, strict=True), 1):
        if n < m:
            raise InputError(
                f"queue {k} has room for {n} jobs but {m} servers; room counts jobs in service: give {m} or more"
            )
        if n > MAX_ROOM:
            raise InputError(f"queue {k} has room for {n} jobs; give at most {MAX_ROOM}")
        if not (np.isfinite(rate) and rate > 0):
            raise InputError(f"queue {k} has service rate {rate:g}; give a positive number of jobs per unit time")
    try:
        arrival_rate = float(arrival_rate)
    except (TypeError, ValueError):
        raise InputError(f"arrivals {arrival_rate!r} is not a number; give a positive rate") from None
    if not (math.isfinite(arrival_rate) and arrival_rate > 0):
        raise InputError(f"arrivals is {arrival_rate:g}; give a positive number of jobs per unit time")
    system = System(servers, room, service_rate, arrival_rate)
    _check_ratios(system)
    return system


def _check_ratios(system):
    """Raises InputError unless all loads are in the range of the formulas and most events are not idle services."""
    arrivals = system.arrival_rate
    for k, rate in enumerate(system.service_rate.tolist(), 1):
        if not MIN_LOAD <= arrivals / rate <= MAX_LOAD:
            raise InputError(
                f"arrivals {arrivals:g} over rates {rate:g} of queue {k} is a load of {arrivals / rate:.4g}; give "
                "arrivals and rates whose ratio is between 1e-6 and 1e6 for every queue"
            )
    if not SLOWEST <= arrivals <= FASTEST:
        raise InputError(
            f"arrivals {arrivals:g} is not between 1e-100 and 1e100; give all rates in another unit of time"
        )
    if system.capacity > MAX_IDLE * arrivals:
        raise InputError(
            f"arrivals {arrivals:g} are less than a millionth of the {system.capacity:g} jobs per unit time that all "
            "servers can serve; give more arrivals, lower rates or fewer servers"
        )


def _whole(name, values, least):
    values = np.atleast_1d(np.asarray(values))
    if not np.issubdtype(values.dtype, np.number) or np.any(values != np.floor(values)) or np.any(values < least):
        raise InputError(f"{name} {values.tolist()} are not all whole numbers, {least} or more")
    return values.astype(np.int64)


def _size(shape):
    return "x".join(map(str, shape))
