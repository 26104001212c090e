"""The joint chain of all queues, and the one factorisation that gives both its stationary law and its relative values.

State s = (x_1, ..., x_K), numbered with the last queue fastest. With one likely state, `home`, left out, minus the generator of a
chain is a nonsingular M-matrix G. G' p = (rates out of home) gives the law up to a factor, and G v = cost, G w = 1 the mean cost
and time until the chain is home. All these are sums of positive numbers, so that rare states are solved for as well as common
ones; the loss is the cost of a round trip over its time, and the relative values are v - loss w.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from lagjax.errors import InputError
from lagjax.loss_routing.system import System

MAX_STATES = 200_000
RESIDUAL = 1e-10  # of the balance equations, relative to the largest flow; 1e-14 is usual
_RARE_HOME = 1e-3  # a home rarer than this, relative to the commonest state, is left
_LONG = 1e-9  # rate, relative to the busiest state's, at which the "long time" of _common_state ends


class Chain(NamedTuple):
    """States and moves of a system; S states.

    Attributes:
      jobs: (S, K) jobs in each queue.
      up: (S, K) the state with one more job in queue k; S where it is full.
      served: the generator's part by services, (S, S), without its diagonal.
      out: (S,) rate of services.
    """

    jobs: np.ndarray
    up: np.ndarray
    served: sparse.csr_array
    out: np.ndarray

    @property
    def num_states(self) -> int:
        """S."""
        return len(self.jobs)


class Solution(NamedTuple):
    """Stationary values of a chain of rates and costs.

    Attributes:
      law: (S,) stationary probabilities.
      cost: long-run mean cost per unit time.
      until: (S,) mean cost until the chain is home, 0 at home.
      time: (S,) mean time until then; until - cost * time are the relative values.
      residual: largest |sum of flows in - flow out| of a state, relative to the largest flow.
    """

    law: np.ndarray
    cost: float
    until: np.ndarray
    time: np.ndarray
    residual: float


def build_chain(system: System) -> Chain:
    """Lists the states.

    Raises:
      InputError: more than MAX_STATES.
    """
    if system.states > MAX_STATES:
        raise InputError(
            f"the queues have {system.states:,} joint states; exact solutions stop at {MAX_STATES:,}: use fewer queues or "
            "less room, or simulate"
        )
    shape = system.room + 1
    jobs = np.stack(np.unravel_index(np.arange(system.states), shape), axis=1)
    stride = np.cumprod(np.r_[1, shape[:0:-1]])[::-1]
    here = np.arange(system.states)[:, None]
    up = np.where(jobs < system.room, here + stride, system.states)
    rate = np.minimum(jobs, system.servers) * system.service_rate
    busy = rate > 0
    places = ((here + 0 * stride)[busy], (here - stride)[busy])
    served = sparse.csr_array((rate[busy], places), shape=(system.states, system.states))
    return Chain(jobs, up, served, rate.sum(axis=1))


def route_matrix(chain: Chain, share: np.ndarray) -> sparse.csr_array:
    """(S, S) moves of one arrival that goes to queue k with probability share (S, K); lost ones stay away."""
    goes = (share > 0) & (chain.up < chain.num_states)
    rows = np.nonzero(goes)[0]
    return sparse.csr_array((share[goes], (rows, chain.up[goes])), shape=(chain.num_states,) * 2)


def solve(chain: Chain, moves: sparse.csr_array, cost: np.ndarray, home: int) -> Solution:
    """Solves the chain with the (S, S) rates `moves` (no diagonal) and the cost (S,) per unit time in each state.

    Args:
      home: a state that is likely; a common one is looked for where it turns out not to be, for a rare home loses digits.

    Raises:
      InputError: the balance equations are missed by more than RESIDUAL.
    """
    found = _solve(chain, moves, cost, home)
    if found.law[home] < _RARE_HOME * found.law.max() or not found.residual <= RESIDUAL:
        found = _solve(chain, moves, cost, _common_state(chain, moves, home))
    if not found.residual <= RESIDUAL:
        raise InputError(
            f"the chain of {chain.num_states:,} states is too ill-conditioned: residual {found.residual:.1g} above {RESIDUAL:g}; "
            "simulate, or use rates that differ less"
        )
    return found


def _solve(chain, moves, cost, home):
    out = np.asarray(moves.sum(axis=1)).ravel()
    rest = np.delete(np.arange(chain.num_states), home)
    try:
        factors = _factors(sparse.diags_array(out[rest]) - moves[rest][:, rest])
    except RuntimeError:  # SuperLU: exactly singular, as rounded
        nothing = np.full(chain.num_states, np.nan)
        return Solution(nothing, np.nan, nothing, nothing, np.inf)
    law = np.ones(chain.num_states)
    law[rest] = np.maximum(factors.solve(moves[[home]][:, rest].toarray().ravel(), trans="T"), 0)
    law /= law.sum()
    flow = law * out
    residual = float(np.abs(moves.T @ law - flow).max() / flow.max())
    until, time = np.zeros(chain.num_states), np.zeros(chain.num_states)
    until[rest], time[rest] = factors.solve(np.stack([cost[rest], np.ones(len(rest))], axis=1)).T
    return Solution(law, float(law @ cost), until, time, residual)


def _common_state(chain, moves, start):
    """Where the chain is most likely to be a long random time after it was at `start`: equations that are never singular."""
    out = np.asarray(moves.sum(axis=1)).ravel()
    try:
        factors = _factors(sparse.diags_array(out + _LONG * out.max()) - moves)
    except RuntimeError:  # only by rounding
        return start
    return int(np.argmax(factors.solve(np.eye(1, chain.num_states, start).ravel(), trans="T")))


def _factors(matrix):
    # Rows sum to 0 or more with a positive diagonal: no pivoting is needed, and none keeps the factors sparse.
    return splu(
        sparse.csc_array(matrix), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True}
    )
