"""The contract of a model: what happens, what it does to the state, and what is counted of it, as three pure functions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np


@dataclasses.dataclass(frozen=True)
class Model:
    """A system's laws, without loops over time, batches or devices: the engine has those.

    E consecutive steps (arrivals, events, slots or time steps, numbered from 0) make a block. Arrays of state, keys, counts and
    seen have the B replicas as their last axis; those of events and seen have an axis E in front where a block is meant.

    Attributes:
      draw: draw(tables, keys, numbers) -> events: all that is random in the steps of these (E,) uint32 numbers, as far as it does
        not depend on the state (models whose choices do pass their keys on in the events). The same under every policy.
      step: step(state, event, tables) -> (state, seen): one step of every replica under every policy.
      count: count(counts, numbers, events, seen, tables) -> counts: exact whole numbers, with this block's added.
    """

    draw: Callable
    step: Callable
    count: Callable


def added(total, counts, first: int, last: int):
    """The usual `Run.add`: sums, of 64 bits where there is more than one part."""
    if total is None:
        return counts
    return jax.tree.map(lambda a, b: np.add(a, b, dtype=np.int64), total, counts)


class Run(NamedTuple):
    """A model set up, on the host: all that a loop needs.

    Attributes:
      model: its functions.
      state, counts: at step 0; counts are zero.
      tables: laws and policies, data of the compiled program.
      keys: of the replicas' random streams.
      block: steps drawn and counted together.
      fits: blocks whose counts fit the dtypes of `counts`; the loop empties them at least so often.
      work: what a block is worth in words of progress.
      add: add(total, counts, first, last) -> total: how the host takes up the counts of blocks `first` to `last`.
      total: where that begins; None for `added`.
      wider: wider(run, counts) -> the run with a state of a wider dtype where counts say that the present one was too narrow (or
        where there are none), else None.
      wide: whether tables keep their 64 bits on the device.
    """

    model: Model
    state: Any
    counts: Any
    tables: Any
    keys: Any
    block: int = 1
    fits: int = 2**31 - 1
    work: float = 1.0
    add: Callable = added
    total: Any = None
    wider: Callable | None = None
    wide: bool = False
