"""All ways in which tasks can run side by side on some groups of servers, and how those tasks end in one step."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse

from lagjax.errors import InputError
from lagjax.exact.service import Service

MAX_STATES = 2_000_000
MAX_MOVES = 30_000_000  # entries of a transition matrix
_MAX_CELLS = 200_000_000  # entries of the table of counts


class Block(NamedTuple):
    """Local states: how many tasks run of each kind, a kind being a team and a phase (see `Service`).

    There are two lists of them. The `before` states are seen by an arrival; in the `after` states it has been assigned, and
    where it counts steps it has one more than its duration, since the same step will take one off.

    Attributes:
      teams: (T, G) servers per group that a task may take here.
      jobs: (after, kinds) tasks by kind, kind = phase * T + team.
      code: (after,) uint64, the sum over tasks of the code of their kind, different for all states.
      kind_code: (kinds,) uint64.
      free: (before, G) free servers per group.
      before: (before,) places of the `before` states among the `after` states.
      ends: (after, before) sparse, probability of each `before` state at the next step.
    """

    teams: np.ndarray
    jobs: np.ndarray
    code: np.ndarray
    kind_code: np.ndarray
    free: np.ndarray
    before: np.ndarray
    ends: sparse.csr_array


def build_block(sizes, teams, service: Service) -> Block:
    """Lists the states of groups of `sizes` (G,) servers on which tasks take `teams` (T, G).

    Raises:
      InputError: there are too many.
    """
    sizes, teams = np.asarray(sizes), np.asarray(teams)
    # A task that has just got the longest duration counts one step more than any other; there is one at most.
    phases = service.num_phases + (service.longest > 0)
    jobs = _multisets(sizes, np.tile(teams, (phases, 1)), len(teams) if service.longest else 0)
    newest = jobs[:, service.num_phases * len(teams) :].sum(axis=1)
    jobs, newest = jobs[newest <= 1], newest[newest <= 1]
    kind_code = np.random.Generator(np.random.PCG64(0)).integers(1, 2**64, jobs.shape[1], dtype=np.uint64)
    code = jobs.astype(np.uint64) @ kind_code
    if len(np.unique(code)) < len(code):
        raise AssertionError("two states have one code; draw the codes of kinds anew")
    before = np.flatnonzero(newest == 0)
    free = sizes - jobs[before] @ np.tile(teams, (phases, 1))
    block = Block(teams, jobs, code, kind_code, free, before, sparse.csr_array((len(jobs), len(before))))
    return block._replace(ends=_step(block, service))


def add_task(block: Block, local: np.ndarray, team: int, phase: int) -> np.ndarray:
    """Returns the `after` states in which one more task of that team and phase runs than in `before` states `local`."""
    return find(block.code, block.code[block.before[local]] + block.kind_code[phase * len(block.teams) + team])


def find(code: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Returns the places of `wanted` codes, all of which exist."""
    order = np.argsort(code)
    return order[np.searchsorted(code, wanted, sorter=order)]


def _multisets(sizes, need, single):
    """All counts (states, kinds) with sum counts * need <= sizes; of the last `single` kinds at most one task each."""
    rest, columns = sizes[None, :], np.zeros((1, 0), dtype=np.uint16)
    for kind, team in enumerate(need):
        used = team > 0
        most = (rest[:, used] // team[used]).min(axis=1)
        if kind >= len(need) - single:
            most = np.minimum(most, 1)
        total = int((most + 1).sum())
        if total > 2 * MAX_STATES:  # `after` states are more than `before` states
            raise InputError(too_large(f"more than {total // 2:,} states"))
        if total * len(need) > _MAX_CELLS:
            raise InputError(too_large(f"more than {total:,} states with {len(need):,} kinds of running tasks"))
        row = np.repeat(np.arange(len(rest)), most + 1)
        count = np.arange(total) - np.repeat(np.cumsum(most + 1) - (most + 1), most + 1)
        rest = rest[row] - count[:, None] * team
        columns = np.column_stack([columns[row], count.astype(np.uint16)])
    return columns


def too_large(what: str) -> str:
    """The one sentence with which all exact methods refuse."""
    return (
        f"the system has {what}; exact solutions stop at {MAX_STATES:,} states and {MAX_MOVES:,} moves between them: use fewer "
        "unequal servers, geometric or shorter durations, or simulate (lagjax sweep)"
    )


def _step(block, service):
    """Counts go down, then geometric tasks end one kind after another; the matrices of the kinds commute."""
    num_teams, classes = len(block.teams), len(service.finish)
    code_before = block.code[block.before]
    down = block.kind_code.copy()  # the code of each kind a step later
    if service.longest:
        counting = classes * num_teams
        down[counting : counting + num_teams] = 0
        down[counting + num_teams :] = block.kind_code[counting:-num_teams]
    rows = np.arange(len(block.code))
    later = find(code_before, block.jobs.astype(np.uint64) @ down)
    ends = sparse.csr_array((np.ones(len(rows)), (rows, later)), shape=(len(rows), len(code_before)))
    for kind in range(classes * num_teams):
        ends = ends @ _thinning(block, code_before, kind, service.finish[kind // num_teams])
        if ends.nnz > MAX_MOVES:
            raise InputError(too_large(f"more than {MAX_MOVES:,} moves"))
    return sparse.csr_array(ends)


def _thinning(block, code, kind, finish):
    from scipy.stats import binom

    running = block.jobs[block.before, kind].astype(np.int64)
    row = np.repeat(np.arange(len(code)), running + 1)
    ended = np.arange(len(row)) - np.repeat(np.cumsum(running + 1) - (running + 1), running + 1)
    to = find(code, code[row] - ended.astype(np.uint64) * block.kind_code[kind])
    probability = binom.pmf(ended, running[row], finish)
    return sparse.csr_array((probability, (row, to)), shape=(len(code), len(code)))
