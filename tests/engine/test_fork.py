"""A process forked after JAX has started is refused, where it would wait for ever."""

import os
import subprocess
import sys

import pytest

SCRIPT = """
import os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from lagjax.engine.devices import place_replicas
from lagjax.errors import RunError
from lagjax.runs.execute import execute
from lagjax.runs.running import Running
before = {"ours": lambda: place_replicas(2), "a run without JAX": lambda: execute([], {}, Running()), "nothing": lambda: None}
if sys.argv[1] == "jax":
    import jax
    jax.local_devices()
else:
    before[sys.argv[1]]()
if os.fork() == 0:
    for work in (lambda: place_replicas(2).by_replica(np.zeros(2)), lambda: execute([], {}, Running())):
        try:
            work()
            print("ran", flush=True)
        except RunError as error:
            print(error, flush=True)
    os._exit(0)
os.wait()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.parametrize(
    ("before", "refused"), [("ours", True), ("a run without JAX", False), ("jax", True), ("nothing", False)]
)
def test_a_copy_of_a_process_that_used_jax_is_refused(before, refused):
    done = subprocess.run([sys.executable, "-c", SCRIPT, before], capture_output=True, text=True, timeout=120)
    said = done.stdout.splitlines()
    assert len(said) == 2, done.stderr
    for line in said:
        assert "'spawn'" in line and line.startswith("this process was forked") if refused else line == "ran"
