"""Ctrl-C at any moment of a command: one line, exit code 130, no traceback, and never lost."""

import random
import signal
import subprocess
import sys
import threading
import time
import tomllib
from pathlib import Path

import pytest

LINE = "lagjax: interrupted; run the same command again\n"
# The first lines of the command; from then on nothing may be lost.
COMMAND = """
from lagjax.cli import interrupts
interrupts.install()
print("up", flush=True)
from lagjax.cli.entry import main
main()
"""
ARGUMENTS = ("partial", "--model", "finite", "--rates", "0.1x8", "--capacity", "4", "--horizon", "100000000")


def started(code, *arguments):
    child = subprocess.Popen(
        [sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert child.stdout.readline() == "up\n"
    return child


def ended(child):
    out, err = child.communicate(timeout=120)
    return child.returncode, out, err


def test_at_random_moments_of_the_start():
    """Six processes at once; the last moments are after the imports, where JAX starts and compiles."""
    children = [started(COMMAND, *ARGUMENTS) for _ in range(6)]
    moments = random.Random(6)
    threads = [
        threading.Timer(wait, child.send_signal, [signal.SIGINT])
        for child, wait in zip(children, [0.0, *(moments.uniform(0, 6) for _ in range(5))], strict=True)
    ]
    for thread in threads:
        thread.start()
    for child in children:
        assert ended(child) == (130, "", LINE)


WORK = """
import gc, sys, threading, time
from lagjax.cli import interrupts
interrupts.install()
interrupts.begin_work()
def in_callback(phase, info):
    if phase == "start" and len(sys.argv) == 2:
        end = time.monotonic() + 1
        sys.argv.append("once")
        print("up", flush=True)
        while time.monotonic() < end:
            pass
def swallow():
    print("up", flush=True)
    try:
        time.sleep(5)
    except BaseException:
        pass
    time.sleep(5)
def clean_up():
    print("up", flush=True)
    try:
        time.sleep(5)
    finally:
        time.sleep(1)  # longer than the wait before an interrupt is raised again
        print("cleaned")
try:
    if sys.argv[1] == "callback":
        gc.callbacks.append(in_callback)
        gc.collect()
        time.sleep(5)
    else:
        {"swallow": swallow, "clean up": clean_up}[sys.argv[1]]()
except KeyboardInterrupt:
    interrupts.finish()
    print("interrupted")
"""


@pytest.mark.parametrize(
    ("where", "said"),
    [("callback", "interrupted\n"), ("swallow", "interrupted\n"), ("clean up", "cleaned\ninterrupted\n")],
)
def test_an_interrupt_that_a_library_swallows_comes_again(where, said):
    begun = time.monotonic()
    child = started(WORK, where)
    time.sleep(0.2)
    child.send_signal(signal.SIGINT)
    assert ended(child) == (0, said, "")
    assert time.monotonic() - begun < 5


def test_a_parent_may_have_it_ignored():
    code = COMMAND.replace("from lagjax.cli.entry import main\nmain()", "import time; time.sleep(0.5); print('done')")
    parent = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_IGN); os.execv(sys.executable, sys.argv[1:])"
    )
    child = started(parent, sys.executable, "-c", code)
    child.send_signal(signal.SIGINT)
    assert ended(child) == (0, "done\n", "")


def test_both_ways_to_start_a_command_take_it_over_first():
    """What the shell runs imports the package and this much, before it listens."""
    code = "import sys; from lagjax.cli import entry; print(sorted({'jax', 'numpy', 'typer'} & set(sys.modules)))"
    for arguments, said in (("-c", code), "[]\n"), (("-m", "lagjax", "--version"), "lagjax "):
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=120)
        assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith(said)
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["scripts"] == {"lagjax": "lagjax.cli.entry:main"}
