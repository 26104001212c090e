"""What the functions of the fluid map refuse, in one line each; on the host, before any work."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from lagjax.errors import InputError

_ROW_SLACK = 1e-4  # a row may miss 1 by this much: float32 states summed over many steps of service


def checked_state(field: str, x, shape: tuple[int, int] | None = None) -> np.ndarray:
    """Returns a state as a NumPy array of its own dtype.

    Args:
      field: what to call it.
      x: (R, d+1) numbers from 0 on, rows summing to 1.
      shape: (R, d+1) that it must have.

    Raises:
      InputError: it is no such state.
    """
    try:
        state = np.asarray(x)
    except (TypeError, ValueError):
        state = np.empty(0, object)
    if state.ndim != 2 or state.size == 0 or not np.issubdtype(state.dtype, np.floating):
        raise InputError(f"{field} is no (R, d+1) table of floating-point numbers (shape {state.shape}, {state.dtype})")
    if shape is not None and state.shape != shape:
        raise InputError(f"{field} has shape {state.shape}; the system needs {shape}: servers, and steps left from 0")
    check_rows(field, state)
    return state


def check_rows(field: str, states: np.ndarray) -> None:
    """Raises InputError unless states (..., R, d+1) are finite, not negative, and have rows that sum to 1."""
    if not np.all(np.isfinite(states)):
        raise InputError(f"{field} has entries that are not finite; a state holds fractions of a server's copies")
    if states.min(initial=0) < -_ROW_SLACK:
        raise InputError(f"{field} has the entry {states.min():g}; a state holds fractions of a server's copies")
    worst = np.abs(states.sum(axis=-1, dtype=np.float64) - 1).max(initial=0)
    if worst > _ROW_SLACK:
        raise InputError(f"{field} has a row that misses 1 by {worst:.3g}; divide rows by their sums")


def check_precision(field: str, array) -> None:
    """Raises InputError where JAX would compute in fewer digits than the array has."""
    found = jnp.asarray(array).dtype
    if found != array.dtype:
        raise InputError(
            f"{field} is {array.dtype} but JAX computes in {found}; put the call inside `with jax.enable_x64(True):`, or "
            "give a float32 one"
        )


def system_shape(system) -> tuple[int, int]:
    """(R, d+1)."""
    return system.scores.shape[-1], system.law.shape[-1] + 1
