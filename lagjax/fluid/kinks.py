"""How far a state is from the kinks of G, where its derivative jumps."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.allocate import waterfill
from lagjax.allocate.tiers import budget_ends
from lagjax.fluid.checks import checked_state, system_shape
from lagjax.fluid.map import FluidSystem

_filled = jax.jit(waterfill)


class Kink(NamedTuple):
    """The nearest kink.

    Attributes:
      distance: in the l1 norm of the free fractions; G has one derivative for phi within it ("capped" policies: G is affine).
      task_type: the type whose sharing changes there.
      cause: what happens there, in words.
      server: the server that it happens to, if it is one.
    """

    distance: float
    task_type: int
    cause: str
    server: int | None = None


def nearest_kink(system: FluidSystem, x) -> Kink:
    """The kink nearest to a state (R, d+1); computed in float64.

    Three things change the derivative: a tier just suffices for what is left of a task (the one in which it ends, or the one
    before), all that is free does, or, within a capped tier, a server just fills at the shared level. Each is a function of
    phi whose slopes bound the distance; for capped policies it is the exact one up to the ends of [0, 1].

    Raises:
      InputError: x is no state of the system.
    """
    with jax.enable_x64(True):
        phi = checked_state("x", x, system_shape(system)).astype(np.float64)[:, 0]
        tier, weight = np.asarray(system.tier), np.asarray(system.weight, np.float64)
        budget = np.full((1,), float(system.servers_per_task))
        problem = jnp.asarray(budget), jnp.asarray(phi[:, None]), jnp.asarray(tier[:, :, None])
        full, partly, left = (np.asarray(a)[..., 0] for a in budget_ends(*problem))
        amount = np.asarray(_filled(*problem, jnp.asarray(weight[:, :, None])))[..., 0]
    found = []
    for v in range(len(tier)):
        if not partly[v].any():
            found.append(Kink(float(budget[0] - phi.sum()), v, "its task takes just what is free"))
            continue
        members = np.flatnonzero(partly[v])
        if full[v].any():
            found.append(Kink(float(left[v]), v, "an earlier tier just suffices"))
        found.append(Kink(float(phi[members].sum() - left[v]), v, "the tier in which its budget ends just suffices"))
        if system.rule == "capped" and len(members) > 1:
            share = weight[v, members]
            filled = amount[v, members] >= phi[members]
            open_share = max(share[~filled].sum(), 1e-300)
            level = (left[v] - phi[members][filled].sum()) / open_share
            gap = np.abs(phi[members] - level * share) / np.where(filled, 1 + share / open_share, 1)
            found.append(
                Kink(float(gap.min()), v, "a server just fills at the shared level", int(members[gap.argmin()]))
            )
    return min(found, key=lambda kink: kink.distance)
