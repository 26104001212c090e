"""Queues to start from: those of an occupancy, dealt to servers, or independent ones of the exact stationary law."""

from __future__ import annotations

import numpy as np

from lagjax.compatibility import model
from lagjax.compatibility.draws import LANES
from lagjax.compatibility.graph import Graph
from lagjax.compatibility.policies import Policy, looks_at
from lagjax.models import streams


def dealt(num_servers: int, bundles: np.ndarray, seed: int, occupancy: np.ndarray, together: bool) -> np.ndarray:
    """(P, B) queues with round(N q_i) servers of at least i tasks, the same ones in a bundle: the first, or random ones.

    The bundles are given by their numbers, of LANES replicas each.
    """
    reach = np.rint(num_servers * occupancy).astype(int)
    length = (np.arange(num_servers)[:, None] < reach).sum(axis=1)
    keys = streams.replica_keys(seed, streams.PLACEMENT, bundles)
    word = np.asarray(streams.words(keys, np.arange(num_servers, dtype=np.uint32)[:, None], 0)[0])
    if together:
        word = np.arange(num_servers)[:, None].repeat(len(bundles), axis=1)
    queue = _empty(num_servers, len(bundles) * LANES)
    queue[:num_servers] = length[np.argsort(word, axis=0, kind="stable")].repeat(LANES, axis=1)
    return queue


def law_is_known(policy: Policy, graph: Graph, load: float) -> bool:
    """Whether every task looks at one server and none is overloaded: then servers are independent M/M/1 queues."""
    return looks_at(policy, graph) == 1 and bool(graph.random_routing_load(load).max() < 1 - 1e-12)


def stationary(graph: Graph, load: float, bundles: np.ndarray, seed: int) -> np.ndarray:
    """(P, B) queues of the law of `law_is_known`: P(queue of server s >= i) = rho_s^i, rho_s its load under random routing.

    Each queue comes from a uniform word of 32 bits, so no queue is rarer than 2^-33. Half of a bundle's replicas have the
    complements of the other half's words, as they have of their coins: the mean of a bundle varies less.
    """
    rate, servers = graph.random_routing_load(load)[:, None], np.arange(graph.num_servers, dtype=np.uint32)[:, None]
    keys = streams.replica_keys(seed, streams.PLACEMENT, bundles)
    word = np.stack([w for slot in range(LANES // 4) for w in streams.words(keys, servers, 1 + slot)], axis=-1)
    word = np.concatenate([word, ~word], axis=-1).reshape(graph.num_servers, -1)  # (N, B)
    with np.errstate(divide="ignore"):  # a server without tasks has rho_s = 0
        length = np.log((word + 0.5) / 2**32) / np.log(rate)
    queue = _empty(graph.num_servers, len(bundles) * LANES)
    queue[: graph.num_servers] = np.floor(length)
    return queue


def _empty(num_servers, replicas):
    return np.zeros((model.rows_of(num_servers), replicas), np.int64)
