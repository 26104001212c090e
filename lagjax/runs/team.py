"""Processes that do one run together: who leads, and how shares come together. One process is a team of its own."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from lagjax.errors import InputError, RunError
from lagjax.runs.job import alone
from lagjax.runs.record import Record, pack, unpack


class Team(NamedTuple):
    """Attributes:
    process, processes: this one's number, and how many there are; 0 leads, and alone writes.
    gather: see `lagjax.runs.job.Watch`.
    lead: lead(work) lets process 0 do something and returns its result, plain values, in all; an error is raised in all.
    """

    process: int
    processes: int
    gather: Callable[[Callable[[], Record]], list[Record]]
    lead: Callable[[Callable[[], Any]], Any]


ALONE = Team(0, 1, alone, lambda work: work())


def join(where: str) -> None:
    """Makes this process one of many, before JAX starts.

    Args:
      where: "auto" where a launcher that JAX knows (Slurm, Open MPI, Kubernetes, TPU pods) started the processes; else
        HOST:PORT,NUMBER,COUNT: where process 0 listens, which process this is, and how many there are.

    Raises:
      InputError: the text is neither, or the processes do not find each other.
    """
    import jax

    found = re.fullmatch(r"([^\s,]+:\d+),(\d+),(\d+)", where)
    if where != "auto" and (found is None or int(found[2]) >= int(found[3])):
        raise InputError(
            f"--processes is '{where}'; write auto, or HOST:PORT,NUMBER,COUNT with NUMBER from 0 to COUNT - 1"
        )
    try:
        if found is None:
            jax.distributed.initialize()
        else:
            jax.distributed.initialize(found[1], int(found[3]), int(found[2]))
    except ValueError as error:
        if found is None:
            raise InputError(
                "--processes auto: no launcher that JAX knows (Slurm, Open MPI, Kubernetes) started this process; write "
                "HOST:PORT,NUMBER,COUNT"
            ) from None
        raise InputError(f"--processes '{where}': {error}") from None
    except RuntimeError as error:
        raise InputError(f"--processes '{where}': the processes do not find each other ({error})") from None


def joined() -> Team:
    """The team that `join` made this process part of."""
    import jax
    from jax.experimental import multihost_utils

    def every(data: bytes) -> list[bytes]:
        with _stdout_to_stderr():
            sizes = multihost_utils.process_allgather(np.array([len(data)], np.int32)).ravel()
            padded = np.zeros(max(int(sizes.max()), 1), np.uint8)
            padded[: len(data)] = np.frombuffer(data, np.uint8)
            rows = multihost_utils.process_allgather(padded)
        return [rows[i, :size].tobytes() for i, size in enumerate(sizes)]

    def gather(work):
        done = every(_tried(lambda: pack(work())))
        for process, data in enumerate(done):
            if data[:1] == b"!":
                raise RunError(f"process {process}: {data[1:].decode()}")
        return [unpack(data[1:]) for data in done]

    def lead(work):
        mine = _tried(lambda: json.dumps(work()).encode()) if jax.process_index() == 0 else b""
        data = every(mine)[0]
        if data[:1] == b"!":
            raise InputError(data[1:].decode())
        return json.loads(data[1:])

    return Team(jax.process_index(), jax.process_count(), gather, lead)


def _tried(work):
    """What the work gives, or what went wrong, marked: nobody may wait for a process that has given up."""
    try:
        return b"." + work()
    except Exception as error:
        return b"!" + (str(error) or repr(error)).encode()


@contextmanager
def _stdout_to_stderr():
    """The CPU's collectives print to stdout, which is for results."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
