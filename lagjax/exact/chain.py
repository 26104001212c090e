"""The Markov chain of running tasks: P = (assignment) (service), the second factor a product over independent blocks.

Within a step the arrival sees the `before` state and takes free servers; then the tasks that ran before it, and only those,
may end or lose a step. If the new task could end as well, service would be one matrix T for all decisions, a Kronecker
product over groups of servers when k = 1. It is made so in two ways:

  - a task that counts steps starts with one step more than its duration;
  - for a geometric law, with S the shift that adds the task and p its chance to end, "end others, then add" is
    (S T - p T) / (1 - p) in the order "add, then all may end", by linearity. Entries of the first factor can be negative;
    the product is a stochastic matrix.

So neither P nor T is ever formed for a large chain, and T acts once per product, whatever the number of decisions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from lagjax.errors import InputError
from lagjax.exact.block import MAX_STATES, Block, add_task, build_block, too_large
from lagjax.exact.groups import Groups
from lagjax.exact.service import Service, service_of
from lagjax.instance import Instance

Factor: TypeAlias = sparse.csr_array | np.ndarray
_MERGE = 64  # blocks are multiplied out up to this many states: few large matrix products beat many small ones
_DENSE = 2_000_000  # entries up to which a factor is a dense matrix


class Chain(NamedTuple):
    """States of a system with its servers counted in groups; N states before and M after an assignment.

    Attributes:
      groups: server numbers of each group.
      teams: (T, G) servers per group that a task may take; each row sums to k.
      free: (N, G) free servers.
      service: laws and phases.
      blocks: parts of the state that do not share servers: a group each if k = 1, else one for all.
      local: (N, blocks) the blocks' `before` states.
      stay: (N,) the `after` state if nothing is assigned.
      factors: matrices whose Kronecker product T, (M, N), is one step of service.
    """

    groups: Groups
    teams: np.ndarray
    free: np.ndarray
    service: Service
    blocks: tuple[Block, ...]
    local: np.ndarray
    stay: np.ndarray
    factors: tuple[Factor, ...]

    @property
    def num_states(self) -> int:
        """N."""
        return len(self.free)


def build_chain(instance: Instance, groups: Groups) -> Chain:
    """Lists the states of an instance.

    Raises:
      InputError: there are too many, or an arrival at every step meets durations that are not geometric (the state may then
        never forget where it started).
    """
    service = service_of(instance)
    if service.longest and instance.total_rate > 1 - 1e-9:
        raise InputError(
            f"instance '{instance.name}' has an arrival at every step and durations of one step, or not geometric, so its "
            "chain may have several stationary laws; lower the load"
        )
    sizes = [len(members) for members in groups]
    k = instance.servers_per_task
    if k == 1:
        count = math.prod(math.comb(n + service.num_phases, n) for n in sizes)
        if count > MAX_STATES:
            raise InputError(too_large(f"{_number(count)} states"))
        blocks = tuple(build_block([n], [[1]], service) for n in sizes)
    else:
        kinds = math.comb(len(sizes) + k - 1, k) * service.num_phases  # each of them running alone is a state
        if kinds > MAX_STATES // 10:
            raise InputError(too_large(f"more than {_number(kinds)} states"))
        blocks = (build_block(sizes, list_teams(sizes, k), service),)
    shape = [len(block.before) for block in blocks]
    if math.prod(shape) > MAX_STATES:
        raise InputError(too_large(f"{_number(math.prod(shape))} states"))
    local = np.stack(np.unravel_index(np.arange(math.prod(shape)), shape), axis=1)
    free = np.hstack([block.free[local[:, b]] for b, block in enumerate(blocks)])
    after = [block.before[local[:, b]] for b, block in enumerate(blocks)]
    stay = np.ravel_multi_index(after, [len(block.jobs) for block in blocks])
    factors = _factors([block.ends for block in blocks])
    return Chain(groups, list_teams(sizes, k), free, service, blocks, local, stay, factors)


def list_teams(sizes: Sequence[int], k: int) -> np.ndarray:
    """Returns all (T, G) ways to take k servers from groups of these sizes; for k = 1 group by group."""
    chosen = itertools.combinations_with_replacement(range(len(sizes)), k)
    teams = np.array([np.bincount(c, minlength=len(sizes)) for c in chosen])
    return teams[np.all(teams <= sizes, axis=1)]


def serve(chain: Chain, value: np.ndarray) -> np.ndarray:
    """Returns T `value`: (M,) or (M, n), the mean of (N,) or (N, n) values over one step of service."""
    return _apply(chain.factors, value)


def serve_law(chain: Chain, law: np.ndarray) -> np.ndarray:
    """Returns the (N,) law one step of service after the (M,) law."""
    return _apply([factor.T for factor in chain.factors], law)


def starts(chain: Chain, law: int, team: int, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where a new task of a service law and a team leads from `states` (n,), in which that team is free.

    Returns:
      (n, m) `after` states and (m,) weights, which sum to 1 and may be negative (see the top of this file).
    """
    b = int(np.flatnonzero(chain.teams[team])[0]) if len(chain.blocks) > 1 else 0
    block, local = chain.blocks[b], chain.local[states, b]
    stride = math.prod(len(other.jobs) for other in chain.blocks[b + 1 :])
    own = team if len(chain.blocks) == 1 else 0

    def to(phase: int) -> np.ndarray:
        return chain.stay[states] + stride * (add_task(block, local, own, phase) - block.before[local])

    classes = len(chain.service.finish)
    if law < classes:
        p = chain.service.finish[law]
        return np.stack([to(law), chain.stay[states]], axis=1), np.array([1, -p]) / (1 - p)
    pmf = chain.service.steps[law - classes]
    lasts = np.flatnonzero(pmf)
    return np.stack([to(classes + int(i) + 1) for i in lasts], axis=1), pmf[lasts]


def assign_matrix(chain: Chain, taken: Sequence) -> sparse.csr_array:
    """Returns the first factor of P, (N, M).

    Args:
      taken: per type, (N, T) the probability per step that a task of that type arrives and that team takes it.
    """
    entries = [[np.arange(chain.num_states), chain.stay, np.ones(chain.num_states)]]
    for law in np.unique(chain.service.law):
        flow = sparse.csc_array(
            sum(sparse.csc_array(taken[v]) for v, own in enumerate(chain.service.law) if own == law)
        )
        for team in range(len(chain.teams)):
            part = slice(flow.indptr[team], flow.indptr[team + 1])
            states, rate = flow.indices[part], flow.data[part]
            if len(states) == 0:
                continue
            to, weight = starts(chain, int(law), team, states)
            entries.append([np.repeat(states, len(weight)), to.ravel(), np.outer(rate, weight).ravel()])
            entries.append([states, chain.stay[states], -rate])
    rows, columns, values = (np.concatenate(part) for part in zip(*entries, strict=True))
    shape = (chain.num_states, math.prod(len(block.jobs) for block in chain.blocks))
    return sparse.csr_array((values, (rows, columns)), shape=shape)


def _factors(parts: Sequence[sparse.csr_array]) -> tuple[Factor, ...]:
    """Multiplies neighbours out as long as they stay small, and makes small factors dense."""
    merged = [parts[0]]
    for part in parts[1:]:
        if merged[-1].shape[0] * part.shape[0] <= _MERGE:
            merged[-1] = sparse.csr_array(sparse.kron(merged[-1], part))
        else:
            merged.append(part)
    return tuple(part.toarray() if math.prod(part.shape) <= _DENSE else part for part in merged)


def _apply(factors: Sequence[Factor], value: np.ndarray) -> np.ndarray:
    """The Kronecker product of `factors` times `value` (states,) or (states, n): each pass turns the axes by one."""
    columns = value.shape[1:]
    out = value
    for factor in factors:
        out = out.reshape(factor.shape[1], -1)
        out = out.T @ factor.T if isinstance(factor, np.ndarray) else (factor @ out).T
    if not columns:
        return out.ravel()
    return out.reshape(columns[0], -1).T


def _number(count: int) -> str:
    return f"{count:,}" if count < 10**12 else f"about 10^{len(str(count)) - 1}"
