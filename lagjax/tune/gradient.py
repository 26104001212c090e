"""Orders found by gradient steps on a smoothed model of the system at one copy of every server.

In the model servers are free independently of each other, server r with probability p_r (the idea behind Erlang's fixed point for
networks), and orders are soft: server j comes before server r with chance sigma((theta_vj - theta_vr) / T), theta_v numbers that
rank the servers for type v. A task takes r if r is free and fewer than k of the servers before it are, so

    u_vr = lambda_v p_r P(sum_{j != r} Bernoulli(p_j sigma_vjr) < k),   scaled to sum_r u_vr = k lambda_v,
    p_r = 1 / (1 + sum_v E[D_v] u_vr / p_r),

and sum s u is the reward, smooth in theta. Like the system and unlike the fluid limit it meets servers that happen to be busy.
It is a source of candidates, no more: what they are worth is found on the system itself.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.instance import Instance
from lagjax.lp import solve_occ
from lagjax.policies.lag import lag
from lagjax.policies.table import Policy, strict_order
from lagjax.tune.candidates import distinct, order_by

# Where the steps start, T, and the length of Adam's first steps (they fall to 0), both in places of an order. LAG's order tells
# equal servers apart; its index knows how much servers differ.
ASCENTS = (("order", 1.0, 0.3), ("index", 0.25, 0.05), ("index", 2.0, 0.05))
STEPS = 150
MOST_WORK = 60_000  # V R^2 k: beyond it a step costs too much for what it finds
_ITERATIONS = 40  # of the damped map for p in every step, from the p of the step before


def gradient_policies(instance: Instance) -> list[Policy]:
    """Strict orders for one copy of every server that maximise the smoothed reward, found from LAG's order and index.

    Nothing is returned for a system with V R^2 k above 60,000.
    """
    types, servers = instance.scores.shape
    k = instance.servers_per_task
    if types * servers**2 * k > MOST_WORK:
        return []
    solution = solve_occ(instance)
    rank = strict_order(lag(instance, solution))  # never None: LAG's rule is capped
    order = -np.asarray(rank, dtype=np.float64)
    index = instance.scores - np.outer(instance.mean_duration, solution.server_price)
    spread = np.ptp(index, axis=1, keepdims=True) / servers
    starts = {"order": order, "index": index / np.where(spread > 0, spread, 1) + 1e-3 * order}
    found = []
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # optax mixes its own dtypes
        data = tuple(
            jnp.asarray(x, jnp.float64) for x in (instance.scores, instance.arrival_rate, instance.mean_duration)
        )
        for start, temperature, rate in ASCENTS:
            best = _ascend(jnp.asarray(starts[start]), temperature, rate, data, k)
            found.append(
                order_by(np.asarray(best), f"gradient steps from LAG's {start} at temperature {temperature:g}")
            )
    return distinct(found)


def smoothed_reward(theta, temperature, data, k: int, free=None, iterations: int = 200) -> tuple[jax.Array, jax.Array]:
    """Reward per step of the model, and its p.

    Args:
      theta: (V, R), larger numbers come first.
      temperature: T > 0, in units of theta.
      data: scores (V, R), arrivals per step (V,), mean durations (V,).
      k: servers per task.
      free: (R,) where the iteration for p starts; 1/2 by default.
      iterations: of the map for p, damped by half.

    Returns:
      The reward, and (R,) p.
    """
    scores, _, duration = data
    before = jax.nn.sigmoid((theta[:, :, None] - theta[:, None, :]) / temperature)  # (V, j, r)
    before = before * (1 - jnp.eye(theta.shape[1], dtype=theta.dtype))

    def damped(_, p):
        busy = duration @ (_rates(before, p, data, k) / p)
        return (p + 1 / (1 + busy)) / 2

    start = jnp.full(theta.shape[1], 0.5, theta.dtype) if free is None else free
    # Unrolled as a scan (a loop of a fixed number of turns), so that gradients flow back through it.
    p = lax.fori_loop(0, iterations, damped, start)
    return jnp.sum(scores * _rates(before, p, data, k)), p


def _rates(before, p, data, k):
    """(V, R) u_vr. The number of free servers before r is counted up to k, one possible server after another."""
    rate = data[1]

    def count(fewer, chance):  # fewer[c]: exactly c so far
        one_more = jnp.concatenate([jnp.zeros_like(fewer[:1]), fewer[:-1]])
        return fewer * (1 - chance) + one_more * chance, None

    nobody = jnp.zeros((k, *before[:, 0].shape), p.dtype).at[0].set(1)
    chances = jnp.moveaxis(before * p[None, :, None], 1, 0)  # (j, V, r)
    fewer, _ = lax.scan(count, nobody, chances)
    taken = rate[:, None] * p * fewer.sum(axis=0)
    return taken * (k * rate / taken.sum(axis=1))[:, None]


@functools.partial(jax.jit, static_argnames="k")
def _ascend(theta, temperature, rate, data, k):
    import optax

    scale = jnp.max(data[0]) * k * jnp.sum(data[1])
    optimiser = optax.adam(optax.cosine_decay_schedule(rate, STEPS))

    def loss(theta, free):
        reward, free = smoothed_reward(theta, temperature, data, k, free, _ITERATIONS)
        return -reward / scale, free

    def step(carry, _):
        theta, state, free = carry
        gradient, free = jax.grad(loss, has_aux=True)(theta, free)
        change, state = optimiser.update(gradient, state)
        return (optax.apply_updates(theta, change), state, free), None

    free = jnp.full(theta.shape[1], 0.5, theta.dtype)
    return lax.scan(step, (theta, optimiser.init(theta), free), length=STEPS)[0][0]
