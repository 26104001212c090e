"""The mean field of JSQ(d) on the complete graph: trajectories, fixed point, sojourn time (Rutten and Mukherjee, 2023).

dq_i/dt = lambda (q_{i-1}^d - q_i^d) - (q_i - q_{i+1}), q_0 = 1, where q_i is the fraction of servers with at least i tasks.
"""

from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import poisson

from lagjax.compatibility.policies import ALL, Policy
from lagjax.errors import InputError, SolverError

TINY = 1e-13  # of an occupancy, where levels are cut
MAX_LEVELS = 20_000  # of a trajectory
TOLERANCE = 1e-9  # of a trajectory
MAX_STEPS = 1_000_000


def fixed_point(policy: Policy, load: float, levels: int) -> np.ndarray:
    """Returns (levels,) q_i* = lambda^((d^i - 1) / (d - 1)), lambda^i for d = 1; (lambda, 0, ...) if all are looked at.

    Raises:
      InputError: lambda is not in (0, 1).
    """
    check_load(load)
    d = policy.choices
    if d >= ALL:
        return np.where(np.arange(levels) == 0, load, 0.0)
    if d == 1:
        return np.exp(np.arange(1, levels + 1) * math.log(load))
    exponent, out = 0.0, []
    for _ in range(levels):
        exponent = min(exponent * d + 1, 1e300)  # 1 + d + ... + d^(i-1)
        out.append(math.exp(exponent * math.log(load)))
    return np.array(out)


def mean_queue_length(policy: Policy, load: float) -> float:
    """Returns the tasks per server at the fixed point, sum of q_i*, to 1e-10."""
    if policy.choices == 1:
        return load / (1 - load)
    return float(fixed_point(policy, load, levels_of(policy, load)).sum())


def mean_sojourn(queue_length, load: float):
    """Returns the mean time in the system by Little's law: lambda tasks per server come in a mean service time."""
    return queue_length / load


def levels_of(policy: Policy, load: float, start=None) -> int:
    """Returns how many levels hold all of the fixed point, and of a start, but TINY: a power of two."""
    check_load(load)
    deepest = 2 if policy.choices > 1 and policy.choices >= ALL else math.ceil(math.log(TINY) / math.log(load))
    if 1 < policy.choices < ALL:
        deepest = math.ceil(math.log(1 + deepest * (policy.choices - 1)) / math.log(policy.choices)) + 2
    wanted = max(8, deepest, 0 if start is None else 2 * len(start))
    return 1 << (wanted - 1).bit_length()  # few different sizes: programs are compiled for each


def reached(policy: Policy, load: float, start, horizon: float) -> int:
    """Returns a level above which the horizon leaves TINY at most: a server gets tasks at a rate of lambda d at most."""
    return len(start) + int(poisson.isf(TINY, load * policy.choices * horizon)) + 1


def trajectory(policy: Policy, load: float, times, start=None) -> np.ndarray:
    """Solves the ODE with diffrax (Tsit5, float64, tolerance 1e-9).

    Args:
      times: (T,) increasing, in mean service times, from 0 on.
      start: (L,) occupancies q_1, q_2, ... at time 0, between 0 and 1 and decreasing; empty by default.

    Returns:
      (T, levels) occupancies; `levels` as from `levels_of`.

    Raises:
      InputError: the policy looks at all servers, which has no such limit, the start is no occupancy, or more than MAX_LEVELS
        levels are needed.
      SolverError: the solver takes more than MAX_STEPS steps.
    """
    if policy.sees < 2 or policy.choices >= ALL:
        raise InputError(f"policy '{policy.name}' has no smooth mean field; trajectories are those of jsq-d and random")
    times = np.asarray(times, dtype=np.float64)
    if times[0] < 0 or (np.diff(times) <= 0).any():
        raise InputError("times of a trajectory increase, from 0 on")
    start = check_start([] if start is None else start)
    levels = levels_of(policy, load, start)
    if levels > MAX_LEVELS:
        levels = reached(policy, load, start, times[-1])
    if levels > MAX_LEVELS:
        raise InputError(
            f"a trajectory over {times[-1]:g} mean service times at load {load:g} needs {levels:,} levels of queues, at most "
            f"{MAX_LEVELS:,} are solved for; use a shorter horizon or a lower load"
        )
    first = np.zeros(levels)
    first[: len(start)] = start
    if times[-1] == 0:
        return first[None]
    with jax.enable_x64(True):
        path, ended = _solve(jnp.asarray(first), jnp.asarray(times), jnp.asarray(load), policy.choices)
    if not bool(ended):
        raise SolverError(
            f"the trajectory over {times[-1]:g} mean service times takes more than {MAX_STEPS:,} steps; use a shorter horizon"
        )
    return np.asarray(path)


@functools.partial(jax.jit, static_argnums=3)
def _solve(first, times, load, choices):
    import diffrax

    solved = diffrax.diffeqsolve(
        diffrax.ODETerm(lambda t, q, load: drift(q, load, choices)), diffrax.Tsit5(), t0=0.0, t1=times[-1], dt0=1e-3, y0=first,
        args=load, saveat=diffrax.SaveAt(ts=times), max_steps=MAX_STEPS,
        stepsize_controller=diffrax.PIDController(rtol=TOLERANCE, atol=TOLERANCE), throw=False,
    )  # fmt: skip
    return solved.ys, solved.result == diffrax.RESULTS.successful


def drift(occupancy, load, choices):
    """Returns dq/dt (L,) of occupancies (L,), levels beyond L being empty."""
    above = jnp.append(occupancy[1:], 0.0)
    power = jnp.concatenate([jnp.ones_like(occupancy[:1]), occupancy]) ** choices
    return load * (power[:-1] - power[1:]) - (occupancy - above)


def check_start(start) -> np.ndarray:
    """Returns the occupancies as an array; raises InputError unless they decrease from at most 1 to at least 0."""
    start = np.asarray(start, dtype=np.float64).reshape(-1)
    with_ends = np.r_[1.0, start, 0.0]
    if not np.all(np.diff(with_ends) <= 1e-12):
        raise InputError(
            "start is no occupancy: fractions of servers with at least 1, 2, ... tasks decrease from 1 to 0"
        )
    return start


def check_load(load: float) -> None:
    """Raises InputError unless lambda is in (0, 1)."""
    if not 0 < load < 1:
        raise InputError(f"load is {load:g}; give the arrival rate per server, above 0 and below 1")
