"""Does every trajectory settle at the fixed point? A numerical search that can answer no (Lag, Assumption 4.2)."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec

from lagjax.engine.checks import whole_number
from lagjax.engine.devices import compiler_options, place_replicas
from lagjax.errors import InputError
from lagjax.fluid.checks import check_precision, check_rows, checked_state
from lagjax.fluid.starts import Starts

BLOCK = 8  # starts iterated together: their states stay in a core's cache
RECORDS = 400  # distances kept per start
MAX_STEPS = 2**31 - 1
STRIDES = 21  # records made by one call of the compiled program, so at most 20 calls: how often progress is reported
RETURNED = 64  # times eps: change below which a state has come back (1.4e-14 in float64)
CONFIRMED = 100_000  # more steps after which a cycle is where it was, to one eps a step,
NO_NEARER = 0.999  # and its distance from x* is at least this part of what it was
_MAX_FOLLOWED = 64  # unsettled trajectories that are looked at for cycles


@dataclasses.dataclass(frozen=True, eq=False)
class Attractor:
    """What became of N trajectories of T steps. Distances are the share of a server's copies that are elsewhere than at x*
    (total variation), of the server where that is largest: in [0, 1].

    Attributes:
      verdict: "true", every trajectory ended within `tolerance` of x*; "false", one came back to where it had been, elsewhere;
        "undecided" otherwise.
      times: (L,) steps; distance: (L, N) at those times, the first at 0 and the last at T.
      kind: N descriptions of the starts.
      cycle_length: of the shortest cycle found; 1 is a second fixed point; None if there is none.
      cycle: (cycle_length, R, d+1) its states.
      final_state: (N, R, d+1).
      tolerance: see verdict.
    """

    verdict: str
    times: np.ndarray
    distance: np.ndarray
    kind: tuple[str, ...]
    cycle_length: int | None
    cycle: np.ndarray | None
    final_state: np.ndarray
    tolerance: float

    @property
    def max_final_distance(self) -> float:
        """Of all starts, after T steps."""
        return float(self.distance[-1].max())

    @property
    def slowest(self) -> int:
        """The start that is farthest from x* at the end; among those that have settled, the last to do so."""
        if self.max_final_distance > self.tolerance:
            return int(self.distance[-1].argmax())
        return int(((self.distance > self.tolerance) * np.arange(1, len(self.times) + 1)[:, None]).max(axis=0).argmax())


def find_attractor(
    step: Callable, fixed_point, starts: Starts, steps: int, *, devices=None,
    progress: Callable[[int, int], object] | None = None,
) -> Attractor:  # fmt: skip
    """Iterates a map from many starts at once and says what became of them.

    An unsettled trajectory is followed for 4 (d+1) more steps; when it comes back to where it was, to rounding, every time
    round, and is still there after a hundred thousand more, it is on a cycle. A slow trajectory has moved on by then and stays
    undecided. Results do not depend on the number of devices nor on how many starts run together.

    Args:
      step: the map, on (N, R, d+1); a `jax.tree_util.Partial` of `fluid_map`, or any function.
      fixed_point: (R, d+1) x*. The computation is done in its dtype.
      starts: from `lagjax.fluid.starts`.
      steps: T.
      devices: JAX devices among which the starts are shared; all local ones by default.
      progress: called with the steps done and T.

    Raises:
      InputError: arguments that cannot be used.
    """
    whole_number("steps", steps, 1, MAX_STEPS)
    check_precision("fixed_point", checked_state("fixed_point", fixed_point))
    target = jnp.asarray(fixed_point)
    if not isinstance(starts, Starts) or len(starts.state) == 0:
        raise InputError("starts has none; make them with make_starts(count, fixed_point)")
    if starts.state.shape[1:] != target.shape:
        raise InputError(f"starts have states of shape {starts.state.shape[1:]}; the fixed point has {target.shape}")
    check_rows("starts", np.asarray(starts.state))
    step = step if isinstance(step, jax.tree_util.Partial) else jax.tree_util.Partial(step)
    count, eps = len(starts.state), float(jnp.finfo(target.dtype).eps)
    moved = jnp.abs(step(target[None]) - target)
    if not float(moved.max()) <= tolerance_of(target.dtype):
        raise InputError(f"fixed_point is none of this map: it moves by {float(moved.max()):.3g} in one step")
    devices = list(devices or jax.local_devices())
    blocks = -(-count // BLOCK)
    blocks = -(-blocks // len(devices)) * len(devices) if blocks > len(devices) else blocks
    placed = place_replicas(blocks, devices)
    padded = np.concatenate([starts.state, np.repeat(starts.state[-1:], blocks * BLOCK - count, axis=0)])
    state = jnp.asarray(padded.reshape(blocks, BLOCK, *target.shape), target.dtype)
    run = _program(placed.mesh, tuple(compiler_options(placed.platform).items()))
    times = np.unique(np.linspace(0, steps, min(RECORDS, steps) + 1).round().astype(np.int32))
    strides, distances = np.diff(times, prepend=0).astype(np.int32), []
    for first in range(0, len(times), STRIDES):
        part = strides[first : first + STRIDES]
        state, distance = run(step, state, target, np.pad(part, (0, STRIDES - len(part))))  # one shape, one program
        distances.append(np.asarray(distance).transpose(1, 0, 2).reshape(STRIDES, -1)[: len(part)])
        if progress is not None:
            progress(int(times[first + len(part) - 1]), steps)
    distance = np.concatenate(distances)[:, :count].astype(np.float64)
    final = np.asarray(state).reshape(-1, *target.shape)[:count]
    tolerance = tolerance_of(target.dtype)
    unsettled = np.flatnonzero(~(distance[-1] <= tolerance))
    farthest = unsettled[np.argsort(-distance[-1, unsettled], kind="stable")][:_MAX_FOLLOWED]
    cycle = _cycle(step, target, final[farthest], eps) if unsettled.size else None
    verdict = "true" if not unsettled.size else "undecided" if cycle is None else "false"
    return Attractor(
        verdict, times, distance, starts.kind, None if cycle is None else len(cycle), cycle, final, tolerance
    )


def tolerance_of(dtype) -> float:
    """Distance below which a trajectory has settled, the root of the dtype's eps: 1.5e-8 in float64, 3.5e-4 in float32."""
    return float(np.sqrt(np.finfo(dtype).eps))


def total_variation(x, y) -> jax.Array:
    """(...) largest over servers of half the l1 distance of the rows of two states (..., R, d+1)."""
    return jnp.max(jnp.sum(jnp.abs(x - y), axis=-1), axis=-1) / 2


@functools.cache
def _program(mesh, options):
    """Blocks of starts, one after another on every device, and their distances after each stride of steps."""

    def one_device(step, state, target, strides):
        def stride(x, steps):
            # Two steps a turn: XLA copies the state once in every turn of a loop.
            x = lax.fori_loop(0, steps // 2, lambda _, x: step(step(x)), x)
            x = lax.cond(steps % 2 == 1, step, lambda x: x, x)
            return x, total_variation(x, target)

        return lax.map(lambda x: lax.scan(stride, x, strides), state)

    def sharded(step, state, target, strides):
        split, whole = PartitionSpec("replica"), PartitionSpec()
        return jax.shard_map(
            one_device, mesh=mesh, in_specs=(whole, split, whole, whole), out_specs=split, check_vma=False
        )(step, state, target, strides)

    return jax.jit(sharded, compiler_options=dict(options) or None)


def _cycle(step, target, state, eps):
    """(L, R, d+1) the shortest cycle on which one of the states (N, R, d+1) lies, or None. The first is the farthest out."""
    back = np.asarray(_changes(step, jnp.asarray(state), 4 * state.shape[-1])) <= RETURNED * eps
    for length in np.flatnonzero(back.any(axis=1)) + 1:
        on_it = np.flatnonzero(back[length - 1 :: length].all(axis=0))
        if on_it.size == 0:
            continue
        x = jnp.asarray(state[on_it[:1]])
        steps = -(-CONFIRMED // int(length)) * int(length)
        later = _advanced(step, x, np.int32(steps))
        stayed = float(jnp.max(jnp.abs(later - x))) <= steps * eps
        if stayed and float(total_variation(later, target)[0]) >= NO_NEARER * float(total_variation(x, target)[0]):
            break
    else:
        return None
    states = []
    for _ in range(length):
        states.append(np.asarray(x[0], np.float64))
        x = step(x)
    return np.stack(states)


@jax.jit
def _advanced(step, x, steps):
    return lax.fori_loop(0, steps, lambda _, x: step(x), x)


@functools.partial(jax.jit, static_argnames="steps")
def _changes(step, state, steps):
    """(steps, N) largest change of an entry since the start, after every step."""

    def one(x, _):
        x = step(x)
        return x, jnp.max(jnp.abs(x - state), axis=(-2, -1))

    return lax.scan(one, state, None, length=steps)[1]
