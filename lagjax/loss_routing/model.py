"""One event of the uniformised chain: an arrival, or the end of a service at one server of one queue if that server is busy.

Events come as a Poisson process of rate Lambda = lambda + sum m_k mu_k, whatever the state; each is an arrival with probability
lambda / Lambda and belongs to server j of queue k with probability mu_k / Lambda, and does nothing where fewer than j + 1 jobs are
there. So the chain at events has the law of the process in continuous time, and a fraction of events is a fraction of time. All
policies see the same events: common random numbers.

What a policy knows of a queue is one small number, its code: codes sort as ranks do and differ between queues, so the lowest
code names the queue, and one look-up of the code moves it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from lagjax.errors import InputError
from lagjax.loss_routing.policies import FULL, RoutingPolicy
from lagjax.loss_routing.system import System
from lagjax.models import alias, streams
from lagjax.models.loss import Table, smallest_unsigned

MOST_CODES = 2**16


@dataclasses.dataclass(frozen=True)
class Tables:
    """A system and some policies that share a rule, P of them.

    Attributes:
      event: (W,) alias table of the events: k * span + j for server j of queue k, K * span for an arrival.
      split: (P, U) alias tables of the shares under rule "split", else None.
      code: (P, K, N + 1) unsigned code of queue k with x jobs.
      moved: (P, 2 C) unsigned code after a service (entries 0 to C - 1) and after an arrival (C to 2 C - 1).
      full: (P,) unsigned least code of a full queue.
      span: a power of two, most servers or more.
      queues: K.
      rule: "strict" (no two queues ever tie), "ties" or "split".
      shift: bits of a code below its rank, under "ties".
    """

    event: Table
    split: Table | None
    code: Table
    moved: Table
    full: Table
    span: int
    queues: int
    rule: str
    shift: int


class State(NamedTuple):
    """(P, K, B) unsigned: jobs in each queue, and its code."""

    jobs: jax.Array
    code: jax.Array


jax.tree_util.register_dataclass(
    Tables, ["event", "split", "code", "moved", "full"], ["span", "queues", "rule", "shift"]
)
