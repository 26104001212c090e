"""Fixed points of G, and their derivatives.

Every policy of tiers and weights has exactly one fixed point. A server's free fraction phi_r determines its row (what it takes
per step, it also finishes), so x = G(x) says phi_r + sum_v E[D_v] u_vr(phi) = 1. More phi_r makes server r take more, by a
share of at most 1, and the others less, by no more than that in all: the Jacobian N of sum_v E[D_v] u_v has a diagonal in
[0, a], a = sum_v lambda_v E[D_v], no positive entry off it, and column sums of 0 or more. So the damped map
phi + (1 - phi - sum_v E[D_v] u_v(phi)) / (1 + a) has a Jacobian without negative entries whose columns sum to 1 - 1 / (1 + a)
at most: it contracts the l1 norm, and its only fixed point is that of G. Whether G^t leads there is another question.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.durations import survival
from lagjax.errors import InputError, SolverError
from lagjax.fluid.checks import checked_state, system_shape
from lagjax.fluid.map import FluidSystem, assignment_rates, fluid_map
from lagjax.instance import Instance
from lagjax.lp import OccSolution

_DAMPED_STEPS = 2000  # most steps per server: a is at most R / k, so far beyond what the contraction needs in float64


class FixedPoint(NamedTuple):
    """A fixed point of G.

    Attributes:
      state: (R, d+1) x*.
      reward: () reward per step and copy.
      residual: () max |G(x*) - x*|.
    """

    state: jax.Array
    reward: jax.Array
    residual: jax.Array


def lp_fixed_point(instance: Instance, solution: OccSolution) -> np.ndarray:
    """(R, d+1) x_hat of a solution of OCC-LP(0), float64: phi*_r free, sum_v P(D_v >= i) u*_vr with i steps left (Lemma 4.4).

    Raises:
      InputError: the solution is of another shape, or of OCC-LP(B) with B > 0, which is no fixed point.
    """
    if solution.index.shape != instance.scores.shape:
        raise InputError(
            f"solution has shape {solution.index.shape}; instance '{instance.name}' has {instance.scores.shape}"
        )
    if solution.blocking != 0:
        raise InputError(f"solution is of OCC-LP({solution.blocking:g}); a fixed point needs OCC-LP(0)")
    busy = solution.assignment_rate.T @ survival(instance.service_pmf)
    return np.concatenate([solution.free_fraction[:, None], busy], axis=1)


def fixed_point(system: FluidSystem, start=None, solver=None) -> FixedPoint:
    """Solves x = G(x), with derivatives by the implicit function theorem with respect to everything in `system`.

    Args:
      system: from `fluid_system`. The computation is in JAX's default precision, float32; float64 needs its 64-bit mode,
        `with jax.enable_x64(True):` around the call (nothing here changes the global switch).
      start: (R, d+1) state to start from, whose free fractions are used; by default all servers free. Of any float type.
      solver: an optimistix solver for `optimistix.fixed_point` of the damped map above; by default
        `optimistix.FixedPointIteration`, which the contraction makes converge from any start. `optimistix.Newton` takes fewer,
        dearer steps and has no such guarantee, since the map has kinks.

    Raises:
      InputError: start is no state of the system.
      SolverError: the solver gave up, also from the state with all servers free. Under `jax.jit`, optimistix's own error.
    """
    num_servers = system.scores.shape[1]
    dtype = jnp.result_type(float)  # also whatever the start has: optimistix's solvers keep their errors in it
    if start is not None and not isinstance(start, jax.core.Tracer):
        start = checked_state("start", start, system_shape(system))
    free = jnp.ones(num_servers, dtype)
    starts = [free] if start is None else [jnp.asarray(start, dtype)[:, 0], free]
    tolerance = 8 * float(jnp.finfo(dtype).eps)
    if solver is None:
        import optimistix

        solver = optimistix.FixedPointIteration(rtol=tolerance, atol=tolerance)
    phi = _solved(system, solver, starts)
    state = stationary_state(system, phi)
    rates = assignment_rates(system, state)
    reward = jnp.sum(jnp.asarray(system.scores, dtype) * rates)
    return FixedPoint(state, reward, jnp.max(jnp.abs(fluid_map(system, state) - state)))


def _solved(system, solver, starts):
    """The free fractions, from the first start that the solver ends well from."""
    import optimistix

    steps = _DAMPED_STEPS * len(starts[0])
    for start in starts:
        try:
            return optimistix.fixed_point(
                lambda phi, system: _damped(system, phi), solver, start, system, max_steps=steps
            ).value
        except RuntimeError:  # Equinox's, over several lines
            continue
    name = type(solver).__name__
    raise SolverError(f"the fixed point of {len(starts[0])} servers was not found in {steps:,} steps of {name}")


def _damped(system, phi):
    at_least = _survival(system, phi.dtype)
    load = jnp.asarray(system.arrival_rate, phi.dtype) @ jnp.sum(at_least, axis=1)
    return phi + (1 - phi - jnp.sum(at_least, axis=1) @ assignment_rates(system, phi[:, None])) / (1 + load)


def stationary_state(system: FluidSystem, phi) -> jax.Array:
    """(R, d+1) the state in which servers are free at phi (R,) and what they take is in balance with what they finish.

    Its rows sum to 1 exactly where phi is that of a fixed point.
    """
    phi = jnp.asarray(phi)
    rates = assignment_rates(system, phi[:, None])
    return jnp.concatenate([phi[:, None], rates.T @ _survival(system, phi.dtype)], axis=1)


def _survival(system, dtype):
    """(V, d) P(D_v >= i), i = 1..d."""
    law = jnp.asarray(system.law, dtype)[np.asarray(system.law_of_type)]
    return jax.lax.cumsum(law, axis=1, reverse=True)
