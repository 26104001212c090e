"""HiGHS through SciPy, on a program as it is stated: the second opinion, and the corners of a face."""

from __future__ import annotations

import math
import threading

import numpy as np
import scipy.sparse

from lagjax.errors import SolverError
from lagjax.lp.program import Program
from lagjax.lp.progress import Progress, Step

_OPTIONS = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
_POLL = 0.2  # seconds between two looks whether HiGHS is done; Ctrl-C works in between


def run_highs(cost, *, method: str = "highs-ds", progress: Progress | None = None, **program):
    """`scipy.optimize.linprog` in a thread of its own, since HiGHS does not hear an interrupt.

    Raises:
      SolverError: with HiGHS's status and message.
    """
    from scipy.optimize import linprog

    answers: list = []

    def work():
        try:
            answers.append(linprog(cost, method=method, options=_OPTIONS, **program))
        except Exception as error:  # handed to the caller's thread
            answers.append(error)

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    while thread.is_alive():
        thread.join(_POLL)
        if progress is not None:
            progress(Step("highs", 0, math.nan, _OPTIONS["dual_feasibility_tolerance"]))
    (answer,) = answers
    if isinstance(answer, Exception):
        raise answer
    if answer.status != 0:
        raise SolverError(f"HiGHS stopped with status {answer.status}: {answer.message}")
    return answer


def solve_highs(program: Program, method: str = "highs-ds", progress: Progress | None = None):
    """Runs HiGHS on the sparse program as it is stated.

    Returns:
      (w, idle, price, server_price), optimal up to round-off, and HiGHS's iterations.

    Raises:
      SolverError: with HiGHS's status and message.
    """
    shape = num_types, num_servers = program.scores.shape
    size, eye_servers = num_types * num_servers, scipy.sparse.eye_array(num_servers)
    one_per_type = scipy.sparse.kron(scipy.sparse.eye_array(num_types), np.ones((1, num_servers)))
    types = scipy.sparse.hstack([one_per_type, scipy.sparse.csr_array((num_types, num_servers))])
    servers = scipy.sparse.hstack([scipy.sparse.kron(program.occupancy[None], eye_servers), eye_servers])
    unit = program.rate.max()
    cost = np.concatenate([-(program.rate[:, None] * program.scores).ravel() / unit, np.zeros(num_servers)])
    demand, ones = np.full(num_types, program.demand), np.ones(num_servers)
    upper = np.full(size + num_servers, np.inf)
    if program.coupled:
        below = scipy.sparse.kron(np.ones((num_types, 1)), eye_servers)
        at_most = scipy.sparse.hstack([scipy.sparse.eye_array(size), -below]), np.zeros(size)
        exact = scipy.sparse.vstack([types, servers]), np.concatenate([demand, ones])
    else:
        at_most, exact = (types, demand), (servers, ones)
        upper[:size] = 1
    answer = run_highs(
        cost,
        method=method,
        progress=progress,
        A_ub=at_most[0].tocsr(),
        b_ub=at_most[1],
        A_eq=exact[0].tocsr(),
        b_eq=exact[1],
        bounds=np.stack([np.zeros_like(upper), upper], axis=1),
    )
    by_row = [answer.eqlin.marginals] if program.coupled else [answer.ineqlin.marginals, answer.eqlin.marginals]
    prices = -np.concatenate(by_row) * unit
    point = (
        answer.x[:size].reshape(shape),
        answer.x[size:],
        prices[:num_types] / program.rate,
        prices[num_types:],
    )
    return point, int(answer.nit)
