"""The queues of all servers and replicas on the devices, in the narrowest dtype that holds them, moved interval by interval."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.compatibility import draws, model, starts
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.mean_field import check_start
from lagjax.compatibility.policies import looks_at
from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.drive import driver
from lagjax.errors import InputError
from lagjax.models import streams

GUARD = 64  # a queue this near to what its dtype holds gets a wider one: no server gets 64 tasks in an interval
LONGEST = 32_000  # longer queues are not simulated
STATIONARY = "stationary"  # the start from the exact law, where it is known
DTYPES = (np.uint8, np.uint16)


class Queues:
    """One graph, load and policy; `events` are those of each interval and bundle, other arguments as in `run.simulate`."""

    def __init__(self, graph, policy, load, replicas, seed, events, start, devices, together=False):
        bundles = np.arange(bundles_of(replicas))
        self.placed = place_replicas(len(bundles), devices)
        self.run = driver(model.step, self.placed)
        self.graph, self.policy, self.load = graph, policy, load
        self.stride = int(events.max())
        self.kind = 0
        self.queue = None
        self.tables = self._tables()
        exogenous, candidates = (
            streams.replica_keys(seed, s, bundles) for s in (streams.EXOGENOUS, streams.CANDIDATES)
        )
        self.keys = self.placed.by_replica(
            draws.Keys(exogenous, candidates, self._events(events.reshape(-1, len(bundles))[0]))
        )
        self.zero = self.placed.by_replica(model.no_counts(replicas))
        if isinstance(start, str):
            if start != STATIONARY or not starts.law_is_known(policy, graph, load):
                raise InputError(f"start '{start}' is not known for policy '{policy.name}' on graph '{graph.name}'")
            queue = starts.stationary(graph, load, replicas, seed)
        else:
            start = check_start([] if start is None else start)
            queue = starts.dealt(graph.num_servers, replicas, seed, start, together)
        if queue.max() > LONGEST:
            raise InputError(
                f"load {load:g} brings queues of {queue.max():,} tasks, and at most {LONGEST:,} are simulated; use a lower load"
            )
        while queue.max() > self._limit():
            self._widen(int(queue.max()))
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
                f"tasks, and at most {LONGEST:,} are simulated; the system does not carry this load, or hardly: use a lower one"
            )
        self.kind += 1
        self.tables = self._tables()
        if self.queue is not None:
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


def bundles_of(replicas: int) -> int:
    """Returns how many bundles a number of replicas makes; raises InputError unless it is a multiple of LANES."""
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    if replicas % LANES:
        raise InputError(f"replicas is {replicas}; give a multiple of {LANES}, as many as share their addresses")
    return replicas // LANES
