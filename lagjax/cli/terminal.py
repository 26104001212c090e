"""How commands talk: results on stdout, progress and notes on stderr, one line for an error."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tqdm import tqdm

from lagjax.errors import InputError


def note(text: str) -> None:
    """Prints one line that is not a result."""
    print(text, file=sys.stderr)


@contextmanager
def progress_bar(what: str, unit: str = "arrivals") -> Iterator[Callable[[int, int], None]]:
    """Yields `update(done, total)`; a bar on a terminal, nothing in a pipe."""
    with tqdm(desc=what, unit=unit, unit_scale=unit == "arrivals", leave=False, disable=not sys.stderr.isatty()) as bar:

        def update(done, total):
            bar.total = total
            bar.update(done - bar.n)

        yield update


def use_all_cores() -> None:
    """Gives JAX one CPU device per core, unless the user has said otherwise; replicas are shared among them."""
    import jax

    said = (
        "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "") or "JAX_NUM_CPU_DEVICES" in os.environ
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(RuntimeError):  # JAX already runs in this process: its devices are what they are
        if not said:
            jax.config.update("jax_num_cpu_devices", cores)
    try:
        jax.local_devices()
    except (AssertionError, RuntimeError) as error:
        raise InputError(
            f"JAX finds no device to run on ({error}); check JAX_PLATFORMS and the JAX installation"
        ) from None
