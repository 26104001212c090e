"""The indices of queues by the jobs they hold: the lowest gets the job.

Each returns (K, N) float64 with N the largest room; entry (k, x) is the index of queue k holding x jobs, and those with
x >= n_k, where queue k is full, are NaN.
"""

from __future__ import annotations

import functools

import jax
import numpy as np

from lagjax.loss_routing.erlang import log_path, padded_levels
from lagjax.loss_routing.splitting import Splitting, optimal_splitting
from lagjax.loss_routing.system import System


def log_restless_index(system: System) -> np.ndarray:
    """log of theta_RB, the second-order restless-bandit index (Nino-Mora, EJOR 2012, section 3), in units of time.

    theta(x) = [L_{m,x+1}(r) - L_{m,x}(r)] / (lambda [B_{m,x}(r) - B_{m,x+1}(r)]) at r = lambda / mu, the queue alone
    facing all arrivals. By L_{x+1} - L_x = B_{x+1} (1 + x - L_x) and B_x - B_{x+1} = B_{x+1} (min(x+1, m) - busy_x) / r it is

        theta(x) = (1 + free places of M/M/m/x) / (mu (min(x+1, m) - busy servers of M/M/m/x)),

    where nothing cancels. It is 1 / mu for all x < m.
    """
    path = _paths(system, system.arrival_rate / system.service_rate)
    x = np.arange(system.room.max())
    waits = x >= system.servers[:, None]
    free = np.logaddexp(0, path.free_places[:, :-1])
    idle = np.where(waits, path.idle[:, :-1], np.logaddexp(0, path.idle[:, :-1]))
    return _where_room(system, free - idle - np.log(system.service_rate)[:, None])


def log_improvement_index(system: System, splitting: Splitting | None = None) -> np.ndarray:
    """log of theta_PI(x) = B_{m,n}(r) / B_{m,x}(r) at the loads of the optimal splitting: one step of policy improvement.

    The chance that one more job in queue k costs a loss there while jobs are split (Krishnan, 1988; Nino-Mora, section 4).
    """
    splitting = optimal_splitting(system) if splitting is None else splitting
    path = _paths(system, splitting.offered_load)
    full = np.take_along_axis(path.blocking, system.room[:, None], axis=1)
    return _where_room(system, full - path.blocking[:, :-1])


def jobs(system: System) -> np.ndarray:
    """The jobs in the queue: shortest-queue routing."""
    return _where_room(system, np.tile(np.arange(system.room.max(), dtype=float), (system.num_queues, 1)))


def expected_delay(system: System) -> np.ndarray:
    """Mean time until a job sent there leaves: max(x + 1, m) / (m mu)."""
    servers = system.servers[:, None]
    x = np.arange(system.room.max())
    return _where_room(system, np.maximum(x + 1, servers) / (servers * system.service_rate[:, None]))


def service_time(system: System) -> np.ndarray:
    """1 / mu while a server is free; queues whose servers are all busy come after all others, in the order of 1 / mu too."""
    time = 1 / system.service_rate[:, None]
    busy = np.arange(system.room.max()) >= system.servers[:, None]
    return _where_room(system, time + 2 * time.max() * busy)


def nothing(system: System) -> np.ndarray:
    """0: every queue with room is as good as any other."""
    return _where_room(system, np.zeros((system.num_queues, system.room.max())))


def _where_room(system, index):
    return np.where(np.arange(index.shape[1]) < system.room[:, None], index, np.nan)


def _paths(system, load):
    """A LogPath of (K, N + 1) float64 arrays of NumPy, N the largest room."""
    levels = int(system.room.max())
    with jax.enable_x64(True):
        path = _path_program(padded_levels(levels))(system.servers, np.asarray(load, float))
        return jax.tree.map(lambda field: np.asarray(field)[: levels + 1].T, path)


@functools.cache
def _path_program(levels):
    return jax.jit(lambda servers, load: log_path(servers, load, levels))
