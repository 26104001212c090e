"""How commands talk: results on stdout, progress and notes on stderr, one line for an error."""

from __future__ import annotations

import os
import sys
import warnings
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


@contextmanager
def text_line(place: int = 0) -> Iterator[Callable[[str], None]]:
    """Yields `show(text)`: a line on a terminal, so many below the first bar, that is gone at the end and with ""."""
    line: tqdm | None = None

    def show(text):
        nonlocal line
        if text and line is None:
            line = tqdm(bar_format="{desc}", leave=False, position=place)
        if line is not None:
            line.set_description_str(text)
        if line is not None and not text:
            line.close()
            line = None

    try:
        yield show
    finally:
        show("")


@contextmanager
def bars(what: str, unit: str, shown: bool = True) -> Iterator[Callable]:
    """Yields a view of a run (see `lagjax.runs.progress`): a bar for all of it and one for the cell that moved last.

    On a terminal, and in a notebook where ipywidgets is installed.
    """
    if not shown:
        yield lambda status: None
        return
    from tqdm import TqdmWarning
    from tqdm.auto import tqdm as chosen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # no ipywidgets: a bar of text
        whole, cell = (
            chosen(desc=d, unit=unit, unit_scale=True, leave=False, position=i) for i, d in enumerate((what, ""))
        )
    current, before = "", 0.0
    with whole, cell, text_line(2) as show:

        def view(status):
            nonlocal current, before
            if status.event in ("solving", "solved"):
                show(status.said)  # a program's name says whose it is
                return
            whole.total = status.work
            if status.event == "kept":
                before += status.job.work
                whole.initial = before  # no part of the rate
                whole.n = status.done
                whole.refresh()
                return
            whole.set_postfix_str(f"{status.ended}/{status.jobs} cells", refresh=False)
            whole.update(status.done - whole.n)
            if status.event == "finished":
                whole.refresh()
            if status.job.name != current:
                current = status.job.name
                cell.reset(total=status.job.work)
                cell.set_description(current)
            cell.update(status.share * status.job.work - cell.n)

        yield view


def use_all_cores(start: bool = True) -> None:
    """Gives JAX one CPU device per core, unless the user has said otherwise; replicas are shared among them.

    With `start` false JAX is left to start later, as processes that join others must.
    """
    import jax

    said = (
        "xla_force_host_platform_device_count" in os.environ.get("XLA_FLAGS", "") or "JAX_NUM_CPU_DEVICES" in os.environ
    )
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with suppress(RuntimeError):  # JAX already runs in this process: its devices are what they are
        if not said:
            jax.config.update("jax_num_cpu_devices", cores)
    if not start:
        return
    try:
        jax.local_devices()
    except (AssertionError, RuntimeError) as error:
        raise InputError(
            f"JAX finds no device to run on ({error}); check JAX_PLATFORMS and the JAX installation"
        ) from None
