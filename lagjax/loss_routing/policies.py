"""Routing policies as data: a table of ranks by queue and jobs in it, or fixed shares.

Ties are part of the policy: among queues of equal rank one is chosen uniformly at random, in the exact solution and in the
simulation alike. A new policy is a new table: `from_index`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from lagjax.errors import InputError
from lagjax.loss_routing import indices
from lagjax.loss_routing.splitting import optimal_splitting
from lagjax.loss_routing.system import System

TIE = 1e-12  # indices closer than this, relative to their size, are equal
FULL = 2**31 - 1  # rank of a full queue


@dataclasses.dataclass(frozen=True, eq=False)
class RoutingPolicy:
    """One of `rank` and `share` is given.

    Attributes:
      name: as in results.
      rank: (K, N + 1) int32 with N the largest room; a job goes to a queue of the lowest rank[k, jobs there], uniformly
        among equal ones; FULL where the queue is full. A job is lost only when all queues are full.
      share: (K,) probabilities of a static splitting, under which a job that meets a full queue is lost.
    """

    name: str
    rank: np.ndarray | None
    share: np.ndarray | None = None


def from_index(index, system: System, *, name: str, logarithms: bool = False) -> RoutingPolicy:
    """Makes a policy that routes to the queue of the lowest index.

    Args:
      index: (K, N) indices of queue k when it holds x jobs, N the largest room; entries with x >= n_k are not read.
      system: for its room.
      logarithms: whether `index` holds logarithms, whose differences are then compared with TIE.

    Raises:
      InputError: another shape, or an entry that is no number where the queue has room.
    """
    index = np.asarray(index, np.float64)
    shape = (system.num_queues, int(system.room.max()))
    if index.shape != shape:
        raise InputError(
            f"policy '{name}' has an index of shape {index.shape}; give {shape}: queues, jobs in the queue"
        )
    has_room = np.arange(shape[1]) < system.room[:, None]
    values = index[has_room]
    if np.isnan(values).any():
        raise InputError(f"policy '{name}' has an index that is not a number where queues have room")
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    with np.errstate(invalid="ignore"):
        step = np.diff(ordered)
        size = 1.0 if logarithms else np.minimum(np.abs(ordered[1:]), np.abs(ordered[:-1]))
        apart = step > TIE * size
    place = np.empty(len(order), np.int32)
    place[order] = np.r_[0, np.cumsum(apart)]
    rank = np.full((shape[0], shape[1] + 1), FULL, np.int32)
    rank[:, :-1][has_room] = place
    return RoutingPolicy(name, rank)


def _split(system):
    return RoutingPolicy("obs", None, optimal_splitting(system).share)


POLICIES: dict[str, Callable[[System], RoutingPolicy]] = {
    "rb": lambda s: from_index(indices.log_restless_index(s), s, name="rb", logarithms=True),
    "pi": lambda s: from_index(indices.log_improvement_index(s), s, name="pi", logarithms=True),
    "obs": _split,
    "sq": lambda s: from_index(indices.jobs(s), s, name="sq"),
    "sed": lambda s: from_index(indices.expected_delay(s), s, name="sed"),
    "fas": lambda s: from_index(indices.service_time(s), s, name="fas"),
    "random": lambda s: from_index(indices.nothing(s), s, name="random"),
}


def build_routing(names: Sequence[str], system: System) -> list[RoutingPolicy]:
    """Builds the named policies for a system, in that order.

    Raises:
      InputError: an unknown name, or one given twice.
    """
    for i, name in enumerate(names):
        if name not in POLICIES:
            raise InputError(f"no policy '{name}'; choose from {', '.join(POLICIES)}")
        if name in names[:i]:
            raise InputError(f"policy '{name}' is named twice; name it once")
    return [POLICIES[name](system) for name in names]
