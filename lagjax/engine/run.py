"""The original system: all policies on the same arrivals, counted exactly."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import jax
import numpy as np

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import default_block, place_replicas
from lagjax.engine.loop import Loop, Watched
from lagjax.engine.model import Model, Run
from lagjax.engine.pause import Pause, Save
from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.models import loss, streams, tally
from lagjax.models.policy_tables import policy_tables
from lagjax.policies import Policy, PolicyLike, build_policy

MODEL = Model(loss.draw, loss.step, loss.count)
CHUNK = 64  # blocks per call of the compiled program, between two updates of a progress bar
MAX_ARRIVALS = 2**31 - 2**16  # a replica's counts are int32 on the device
MAX_SERVERS = 65_534  # servers are 16-bit numbers, one of which stands for nobody


@dataclasses.dataclass(frozen=True, eq=False)
class Counts:
    """What happened, as exact integers, in the counted arrivals of every replica.

    Attributes:
      served: (P, V, R, B) int32 servers given by policy p to type-v tasks, by server and replica.
      arrived: (V, B) int32 tasks of each type, lost ones included; the same under every policy.
      blocked: (V, B) int32 tasks lost; the same under every work-conserving policy (Lag, Lemma 3.1).
      arrivals: tasks per replica; they took `arrivals / instance.total_rate` steps on average.
      state: per group of policies, the (P, R, B) waits (see `lagjax.models.loss.init`) after the last whole block, or None.
    """

    served: np.ndarray
    arrived: np.ndarray
    blocked: np.ndarray
    arrivals: int
    state: tuple


def simulate(
    instance: Instance,
    policies: Sequence[PolicyLike],
    *,
    arrivals: int,
    warmup: int = 0,
    replicas: int = 1024,
    first_replica: int = 0,
    seed: int = 0,
    devices: Sequence[jax.Device] | None = None,
    block: int | None = None,
    chunk: int = CHUNK,
    progress: Callable[[int], object] | None = None,
    resume: Pause | None = None,
    save: Save | None = None,
    halfway: Callable[[Counts], object] | None = None,
) -> Counts:
    """Simulates the original system from empty, all policies on the same arrivals and durations.

    Every replica sees `warmup + arrivals` tasks and counts the last `arrivals` of them. Steps without an arrival are
    skipped exactly. By "Bernoulli arrivals see time averages", a stationary rate per step is `instance.total_rate` times
    the rate per arrival. Results depend on the instance, the policies, `arrivals`, `warmup` and `seed` alone: bit for
    bit, replica i is the same whatever runs beside it and however the work is cut.

    Args:
      instance: what to simulate.
      policies: at least one; what `lagjax.policies.build_policy` takes.
      arrivals, warmup: tasks per replica.
      replicas: B, independent replicas.
      first_replica: number of the first of them: a batch cut in two has the same replicas.
      seed: in [0, 2^64).
      devices: JAX devices to share the replicas; all local devices by default, as many as divide B.
      block: arrivals drawn at a time, a multiple of 32; by default what suits the devices.
      chunk: blocks per call of the compiled program.
      progress: called after every chunk with the arrivals (times policies and replicas) done in it.
      resume: where an interrupted run of the same arguments stood; it goes on from there, bitwise as if it had not stopped.
      save: called between two chunks, to keep that.
      halfway: called once with the counts of about the first half of the counted arrivals, up to the end of a block; not where
        no block ends among them. What goes on from a pause must have it where the run that paused had it.

    Raises:
      InputError: an argument outside its range, or a policy of another shape.
    """
    policies = [build_policy(policy, instance) for policy in policies]
    _check(instance, policies, arrivals, warmup, replicas, tally.WORD if block is None else block, chunk)
    whole_number("first_replica", first_replica, 0, MOST_REPLICAS - replicas)
    placed = place_replicas(replicas, devices)
    block = default_block(placed.platform) if block is None else block
    run, layouts = set_up(instance, policies, arrivals, warmup, replicas, first_replica, seed, block)
    blocks, middle = -(-(warmup + arrivals) // block), round((warmup + arrivals / 2) / block)
    loop = Loop(run, placed, Watched(chunk, progress, resume, save), end=blocks)
    early, k = None, instance.servers_per_task
    if halfway is not None and warmup < middle * block < warmup + arrivals and middle < blocks:
        early = loop.to(middle)
        halfway(_to_host(early, loop.state, layouts, middle * block - warmup, k))
    counts = loop.to(blocks)
    if early is not None:
        counts = jax.tree.map(np.add, early, counts)
    return _to_host(counts, loop.state, layouts, arrivals, k)


def set_up(
    instance, policies, arrivals, warmup, replicas, first_replica=0, seed=0, block=tally.WORD
) -> tuple[Run, list]:
    """Returns the system of `simulate`, empty, and the layout of its counts (see `policy_tables`)."""
    tables, layouts = policy_tables(list(policies))
    laws = loss.arrival_tables(instance)
    numbers = np.arange(first_replica, first_replica + replicas)
    random_ties = tables.even is not None or tables.tier is not None
    ties = streams.replica_keys(seed, streams.TIES, numbers) if random_ties else None
    state = loss.init(laws, tables, replicas)
    run = Run(
        MODEL, state, loss.no_counts(laws, state, replicas),
        loss.LossTables(laws, tables, np.array([warmup, warmup + arrivals], np.uint32)),
        loss.Keys(streams.replica_keys(seed, streams.EXOGENOUS, numbers), ties),
        block=block, work=block * replicas * len(policies),
    )  # fmt: skip
    return run, layouts


def batch_bytes(instance: Instance, policies: Sequence[Policy], block: int | None = None) -> int:
    """Bytes of device memory that one replica takes in `simulate`, from the shapes, rounded up.

    The state and counts twice (the run's own, and a copy on its way to the host), and a block's draws and slots.
    """
    block = default_block(jax.default_backend()) if block is None else block
    tables, _ = policy_tables(list(policies))
    laws, k = loss.arrival_tables(instance), instance.servers_per_task

    def empty():
        state = loss.init(laws, tables, 1)
        return state, loss.no_counts(laws, state, 1)

    carry = jax.eval_shape(empty)
    slots = len(policies) * k * np.dtype(loss.smallest_unsigned(instance.num_servers)).itemsize
    drawn = 24 + 16 * (k + k % 2) + slots  # words, mark, type, hold and gap; ties as drawn and as stacked; slots
    return 2 * sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(carry)) + block * drawn


def _to_host(counts, state, layouts, arrivals, k):
    arrived = counts.arrived
    num_servers = layouts[0].server_of_slot.shape[1]
    arrived_shape = (arrived.shape[0], num_servers, arrived.shape[1])
    by_slot = [counts.served[layout.group].reshape(-1, *arrived_shape)[layout.place] for layout in layouts]
    served = np.empty((len(layouts), *by_slot[0].shape), dtype=np.int32)
    for p, layout in enumerate(layouts):
        np.put_along_axis(served[p], layout.server_of_slot[:, :, None], by_slot[p], axis=1)
    takers = served.sum(axis=2, dtype=np.int64)
    if (takers != takers[0]).any() or (takers[0] % k).any():
        raise AssertionError("policies disagree on which tasks were served (Lemma 3.1): please report this as a bug")
    return Counts(served, arrived, arrived - (takers[0] // k).astype(np.int32), arrivals, jax.device_get(state))


def _check(instance, policies, arrivals, warmup, replicas, block, chunk):
    for field, value, least in (
        ("arrivals", arrivals, 1), ("warmup", warmup, 0), ("replicas", replicas, 1), ("block", block, 1), ("chunk", chunk, 1),
    ):  # fmt: skip
        whole_number(field, value, least, MOST_REPLICAS if field == "replicas" else None)
    check_length(arrivals + warmup)
    if instance.num_servers > MAX_SERVERS:
        raise InputError(
            f"{instance.num_servers} servers are more than {MAX_SERVERS}; merge equal ones or split the instance"
        )
    if block % tally.WORD:
        raise InputError(f"block is {block}; give a multiple of {tally.WORD}")
    if not policies:
        raise InputError("no policies to simulate; give at least one")


def check_length(arrivals: int) -> None:
    """Raises InputError where a replica's counts would not fit 32 bits."""
    if arrivals > MAX_ARRIVALS:
        raise InputError(
            f"{arrivals} arrivals per replica are more than {MAX_ARRIVALS}; use more replicas instead of longer ones"
        )
