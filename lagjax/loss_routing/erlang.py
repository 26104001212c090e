"""M/M/m/n in the stationary state: m servers, room for n jobs in all, offered load r (Erlang B is n = m).

Every recursion goes from room for x - 1 jobs to room for x, and only adds, multiplies and divides positive numbers, so that
relative errors do not grow beyond a few roundings a step, and neither do those of its derivatives in r. With
a_x = min(x, m) / r and B_0 = 1:

    B_x = B_{x-1} / (B_{x-1} + a_x)     lost        A_x = a_x / (B_{x-1} + a_x) = 1 - B_x     let in
    L_x = A_x L_{x-1} + x B_x           jobs        I_x = A_x (I_{x-1} + 1) = x - L_x         free places
    J_x = A_x (J_{x-1} + [x <= m])                  free servers of the min(x, m) that can be busy

The functions are jax.numpy functions of arrays that broadcast, in the floating dtype of `load`: float64 under
`jax.enable_x64(True)`. Differences that cancel are never formed (Nino-Mora, EJOR 2012, section 3, has the closed forms).
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.errors import InputError


class Queue(NamedTuple):
    """Stationary values of M/M/m/n, each of the broadcast shape of the arguments.

    Attributes:
      blocking: B_{m,n}(r), the fraction of jobs that find no room; 0 where it is below the least positive float.
      accepted: 1 - B, to full relative precision.
      mean_number: L_{m,n}(r), jobs in the system.
      idle: mean number of free servers, m minus the busy ones; to full relative precision.
    """

    blocking: jax.Array
    accepted: jax.Array
    mean_number: jax.Array
    idle: jax.Array


class LogPath(NamedTuple):
    """Natural logarithms for every room x = 0, 1, ..., `levels` (first axis); right where the values would underflow.

    Attributes:
      blocking: log B_{m,x}(r).
      free_places: log(x - L_{m,x}(r)), -inf at x = 0.
      idle: log(min(x, m) - busy servers of M/M/m/x), -inf at x = 0.
    """

    blocking: jax.Array
    free_places: jax.Array
    idle: jax.Array


def queue(servers, room, load) -> Queue:
    """Solves M/M/m/n.

    Args:
      servers: m, whole numbers, 1 or more; concrete, not traced.
      room: n >= m, jobs in service and waiting; concrete.
      load: r = arrival rate over service rate, positive; may be traced and differentiated.

    Raises:
      InputError: m or n is not a whole number, or n < m.
    """
    servers, room, load = _arguments(servers, room, load)
    return _queue(servers, room, load, levels=padded_levels(room))


@functools.partial(jax.jit, static_argnames="levels")
def _queue(servers, room, load, levels):
    dtype = load.dtype
    m = jnp.asarray(servers).astype(dtype)

    def step(old, x):
        places = x.astype(dtype)
        a = jnp.minimum(places, m) / load
        total = old.blocking + a
        blocking, accepted = old.blocking / total, a / total
        number = accepted * old.mean_number + places * blocking
        idle = accepted * (old.idle + (places <= m).astype(dtype))
        new = Queue(blocking, accepted, number, idle)
        return jax.tree.map(lambda then, now: jnp.where(x <= room, now, then), old, new), None

    zero = jnp.zeros(jnp.broadcast_shapes(m.shape, jnp.shape(room), load.shape), dtype)
    return lax.scan(step, Queue(zero + 1, zero, zero, zero), jnp.arange(1, levels + 1))[0]


def blocking(servers, room, load) -> jax.Array:
    """B_{m,n}(r); see `queue`. Where it underflows to 0, `log_blocking` is right."""
    return queue(servers, room, load).blocking


def mean_number(servers, room, load) -> jax.Array:
    """L_{m,n}(r), mean number of jobs in the system; see `queue`."""
    return queue(servers, room, load).mean_number


def erlang_b(servers, load) -> jax.Array:
    """B_m(r), the Erlang-B formula: no waiting room."""
    return queue(servers, servers, load).blocking


def erlang_c(servers, load) -> jax.Array:
    """C_m(r), the Erlang-C formula: for r < m the chance to wait with room without end; for r >= m its continuation.

    C = r B_{m-1} / (1 + I_{m-1}), with I the free servers of M/M/(m-1)/(m-1): the same as m B_m / (m - r (1 - B_m)), where
    nothing cancels.
    """
    servers, _, load = _arguments(servers, servers, load)
    less = queue(servers - 1, servers - 1, load)
    return load * less.blocking / (1 + less.idle)


def log_blocking(servers, room, load) -> jax.Array:
    """log B_{m,n}(r), right however small B is."""
    servers, room, load = _arguments(servers, room, load)
    shape = jnp.broadcast_shapes(servers.shape, room.shape, load.shape)
    path = log_path(servers, load, padded_levels(room)).blocking
    path = jnp.broadcast_to(path, (path.shape[0], *shape))
    return jnp.take_along_axis(path, jnp.broadcast_to(jnp.asarray(room), shape)[None], axis=0)[0]


def log_path(servers, load, levels: int) -> LogPath:
    """Runs the recursions in logarithms up to room for `levels` jobs; `servers` may be traced here. Shapes (levels + 1, ...)."""
    load = jnp.asarray(load)
    dtype, m = load.dtype, jnp.asarray(servers).astype(load.dtype)
    zero = jnp.zeros(jnp.broadcast_shapes(m.shape, load.shape), dtype)
    log_load = jnp.log(load)

    def step(carry, places):
        old = carry
        log_a = jnp.log(jnp.minimum(places, m)) - log_load
        log_accepted = -jax.nn.softplus(old.blocking - log_a)
        grown = jax.nn.softplus(old.idle)  # log(J + 1)
        new = LogPath(
            -jax.nn.softplus(log_a - old.blocking),
            log_accepted + jax.nn.softplus(old.free_places),
            log_accepted + jnp.where(places <= m, grown, old.idle),
        )
        return new, new

    # Room for one job is where the logarithms become finite: starting there keeps derivatives free of inf - inf.
    one = LogPath(-jnp.log1p(1 / load) + zero, -jnp.log1p(load) + zero, -jnp.log1p(load) + zero)
    _, rest = lax.scan(step, one, jnp.arange(2, levels + 1, dtype=dtype))
    nothing = LogPath(zero, zero - jnp.inf, zero - jnp.inf)
    return jax.tree.map(lambda a, b, c: jnp.concatenate([a[None], b[None], c])[: levels + 1], nothing, one, rest)


def _arguments(servers, room, load):
    servers, room, load = np.asarray(servers), np.asarray(room), jnp.asarray(load)
    for name, value in (("servers", servers), ("room", room)):
        if not np.issubdtype(value.dtype, np.integer):
            raise InputError(f"{name} has dtype {value.dtype}; give whole numbers")
    if np.any(servers < 0) or np.any(room < servers):
        raise InputError(f"room {room.tolist()} does not hold the servers {servers.tolist()}; room is n >= m >= 0 jobs")
    if not jnp.issubdtype(load.dtype, jnp.floating):
        load = load.astype(float)
    return servers, room, load


def padded_levels(room) -> int:
    """The largest room, rounded up to a power of two, so that few compiled programs serve many systems."""
    return 1 << max(int(np.max(room, initial=1)) - 1, 0).bit_length()
