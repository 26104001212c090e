"""Stationary occupancies and trajectories of one graph, load and policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import poisson

from lagjax.compatibility import draws, model
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import Graph, check_load
from lagjax.compatibility.mean_field import check_start
from lagjax.compatibility.policies import Policy, looks_at
from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.drive import driver
from lagjax.errors import InputError
from lagjax.models import streams

CHUNK = 64  # most intervals per call of the compiled program; results do not depend on it
GUARD = 64  # a queue this near to what its dtype holds gets a wider one: no server gets 64 tasks in an interval
LONGEST = 32_000  # a queue that reaches this grows without end
DTYPES = (np.uint8, np.uint16)


class Window(NamedTuple):
    """Exact counts of a stretch of time.

    Attributes:
      servers: (LEVELS, B) int64 servers with at least 1, 2, ... tasks, summed over the observations.
      tasks: (B,) int64 tasks in the system, summed over the observations.
      observations: how many there are, one mean service time apart.
      events: events of the uniformised chain per replica.
    """

    servers: np.ndarray
    tasks: np.ndarray
    observations: int
    events: int


def simulate(
    graph: Graph,
    policy: Policy,
    load: float,
    *,
    time: int,
    warmup: int = 0,
    replicas: int = 1024,
    seed: int = 0,
    start=None,
    allow_overloaded: bool = False,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
) -> tuple[Window, Window]:
    """Simulates the system in continuous time and counts the first and the second half of `time`.

    The state is observed every N (1 + lambda) events (rounded), one mean service time: the mean of what is seen in the stationary
    state is the time average, without discretisation. Events are the same for every load and policy as far as they can be.
    Replicas 64 i to 64 i + 63 share addresses (see `lagjax.compatibility.model`): treat their mean as one observation, as
    `bundle_means` does. Results depend on the arguments before `devices` alone, and replica i on no other replica.

    Args:
      graph, policy: what to simulate.
      load: lambda, arrivals per server and mean service time, in (0, 1).
      time, warmup: mean service times counted (at least 2) and dropped before them.
      replicas: B, a multiple of 64.
      seed: in [0, 2^64).
      start: (L,) occupancies to start from, given to random servers; empty by default.
      allow_overloaded: whether servers may be overloaded under random routing.
      devices: JAX devices to share the bundles; all local devices by default, as many as divide their number.
      chunk: most intervals per call of the compiled program.
      progress: called with the events (of all replicas) done in each chunk.

    Raises:
      InputError: an argument outside its range, an overloaded server, or a queue that grows without end.
    """
    for field, value, least in (("time", time, 2), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least, 10**9)
    check_load(graph, load, allow_overloaded)
    events = max(1, round(graph.num_servers * (1 + load)))
    if (time + warmup) * events >= 2**32:
        raise InputError(
            f"{time + warmup} mean service times are more than 2^32 events a replica; use more replicas instead"
        )
    system = _System(graph, policy, load, replicas, seed, np.full(_bundles(replicas), events), start, devices)
    windows, now = [], 0
    for length in (warmup, time // 2, time - time // 2):
        servers, tasks = np.zeros((model.LEVELS, replicas), np.int64), np.zeros(replicas, np.int64)
        end = now + length
        while now < end:
            last = min(now + system.most_intervals(chunk), end)
            counts = system.advance(now, last)
            servers += counts.servers
            tasks += counts.tasks
            if progress is not None:
                progress((last - now) * events * replicas)
            now = last
        windows.append(Window(servers, tasks, length, length * events))
    return windows[1], windows[2]


def trace(
    graph: Graph,
    policy: Policy,
    load: float,
    *,
    times,
    replicas: int = 1024,
    seed: int = 0,
    start=None,
    together: bool = False,
    allow_overloaded: bool = False,
    devices: Sequence[jax.Device] | None = None,
) -> np.ndarray:
    """Follows occupancies in continuous time: between two times happens a Poisson number of events, drawn for each bundle.

    Args:
      times: (T,) increasing times, in mean service times, from 0 on.
      together: whether the start's longest queues go to the servers of lowest number, side by side, instead of random ones.
      The other arguments are as in `simulate`.

    Returns:
      (T, LEVELS, B) float64 fractions of servers with at least 1, 2, ... tasks.

    Raises:
      InputError: an argument outside its range.
    """
    times = np.asarray(times, dtype=np.float64)
    if times.ndim != 1 or len(times) < 1 or times[0] < 0 or (np.diff(times) <= 0).any():
        raise InputError("times of a trajectory increase, from 0 on")
    check_load(graph, load, allow_overloaded)
    mean = np.diff(np.r_[0.0, times]) * graph.num_servers * (1 + load)
    keys = streams.replica_keys(seed, streams.CLOCK, np.arange(_bundles(replicas)))
    high, low = (
        np.asarray(w).astype(np.float64)
        for w in streams.words(keys, np.arange(len(times), dtype=np.uint32)[:, None], 0)
    )
    uniform = (high + (low + 0.5) / 2**32) / 2**32
    events = poisson.ppf(uniform, mean[:, None]).astype(np.int64)
    if len(times) * int(events.max()) >= 2**32:
        raise InputError("the trajectory has more than 2^32 events a replica; use fewer times or a shorter horizon")
    system = _System(graph, policy, load, replicas, seed, events, start, devices, together)
    return np.stack(
        [system.advance(now, now + 1, events[now]).servers / graph.num_servers for now in range(len(times))]
    )


def bundle_means(values) -> np.ndarray:
    """Returns (..., B / 64) means of (..., B): independent and identically distributed, what intervals are made of."""
    values = np.asarray(values, dtype=np.float64)
    return values.reshape(*values.shape[:-1], -1, LANES).mean(axis=-1)


class _System:
    """Queues on the devices, in the narrowest dtype that holds them."""

    def __init__(self, graph, policy, load, replicas, seed, events, start, devices, together=False):
        bundles = np.arange(_bundles(replicas))
        self.placed = place_replicas(len(bundles), devices)
        self.run = driver(model.step, self.placed)
        self.graph, self.policy, self.load = graph, policy, load
        self.stride = int(events.max())
        self.kind = 0
        self.tables = self._tables()
        exogenous, candidates = (
            streams.replica_keys(seed, s, bundles) for s in (streams.EXOGENOUS, streams.CANDIDATES)
        )
        self.keys = self.placed.by_replica(
            draws.Keys(exogenous, candidates, self._events(events.reshape(-1, len(bundles))[0]))
        )
        self.zero = self.placed.by_replica(model.no_counts(replicas))
        queue = _start(graph.num_servers, replicas, seed, check_start([] if start is None else start), together)
        while queue.max() > self._limit():
            self._widen(None)
        self.queue = self.placed.by_replica(jnp.asarray(queue, DTYPES[self.kind]))

    def most_intervals(self, chunk):
        return max(1, min(chunk, (2**31 - 1) // (self._limit() * self.graph.num_servers)))

    def advance(self, first, last, events=None):
        """Runs intervals first to last, with so many events of each bundle in each; what was counted comes back."""
        if events is not None:
            self.keys = self.keys._replace(events=self._events(events))
        while True:
            queue, counts = self.run(self.queue, self.zero, np.uint32(first), np.uint32(last), self.tables, self.keys)
            counts = jax.device_get(counts)
            if int(counts.longest.max()) <= self._limit():
                self.queue = queue
                return counts
            self._widen(int(counts.longest.max()))

    def _events(self, numbers):
        return self.placed.by_replica(jnp.asarray(numbers, jnp.int32))

    def _limit(self):
        return min(int(np.iinfo(DTYPES[self.kind]).max) - GUARD, LONGEST)

    def _widen(self, longest):
        if self.kind + 1 == len(DTYPES):
            raise InputError(
                f"graph '{self.graph.name}' under policy '{self.policy.name}' at load {self.load:g}: a queue of {longest} "
                "tasks; the system does not carry this load"
            )
        self.kind += 1
        self.tables = self._tables()
        if longest is not None:
            self.queue = self.placed.by_replica(self.queue.astype(DTYPES[self.kind]))

    def _tables(self):
        unit = DTYPES[self.kind]
        most = looks_at(self.policy, self.graph)
        return self.placed.everywhere(
            draws.Tables(
                self.graph.neighbours, self.graph.size, self.graph.row,
                arrival=np.uint32(round(self.load / (1 + self.load) * 2**32)), choices=np.int32(self.policy.choices),
                sees=unit(min(self.policy.sees, np.iinfo(unit).max)), stride=np.uint32(self.stride),
                num_servers=self.graph.num_servers, most=most,
            )
        )  # fmt: skip


def _bundles(replicas):
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    if replicas % LANES:
        raise InputError(f"replicas is {replicas}; give a multiple of {LANES}, as many as share their addresses")
    return replicas // LANES


def _start(num_servers, replicas, seed, occupancy, together):
    """(P, B) queues with round(N q_i) servers of at least i tasks, the same ones in a bundle: the first, or random ones."""
    reach = np.rint(num_servers * occupancy).astype(int)
    length = (np.arange(num_servers)[:, None] < reach).sum(axis=1)
    keys = streams.replica_keys(seed, streams.PLACEMENT, np.arange(replicas // LANES))
    word = np.asarray(streams.words(keys, np.arange(num_servers, dtype=np.uint32)[:, None], 0)[0])
    if together:
        word = np.arange(num_servers)[:, None].repeat(replicas // LANES, axis=1)
    queue = np.zeros((model.rows_of(num_servers), replicas), np.int64)
    queue[:num_servers] = length[np.argsort(word, axis=0, kind="stable")].repeat(LANES, axis=1)
    return queue
