"""Starting states from which trajectories of G are followed."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.engine.checks import whole_number
from lagjax.errors import InputError
from lagjax.fluid.checks import check_precision, checked_state
from lagjax.fluid.map import iterate

MOST_STARTS = 1_000_000
_SPARSITY = (0.03, 0.3, 3.0)  # Dirichlet parameters: nearly one stage per server, a few, nearly uniform
_NEAR = 1e-3  # distance, in entries, of the starts near the fixed point
_MOST_TOGETHER = 8
_ASCENT_ROUNDS = 30
_ASCENT_RATE = 0.5
_AFTER = 200


class Starts(NamedTuple):
    """States to start from: (N, R, d+1), and N words that say what each is."""

    state: np.ndarray
    kind: tuple[str, ...]


def make_starts(count: int, fixed_point, direction=None, seed: int = 0) -> Starts:
    """All servers free; all just begun; all together at one stage; random vertices of X; Dirichlet rows; near the fixed point.

    Args:
      count: N.
      fixed_point: (R, d+1) x*, rows summing to 1.
      direction: (R, d+1) tangent direction of the slowest eigenvalue; starts near x* lie along it and at random.
      seed: of the random ones.

    Raises:
      InputError: a count or seed that is no whole number in its range, or a fixed point that is no state.
    """
    whole_number("starts", count, 1, MOST_STARTS)
    whole_number("seed", seed, 0, 2**64 - 1)
    fixed_point = checked_state("fixed_point", fixed_point).astype(np.float64)
    if direction is not None and np.shape(direction) != fixed_point.shape:
        raise InputError(f"direction has shape {np.shape(direction)}; the fixed point has {fixed_point.shape}")
    num_servers, stages = fixed_point.shape
    random = np.random.Generator(np.random.PCG64(seed))
    together = np.unique(np.linspace(0, stages - 1, min(_MOST_TOGETHER, stages)).round().astype(int))
    named = {0: "all free", stages - 1: "all busy, just begun"}
    order = [0, stages - 1, *together[1:-1]] if stages > 1 else [0]
    states = [np.eye(stages)[np.full(num_servers, stage)] for stage in order]
    kinds = [named.get(stage, f"all with {stage} steps left") for stage in order]
    if direction is not None and np.abs(direction).max() > 0:
        states.append(_towards(fixed_point, fixed_point + direction))
        kinds.append("near the fixed point, slowest direction")
    while len(states) < count:
        which = len(states) % (2 + len(_SPARSITY))
        if which == 0:
            states.append(np.eye(stages)[random.integers(0, stages, num_servers)])
            kinds.append("one stage per server type, at random")
        elif which == 1:
            states.append(_towards(fixed_point, random.dirichlet(np.ones(stages), num_servers)))
            kinds.append("near the fixed point")
        else:
            states.append(random.dirichlet(np.full(stages, _SPARSITY[which - 2]), num_servers))
            kinds.append("Dirichlet")
    state = np.stack(states[:count])
    return Starts(state / state.sum(axis=-1, keepdims=True), tuple(kinds[:count]))


def _towards(here, there):
    """A state a little from `here` towards `there`, or less so if it would leave X."""
    step = _NEAR / max(np.abs(there - here).max(), 1e-300) * (there - here)
    down = step < 0
    reach = np.min(here[down] / -step[down], initial=1.0)
    return here + min(1.0, reach) * step


def worst_starts(step, fixed_point, count: int, seed: int = 0) -> Starts:
    """Starts made worse by gradient ascent on the distance after some steps, through softmax coordinates (Adam).

    Local maxima only: a start that never settles may be missed.

    Args:
      step: the map, as in `find_attractor`.
      fixed_point: (R, d+1) x*; its dtype is the computation's.
      count: N; seed: of the random states from which the ascent begins.

    Raises:
      InputError: arguments that cannot be used.
    """
    whole_number("count", count, 1, MOST_STARTS)
    whole_number("seed", seed, 0, 2**64 - 1)
    check_precision("fixed_point", checked_state("fixed_point", fixed_point))
    step = step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)
    fixed_point = jnp.asarray(fixed_point)
    random = np.random.Generator(np.random.PCG64((seed, 1)))
    logits = jnp.asarray(random.normal(0, 2, (count, *fixed_point.shape)), fixed_point.dtype)
    horizon = fixed_point.shape[1] + min(fixed_point.shape[1], _AFTER)  # the start's own copies have finished by then
    with jax.numpy_dtype_promotion("standard"):  # optax mixes types, whatever the caller's setting
        state = np.asarray(_ascend(step, fixed_point, logits, horizon), np.float64)
    return Starts(state / state.sum(axis=-1, keepdims=True), ("worst found by gradient ascent",) * count)


@functools.partial(jax.jit, static_argnames="horizon")
def _ascend(step, fixed_point, logits, horizon):
    import optax

    method = optax.adam(_ASCENT_RATE)

    def closeness(logits):
        there = iterate(jax.checkpoint(step), jax.nn.softmax(logits), horizon)
        return -jnp.sum(jnp.log(jnp.sum(jnp.square(there - fixed_point), axis=(-2, -1)) + 1e-30))

    def update(carry, _):
        logits, memory = carry
        change, memory = method.update(jax.grad(closeness)(logits), memory, logits)
        return (optax.apply_updates(logits, change), memory), None

    return jax.nn.softmax(jax.lax.scan(update, (logits, method.init(logits)), None, length=_ASCENT_ROUNDS)[0][0])
