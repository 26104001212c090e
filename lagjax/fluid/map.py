"""The fluid map G: one step of the scaled system when m and n are infinite (Lag, section 4).

A state x is (..., R, d+1): x[r, i] is the fraction of the copies of server r with i steps of service left, x[r, 0] = phi_r
is free, and every row sums to 1. All functions take leading batch axes, run under jit, vmap, grad and jvp, and compute in the
dtype of x.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from lagjax.allocate import race_limit, waterfill
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.policies.table import Policy, check_shape

Array = jax.Array | np.ndarray


@dataclasses.dataclass(frozen=True, eq=False)
class FluidSystem:
    """An instance at its load under one policy; build it with `fluid_system`. A pytree.

    Attributes:
      scores: (V, R) s_vr. arrival_rate: (V,) lambda_v per step.
      law: (K, d) P(D = i + 1) of each service law; law_of_type: the law of each of the V types.
      tier, weight: (V, R) the policy's tables, shared by `rule` ("capped" or "race").
      servers_per_task: k.
    """

    scores: Array
    arrival_rate: Array
    law: Array
    tier: Array
    weight: Array
    law_of_type: tuple[int, ...]
    rule: str
    servers_per_task: int


jax.tree_util.register_dataclass(
    FluidSystem,
    data_fields=["scores", "arrival_rate", "law", "tier", "weight"],
    meta_fields=["law_of_type", "rule", "servers_per_task"],
)


def fluid_system(instance: Instance, policy: Policy) -> FluidSystem:
    """Puts an instance and a policy together.

    Types with equal rows of a NumPy `service_pmf` share one law, which makes G cheaper. Where `service_pmf` is a JAX array,
    as under `jax.grad` with respect to the instance, every type has its own, so that derivatives are by type.

    Raises:
      InputError: the policy is none, or has another shape than the instance.
    """
    if not isinstance(policy, Policy):
        raise InputError(f"policy is {policy!r:.60}; give a Policy, such as build_policy('lag', instance) makes")
    shape = (instance.num_types, instance.num_servers)
    check_shape(policy, instance)
    law, law_of_type = instance.service_pmf, np.arange(shape[0])
    if isinstance(law, np.ndarray):
        law, law_of_type = np.unique(law, axis=0, return_inverse=True)
    return FluidSystem(
        instance.scores, instance.arrival_rate, law, policy.tier, policy.weight, tuple(map(int, law_of_type.ravel())),
        policy.rule, instance.servers_per_task,
    )  # fmt: skip


@jax.jit
def assignment_rates(system: FluidSystem, x) -> jax.Array:
    """(..., V, R) u_vr(x) = lambda_v waterfill_r(k, phi; tiers and weights of type v), servers per step.

    Where phi sums to less than k every free server is taken: the partial fill that the paper allows the map only.
    """
    x = jnp.asarray(x)
    num_servers = system.tier.shape[-1]
    if x.ndim < 2 or x.shape[-2] != num_servers or not jnp.issubdtype(x.dtype, jnp.floating):
        raise InputError(
            f"x has shape {x.shape} and type {x.dtype}; a state is (..., {num_servers}, d+1) floating-point numbers"
        )
    phi = jnp.moveaxis(x[..., 0], -1, 0)  # servers first, batch last, as the waterfill has them
    capacity = phi.reshape(num_servers, math.prod(phi.shape[1:]))
    fill = waterfill if system.rule == "capped" else race_limit
    amount = fill(
        jnp.full((1,), system.servers_per_task, x.dtype), capacity, jnp.asarray(system.tier)[:, :, None],
        jnp.asarray(system.weight, x.dtype)[:, :, None],
    )  # fmt: skip
    rates = jnp.asarray(system.arrival_rate, x.dtype)[:, None, None] * amount
    return jnp.moveaxis(rates.reshape(rates.shape[0], *phi.shape), (0, 1), (-2, -1))


@jax.jit
def fluid_reward(system: FluidSystem, x) -> jax.Array:
    """(...) sum s_vr u_vr(x), reward per step and per copy."""
    rates = assignment_rates(system, x)
    return jnp.sum(jnp.asarray(system.scores, rates.dtype) * rates, axis=(-2, -1))


@jax.jit
def fluid_map(system: FluidSystem, x) -> jax.Array:
    """G(x), of the shape of x. Rows keep their sum.

    G_{r,0} = x_{r,0} - sum_v u_vr + x_{r,1}; G_{r,i} = x_{r,i+1} + sum_v P(D_v = i) u_vr for i = 1..d, with x_{r,d+1} = 0.
    """
    x = jnp.asarray(x)
    rates = assignment_rates(system, x)
    if x.shape[-1] != system.law.shape[-1] + 1:
        raise InputError(
            f"x has {x.shape[-1]} stages; the system has {system.law.shape[-1] + 1}: free, and 1 to d steps left"
        )
    law = jnp.asarray(system.law, x.dtype)
    of_law = [jnp.sum(rates[..., np.flatnonzero(np.equal(system.law_of_type, j)), :], axis=-2) for j in range(len(law))]
    taken = sum(of_law[1:], of_law[0])
    is_free = jnp.arange(x.shape[-1]) == 0
    stayed = jnp.where(is_free, x - taken[..., None], 0)
    started = sum(a[..., None] * _padded(p, 1, 0) for a, p in zip(of_law, law, strict=True))
    return _padded(x, -1, 1) + (stayed + started)  # one expression over all of x: XLA makes one pass of it


def _padded(x, before, after):
    """Zeros added to, or entries taken off, the last axis."""
    return lax.pad(x, jnp.zeros((), x.dtype), [(0, 0, 0)] * (x.ndim - 1) + [(before, after, 0)])


def iterate(step: Callable[[jax.Array], jax.Array], x, steps: int) -> jax.Array:
    """step(step(... x)), `steps` times, by a scan: differentiable forwards and backwards.

    Args:
      step: any map of states, such as `jax.tree_util.Partial(fluid_map, system)`.
    """
    return lax.scan(lambda x, _: (step(x), None), jnp.asarray(x), None, length=steps)[0]
