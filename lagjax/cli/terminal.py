"""How commands talk: results on stdout, progress and notes on stderr, one line for an error."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING

from lagjax.cli import interrupts
from lagjax.cli.letters import fitting
from lagjax.errors import InputError

if TYPE_CHECKING:
    from tqdm import tqdm


def say(text: str) -> None:
    """Prints a result to stdout, at once."""
    print(fitting(text, getattr(sys.stdout, "encoding", None)), flush=True)


def note(text: str) -> None:
    """Prints one line that is not a result to stderr."""
    print(fitting(text, getattr(sys.stderr, "encoding", None)), file=sys.stderr, flush=True)


def seldom(write: Callable[[str], object], every: float = 30.0) -> Callable[[str], None]:
    """Passes on the first of the texts that follow each other, and then one every so many seconds; "" ends them."""
    last: float | None = None

    def show(text):
        nonlocal last
        if not text:
            last = None
        elif last is None or time.monotonic() - last >= every:
            last = time.monotonic()
            write(text)

    return show


@contextmanager
def progress_bar(what: str, unit: str = "arrivals", shown: str = "auto") -> Iterator[Callable[[int, int], None]]:
    """Yields `update(done, total)`, shown as `--progress` says, and nothing before the first update."""
    from tqdm import tqdm

    interrupts.begin_work()
    hidden = shown in ("none", "lines") or (shown == "auto" and not sys.stderr.isatty())
    line = seldom(note) if shown == "lines" else None
    with ExitStack() as stack:
        bar = None

        def update(done, total):
            nonlocal bar
            if line is not None:
                line(f"{what}: {done:,} of {total:,} {unit}")
            if bar is None:
                bar = stack.enter_context(
                    tqdm(desc=what, unit=unit, unit_scale=unit == "arrivals", leave=False, disable=hidden)
                )
            bar.total = total
            bar.update(done - bar.n)

        yield update


@contextmanager
def text_line(place: int = 0) -> Iterator[Callable[[str], None]]:
    """Yields `show(text)`: a line on a terminal, so many below the first bar, that is gone at the end and with ""."""
    line: tqdm | None = None

    def show(text):
        nonlocal line
        from tqdm import tqdm

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

    On a terminal, and in a notebook where ipywidgets is installed; nothing before the run says a first word.
    """
    interrupts.begin_work()
    if not shown:
        yield lambda status: None
        return
    with ExitStack() as stack:
        view = None

        def first(status):
            nonlocal view
            view = view or _two_bars(stack, what, unit)
            view(status)

        yield first


def _two_bars(stack, what, unit):
    """Draws the bars, which go when the stack closes, and returns the view that moves them."""
    from tqdm import TqdmWarning
    from tqdm.auto import tqdm as chosen

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TqdmWarning)  # no ipywidgets: a bar of text
        whole, cell = (
            stack.enter_context(chosen(desc=d, unit=unit, unit_scale=True, leave=False, position=i))
            for i, d in enumerate((what, ""))
        )
    show = stack.enter_context(text_line(2))
    current, before = "", 0.0

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

    return view


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
        why = str(error) or f"JAX_PLATFORMS is {os.environ.get('JAX_PLATFORMS', '')}"
        raise InputError(
            f"JAX finds no device to run on ({why}); check JAX_PLATFORMS and the JAX installation"
        ) from None
