"""Every model of the project on a small system, for the tests of the contract. A new model is one entry here."""

from typing import Any, NamedTuple

import numpy as np
from systems import every_kind, system

from lagjax.compatibility import policies as compatible
from lagjax.compatibility import queues
from lagjax.compatibility import run as compatibility
from lagjax.compatibility.graph import graph_of
from lagjax.engine import run as original
from lagjax.engine import scaled_run as scaled
from lagjax.gallery import gallery
from lagjax.loss_routing import build_routing
from lagjax.loss_routing import make_system as make_queues
from lagjax.loss_routing import simulate as routing
from lagjax.partial_information import POLICIES, simulate_dispatching
from lagjax.partial_information import make_system as make_servers
from lagjax.partial_information import simulate as dispatching
from lagjax.partial_information.policies import build_policies
from lagjax.policies import build_policy


class Small(NamedTuple):
    """A model on a small system.

    Attributes:
      set_up: set_up(replicas, seed) -> Run.
      simulate: simulate(**how) -> counts, or a tuple of them, whose arrays have the replicas last; `how` are replicas,
        first_replica, seed and the arguments that change no result.
      unit: replicas come in multiples of it.
      chunks: three lengths of chunks to try.
      doubles: whether 64-bit floats are meant to be in the program.
    """

    set_up: Any
    simulate: Any
    unit: int = 1
    chunks: tuple[int, int, int] = (7, 3, 1)
    doubles: bool = False


LOSS = system(3, 6, 2, 9, seed=5)
KINDS = every_kind(LOSS)
SCALED = gallery("priority", 0.7)
QUEUES = make_queues([1, 2, 1], [3, 4, 2], [1.0, 0.8, 0.5], 2.5)
ROUTING = build_routing(["rb", "sq", "obs", "random"], QUEUES)
SERVERS = make_servers([0.3, 0.5, 0.2], 3, model="finite", discount=0.95, arrivals=1.5, exogenous=[0.1, 0.0, 0.2])
DISPATCHING = build_policies(POLICIES, SERVERS)
GRAPH = graph_of("small", [np.arange(6), np.arange(2), np.arange(2, 5)], 6)
JSQ = compatible.jsq(2)


def scaled_of(name):
    policy = build_policy(name, SCALED)
    return Small(
        lambda replicas, seed=0: scaled.set_up(SCALED, policy, 5, 3, np.arange(replicas), seed),
        lambda **how: scaled.simulate_scaled(SCALED, policy, copies=5, dispatchers=3, steps=61, warmup=13, **how),
        chunks=(17, 5, 1),
        doubles=True,
    )


SMALL = {
    "original": Small(
        lambda replicas, seed=0: original.set_up(LOSS, KINDS, 40, 7, replicas, seed=seed)[0],
        lambda **how: original.simulate(LOSS, KINDS, arrivals=500, warmup=77, **{"block": 32, **how}),
        chunks=(5, 2, 1),
    ),
    "scaled, capped": scaled_of("lag"),
    "scaled, race": scaled_of("random"),
    "routing": Small(
        lambda replicas, seed=0: routing.set_up(QUEUES, ROUTING, np.arange(replicas), seed),
        lambda **how: routing.simulate_routing(QUEUES, ROUTING, arrivals=700, warmup=90, **how),
    ),
    "dispatching": Small(
        lambda replicas, seed=0: dispatching.set_up(SERVERS, DISPATCHING, [5], "full", np.arange(replicas), seed),
        lambda **how: simulate_dispatching(SERVERS, DISPATCHING, horizons=(10, 333), **how),
    ),
    "compatibility": Small(
        lambda replicas, seed=0: queues.set_up(GRAPH, JSQ, 0.7, replicas, seed, start=(0.6, 0.3)),
        lambda **how: compatibility.simulate(GRAPH, JSQ, 0.7, time=21, warmup=4, start=(0.6, 0.3), **how),
        unit=queues.LANES,
    ),
}
