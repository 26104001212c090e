"""The optimal Bernoulli splitting: each job to queue k with a fixed probability, whatever the queues hold.

Jobs then arrive at queue k as a Poisson stream of rate lambda_k = mu_k r_k of its own, and the loss is the sum of
lambda_k B_{m_k,n_k}(r_k): convex, so at the optimum the marginal losses phi = d(r B(r))/dr are equal. They depend on r, m and n
alone: queues of equal m and n get equal offered loads, and are solved for once (Nino-Mora, EJOR 2012, section 4).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import elementwise

from lagjax.loss_routing.erlang import blocking, log_path, padded_levels, queue
from lagjax.loss_routing.system import System

_TOLERANCE = 2e-15  # width at which a bracket is a root, relative to what it holds


class Splitting(NamedTuple):
    """The optimal splitting; the paper's OBS.

    Attributes:
      share: (K,) probabilities, sum 1.
      offered_load: (K,) r = lambda_k / mu_k, exactly equal for queues of equal m and n.
      loss: jobs lost per unit time, sum of lambda_k B_k.
      marginal: phi, jobs lost per job more, the same for all queues.
      residual: largest difference of log(phi / (1 - phi)) among the queues: what "the same" means.
    """

    share: np.ndarray
    offered_load: np.ndarray
    loss: float
    marginal: float
    residual: float


def optimal_splitting(system: System) -> Splitting:
    """Equalises the marginal losses, by a root of roots.

    With z = log(phi / (1 - phi)), the marginal of every class of queues is inverted to a load r(z), and z is the root of
    sum mu_k r_k(z) = lambda. In logarithms marginals of 1e-300 and of 1 - 1e-300 are still told apart.
    """
    (servers, room), of = np.unique(np.stack([system.servers, system.room]), axis=1, return_inverse=True)
    of = of.reshape(-1)
    weight = np.bincount(of, system.service_rate)  # service rates behind each class
    even = np.log(system.arrival_rate / system.capacity * servers)  # equal utilisation

    def above(log_load, z, m, n):  # of the classes still open, repeated to a full number of them: few compiled programs
        full = -(-len(log_load) // len(servers)) * len(servers)
        return _log_odds(*(np.resize(x, full) for x in (m, n, log_load)))[: len(log_load)] - z

    def log_loads(z):
        return _root(above, even - 1, even + 1, z, servers, room)

    @np.vectorize
    def excess(z):
        return np.log(np.exp(log_loads(z)) @ weight / system.arrival_rate)

    at = _log_odds(servers, room, even)
    z = _root(excess, at.min() - 0.5, at.max() + 0.5)
    log_load = log_loads(z) - excess(z)  # what rounding left of the sum
    odds = _log_odds(servers, room, log_load)
    load = np.exp(log_load)[of]
    share = load * system.service_rate / system.arrival_rate
    share /= share.sum()
    return Splitting(share, load, split_loss(system, share), float(1 / (1 + np.exp(-odds.mean()))), float(np.ptp(odds)))


def split_loss(system: System, share) -> float:
    """Jobs lost per unit time when each goes to queue k with probability share (K,): the sum of lambda_k B_k(lambda_k / mu_k)."""
    rate = system.arrival_rate * np.asarray(share, float)
    with jax.enable_x64(True):
        return float(rate @ np.asarray(blocking(system.servers, system.room, rate / system.service_rate)))


def _root(function, low, high, *args) -> np.ndarray:
    """Roots of a vector of increasing functions of one number each; the brackets open as far as they need to."""
    bracket = elementwise.bracket_root(function, low, high, args=args).bracket
    tolerances = {"xatol": 0, "xrtol": _TOLERANCE, "fatol": 0, "frtol": 0}
    return elementwise.find_root(function, bracket, args=args, tolerances=tolerances).x


def _log_odds(servers, room, log_load):
    """(C,) log(phi / (1 - phi)) of each class at its offered load, float64."""
    with jax.enable_x64(True):
        return np.asarray(_odds_program(padded_levels(room))(servers.astype(float), room, np.asarray(log_load, float)))


@functools.cache
def _odds_program(levels):
    def log_odds(servers, room, log_load):
        def at_room(log_load):
            path = log_path(servers, jnp.exp(log_load), levels)
            pick = jnp.arange(levels + 1)[:, None] == room
            return jax.tree.map(lambda x: jnp.sum(jnp.where(pick, x, 0), axis=0), (path.blocking, path.idle))

        # r B = r - m + J with J the free servers: phi = B (1 + dlog B/dlog r), 1 - phi = -(J / r) dlog J/dlog r.
        (blocking, idle), (rise, fall) = jax.jvp(at_room, (log_load,), (jnp.ones_like(log_load),))
        return blocking + jnp.log1p(rise) - (idle - log_load + jnp.log(-fall))

    return jax.jit(log_odds)


class Bounds(NamedTuple):
    """Jobs per unit time: the most that can be served, V_R, and the least that is lost, lambda - V_R."""

    throughput: float
    loss: float


def relaxation_bounds(system: System) -> Bounds:
    """V_R = min(lambda, lambda (K - sum_k B_{m_k,n_k}(lambda / mu_k))), of the restless-bandit relaxation.

    No queue serves more than it would if it were offered every job (Nino-Mora, EJOR 2012, Proposition 3.3).
    """
    with jax.enable_x64(True):
        accepted = queue(system.servers, system.room, system.arrival_rate / system.service_rate).accepted
    served = float(np.asarray(accepted).sum())
    return Bounds(system.arrival_rate * min(1.0, served), system.arrival_rate * max(0.0, 1.0 - served))
