"""Stationary occupancies and trajectories of one graph, load and policy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import poisson

from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import Graph, check_load
from lagjax.compatibility.policies import Policy
from lagjax.compatibility.queues import bundles_of, interval_events, set_up
from lagjax.engine.checks import whole_number
from lagjax.engine.devices import place_replicas
from lagjax.engine.loop import Loop, Watched
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.models import streams

CHUNK = 64  # most intervals per call of the compiled program; results do not depend on it
WATCHED = Watched(CHUNK)


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
    first_replica: int = 0,
    seed: int = 0,
    start=None,
    allow_overloaded: bool = False,
    devices: Sequence[jax.Device] | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
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
      first_replica: number of the first of them, a multiple of 64: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      start: (L,) occupancies to start from, given to random servers; empty by default. STATIONARY for queues of the exact
        law where `lagjax.compatibility.starts.law_is_known`.
      allow_overloaded: whether servers may be overloaded under random routing.
      devices: JAX devices to share the bundles; all local devices by default, as many as divide their number.
      chunk: most intervals per call of the compiled program.
      progress: called with the events (of all replicas) done in each chunk.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.

    Raises:
      InputError: an argument outside its range, an overloaded server, or a queue that grows without end.
    """
    for field, value, least in (("time", time, 2), ("warmup", warmup, 0), ("chunk", chunk, 1)):
        whole_number(field, value, least, 10**9)
    check_load(graph, load, allow_overloaded)
    if time + warmup > most_time(graph, load):
        raise InputError(
            f"{time + warmup} mean service times are more than 2^32 events a replica; use more replicas instead"
        )
    watched = Watched(chunk, progress, resume, save)
    go_on = follow(graph, policy, load, replicas, seed, start, devices, watched, first_replica)
    go_on(warmup)
    return go_on(time // 2), go_on(time - time // 2)


def most_time(graph: Graph, load: float) -> int:
    """Returns how many mean service times a replica can have: its events are 32-bit numbers."""
    return (2**32 - 1) // interval_events(graph, load)


def follow(
    graph: Graph, policy: Policy, load: float, replicas: int, seed: int, start=None, devices=None,
    watched: Watched = WATCHED, first_replica: int = 0,
) -> Callable[[int], Window]:  # fmt: skip
    """Starts the system of `simulate`; what comes back goes on for so many mean service times and counts them."""
    run = set_up(graph, policy, load, replicas, seed, start=start, first_replica=first_replica)
    loop, end, events = (
        Loop(run, place_replicas(bundles_of(replicas), devices), watched),
        0,
        interval_events(graph, load),
    )

    def go_on(length):
        nonlocal end
        end += length
        servers, tasks = loop.to(end)
        return Window(servers, tasks, length, length * events)

    return go_on


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
    keys = streams.replica_keys(seed, streams.CLOCK, np.arange(bundles_of(replicas)))
    high, low = (
        np.asarray(w).astype(np.float64)
        for w in streams.words(keys, np.arange(len(times), dtype=np.uint32)[:, None], 0)
    )
    uniform = (high + (low + 0.5) / 2**32) / 2**32
    events = poisson.ppf(uniform, mean[:, None]).astype(np.int64)
    if len(times) * int(events.max()) >= 2**32:
        raise InputError("the trajectory has more than 2^32 events a replica; use fewer times or a shorter horizon")
    run = set_up(graph, policy, load, replicas, seed, events, start, together=together)
    loop = Loop(run, place_replicas(bundles_of(replicas), devices), Watched(1))
    out = []
    for now, number in enumerate(events):
        loop.renew(loop.keys._replace(events=jnp.asarray(number, jnp.int32)))
        out.append(loop.to(now + 1)[0] / graph.num_servers)
    return np.stack(out)


def bundle_means(values) -> np.ndarray:
    """Returns (..., B / 64) means of (..., B): independent and identically distributed, what intervals are made of."""
    values = np.asarray(values, dtype=np.float64)
    return values.reshape(*values.shape[:-1], -1, LANES).mean(axis=-1)
