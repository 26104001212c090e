"""The queues of all servers and replicas at the start, and in the narrowest dtype that holds them on their way."""

from __future__ import annotations

import dataclasses
import functools

import jax.numpy as jnp
import numpy as np

from lagjax.compatibility import draws, model, starts
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.mean_field import check_start
from lagjax.compatibility.policies import looks_at
from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.model import Model, Run
from lagjax.errors import InputError
from lagjax.models import streams

GUARD = 64  # a queue this near to what its dtype holds gets a wider one: no server gets 64 tasks in an interval
LONGEST = 32_000  # longer queues are not simulated
STATIONARY = "stationary"  # the start from the exact law, where it is known
DTYPES = (np.uint8, np.uint16)
MODEL = Model(model.draw, model.step, model.count)


def set_up(graph, policy, load, replicas, seed=0, events=None, start=None, *, first_replica=0, together=False) -> Run:
    """Returns one graph, load and policy as it starts; arguments as in `run.simulate` and `run.trace`.

    Args:
      events: (G,) of each bundle in an interval, or (T, G), of which the first row holds; numbers are set aside for the most.
    """
    bundles = bundles_of(first_replica, 0) + np.arange(bundles_of(replicas))
    events = np.full(len(bundles), interval_events(graph, load)) if events is None else np.asarray(events)
    if isinstance(start, str):
        if start != STATIONARY or not starts.law_is_known(policy, graph, load):
            raise InputError(f"start '{start}' is not known for policy '{policy.name}' on graph '{graph.name}'")
        queue = starts.stationary(graph, load, bundles, seed)
    else:
        queue = starts.dealt(graph.num_servers, bundles, seed, check_start([] if start is None else start), together)
    if queue.max() > LONGEST:
        raise InputError(
            f"load {load:g} brings queues of {queue.max():,} tasks, and at most {LONGEST:,} are simulated; use a lower load"
        )
    kind = next(kind for kind, unit in enumerate(DTYPES) if queue.max() <= _limit(unit))
    keys = draws.Keys(
        streams.replica_keys(seed, streams.EXOGENOUS, bundles),
        streams.replica_keys(seed, streams.CANDIDATES, bundles),
        jnp.asarray(events.reshape(-1, len(bundles))[0], jnp.int32),
    )
    tables = draws.Tables(
        graph.neighbours, graph.size, graph.row, arrival=np.uint32(round(load / (1 + load) * 2**32)),
        choices=np.int32(policy.choices), sees=np.int32(0), stride=np.uint32(events.max()), num_servers=graph.num_servers,
        most=looks_at(policy, graph),
    )  # fmt: skip
    run = Run(
        MODEL, queue, model.no_counts(replicas), tables, keys, work=int(events.max()) * replicas, add=_add,
        total=(np.zeros((model.LEVELS, replicas), np.int64), np.zeros(replicas, np.int64)),
        wider=functools.partial(_wider, graph.name, policy, load),
    )  # fmt: skip
    return _of_kind(run, policy, kind)


def interval_events(graph, load) -> int:
    """Events of a mean service time."""
    return max(1, round(graph.num_servers * (1 + load)))


def _add(total, counts, first, last):
    return tuple(np.add(a, b, dtype=np.int64) for a, b in zip(total, (counts.servers, counts.tasks), strict=True))


def _limit(unit):
    return min(int(np.iinfo(unit).max) - GUARD, LONGEST)


def _of_kind(run, policy, kind):
    """The run with queues of one of the dtypes."""
    unit = DTYPES[kind]
    sees = unit(min(policy.sees, np.iinfo(unit).max))
    return run._replace(
        state=jnp.asarray(run.state, unit),
        tables=dataclasses.replace(run.tables, sees=sees),
        fits=max(1, (2**31 - 1) // (_limit(unit) * run.tables.num_servers)),
    )


def _wider(name, policy, load, run, counts):
    """The run with wider queues where one of these has come too near to what they hold, or where there are no counts."""
    kind = DTYPES.index(run.state.dtype)
    longest = LONGEST if counts is None else int(counts.longest.max())
    if counts is not None and longest <= _limit(DTYPES[kind]):
        return None
    if kind + 1 == len(DTYPES):
        if counts is None:
            return None
        raise InputError(
            f"graph '{name}' under policy '{policy.name}' at load {load:g}: a queue of {longest} "
            f"tasks, and at most {LONGEST:,} are simulated; the system does not carry this load, or hardly: use a lower one"
        )
    return _of_kind(run, policy, kind + 1)


def replica_bytes(graph) -> int:
    """Bytes of device memory that one replica takes: its queues thrice, in the wider dtype, and its counts."""
    return 3 * 2 * model.rows_of(graph.num_servers) + 2 * 4 * (model.LEVELS + 2)


def bundles_of(replicas: int, least: int = 1) -> int:
    """Returns how many bundles a number of replicas makes; raises InputError unless it is a multiple of LANES."""
    whole_number("replicas", replicas, least, MOST_REPLICAS)
    if replicas % LANES:
        raise InputError(f"replicas is {replicas}; give a multiple of {LANES}, as many as share their addresses")
    return replicas // LANES
