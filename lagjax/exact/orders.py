"""The best fixed priority orders of a small system, by evaluating all of them."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from lagjax.errors import InputError
from lagjax.exact.chain import Chain, assign_matrix, build_chain, serve
from lagjax.exact.choice import team_probabilities
from lagjax.exact.groups import Groups, equal_servers
from lagjax.instance import Instance, as_number
from lagjax.policies.table import Policy, make_policy

MAX_ORDERS = 1_000_000
_MAX_STATES = 500  # the chains are solved directly, many at once
_SAME = 1e-12  # rewards this close, relatively, are equal
_BATCH_ENTRIES = 2_000_000


class BestOrder(NamedTuple):
    """The best of all fixed orders that were tried.

    Attributes:
      policy: a strict order per type.
      reward: per step.
      blocks: servers that were kept together, in the partition of the best order.
      candidates: orders evaluated, over all partitions.
    """

    policy: Policy
    reward: float
    blocks: Groups
    candidates: int


def best_fixed_order(instance: Instance, parts: int = 2) -> BestOrder:
    """Evaluates every fixed order in which each set of identical servers is cut into at most `parts` blocks.

    A fixed order gives each type a strict order of all servers. Identical servers that stand side by side for every type
    act as one block, so orders are enumerated over blocks: all partitions of each set of equal servers into `parts` blocks
    by size, and all orders of the blocks for each type, up to renaming equal blocks. With `parts` at least the size of the
    largest set these are all fixed orders.

    Raises:
      InputError: more than MAX_ORDERS orders, or chains of more than 500 states.
    """
    if as_number("parts", parts) not in range(1, instance.num_servers + 1):
        raise InputError(f"parts is {parts!r}; give a whole number from 1 to R = {instance.num_servers}")
    partitions = list(_partitions(equal_servers(instance.scores), int(parts)))
    candidates = count_orders(instance, parts)
    if candidates > MAX_ORDERS:
        shown = f"{candidates:,}" if candidates < 10**12 else f"about 10^{len(str(candidates)) - 1}"
        raise InputError(
            f"there are {shown} orders to try, at most {MAX_ORDERS:,} are; use fewer parts, servers or task types"
        )
    found = [(*_best_of(instance, blocks), blocks) for blocks in partitions]
    highest = max(one[0] for one in found)
    reward, ranks, _, blocks = next(one for one in found if one[0] >= highest * (1 - _SAME))
    tier = np.empty(instance.scores.shape)
    for v in range(instance.num_types):
        tier[v, [r for b in np.argsort(ranks[v]) for r in blocks[b]]] = np.arange(instance.num_servers)
    return BestOrder(make_policy("best-order", tier), reward, blocks, sum(one[2] for one in found))


def count_orders(instance: Instance, parts: int = 2) -> int:
    """How many orders `best_fixed_order` would evaluate."""
    return sum(_count(instance, blocks) for blocks in _partitions(equal_servers(instance.scores), int(parts)))


def _partitions(groups: Groups, parts: int) -> Iterator[Groups]:
    """All ways to cut every group into `parts` blocks, or single servers where it is smaller; by size only."""
    for sizes in itertools.product(*(_cuts(len(members), min(parts, len(members))) for members in groups)):
        blocks: list[tuple[int, ...]] = []
        for members, cut in zip(groups, sizes, strict=True):
            ends = list(itertools.accumulate(cut))
            blocks += [members[end - size : end] for size, end in zip(cut, ends, strict=True)]
        yield tuple(blocks)


def _cuts(total: int, parts: int, least: int = 1) -> list[tuple[int, ...]]:
    if parts == 1:
        return [(total,)]
    return [
        (first, *rest) for first in range(least, total // parts + 1) for rest in _cuts(total - first, parts - 1, first)
    ]


def _interchangeable(instance: Instance, blocks: Groups) -> list[list[int]]:
    """Lists of blocks of equal servers and equal size: renaming them changes nothing."""
    alike: dict = {}
    for b, members in enumerate(blocks):
        alike.setdefault((tuple(instance.scores[:, members[0]]), len(members)), []).append(b)
    return list(alike.values())


def _count(instance: Instance, blocks: Groups) -> int:
    renamed = math.prod(math.factorial(len(alike)) for alike in _interchangeable(instance, blocks))
    return math.factorial(len(blocks)) ** instance.num_types // renamed


def _best_of(instance: Instance, blocks: Groups) -> tuple[float, np.ndarray, int]:
    """Reward and (V, blocks) ranks of the best orders of these blocks, and how many were evaluated."""
    chain = build_chain(instance, blocks)
    count = chain.num_states
    if count > _MAX_STATES:
        raise InputError(f"orders are compared on chains of at most {_MAX_STATES} states; this one has {count:,}")
    rate, law = np.asarray(instance.arrival_rate), chain.service.law
    idle, rows = move_rows(instance, chain)
    scores = instance.scores[:, [members[0] for members in blocks]]
    rewards = np.hstack([scores @ chain.teams.T, np.zeros((len(scores), 1))])
    ranks = np.array(list(itertools.permutations(range(len(blocks)))))
    team = np.stack([_team(chain, rank) for rank in ranks])
    # Renaming equal blocks for all types at once changes nothing, so the first type may take them in a fixed order.
    fixed = np.all(
        [np.all(np.diff(ranks[:, alike]) > 0, axis=1) for alike in _interchangeable(instance, blocks)], axis=0
    )
    choices = itertools.product(np.flatnonzero(fixed).tolist(), *[range(len(ranks))] * (instance.num_types - 1))
    states = np.arange(count)
    best, found, tried = 0.0, ranks[[0] * instance.num_types], 0
    while batch := list(itertools.islice(choices, max(1, _BATCH_ENTRIES // count**2))):
        tried += len(batch)
        chosen = team[np.array(batch, dtype=np.int64)]  # (batch, V, N)
        z = np.eye(count) + 1 / count - (1 - rate.sum()) * idle
        z = z - sum(rate[v] * rows[law[v], chosen[:, v], states] for v in range(len(rate)))
        reward = sum(rate[v] * rewards[v, chosen[:, v]] for v in range(len(rate)))
        average = np.linalg.solve(z, reward[..., None])[..., 0].mean(axis=1)  # see `solve_chain`
        top = int(np.argmax(average >= average.max() * (1 - _SAME)))  # the first of equals, on every machine
        if average[top] > best * (1 + _SAME):
            best, found = float(average[top]), ranks[np.array(batch[top], dtype=np.int64)]
    return best, found, tried


def move_rows(instance: Instance, chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Rows of P when nothing is assigned, (N, N), and per law when a team is, (laws, T + 1, N, N), lost tasks last."""
    service = serve(chain, np.eye(chain.num_states))
    shape = (chain.num_states, len(chain.teams))
    idle = service[chain.stay]
    rows = np.broadcast_to(idle, (chain.service.law.max() + 1, shape[1] + 1, *idle.shape)).copy()
    for law in range(len(rows)):
        v = int(np.flatnonzero(chain.service.law == law)[0])
        for t, team in enumerate(chain.teams):
            taken = [np.zeros(shape) for _ in range(instance.num_types)]
            taken[v][:, t] = np.all(chain.free >= team, axis=1)
            rows[law, t] = assign_matrix(chain, taken) @ service
    return idle, rows


def _team(chain: Chain, rank: np.ndarray) -> np.ndarray:
    """(N,) the team that a strict order takes in every state; T where the task is lost."""
    taken = team_probabilities(chain.free, rank, np.ones(len(rank)), chain.teams).toarray()
    return np.where(taken.any(axis=1), taken.argmax(axis=1), len(chain.teams))
