"""HiGHS in a child: the same answer, an interrupt that is obeyed, a child that dies."""

import signal
import subprocess
import threading
import time

import numpy as np
import pytest
import scipy.optimize

from lagjax.lp import outside

PROGRAM = {"c": np.array([-1.0, -2.0]), "A_ub": np.array([[1.0, 1.0]]), "b_ub": np.array([1.5]), "bounds": (0, 1)}


def test_a_child_gives_the_same_answer(monkeypatch):
    monkeypatch.setattr(outside, "LARGE", 2)
    here = scipy.optimize.linprog(**PROGRAM)
    there = outside.stoppable_linprog(**PROGRAM)
    assert (there.status, there.fun) == (0, here.fun) == (0, -2.5)
    np.testing.assert_array_equal(there.x, here.x)
    np.testing.assert_array_equal(there.ineqlin.marginals, here.ineqlin.marginals)


def test_a_child_that_dies_is_no_answer(monkeypatch):
    monkeypatch.setattr(outside, "LARGE", 2)
    monkeypatch.setattr(outside, "_WORK", "import sys; sys.exit(9)")
    answer = outside.stoppable_linprog(**PROGRAM)
    assert answer.status != 0 and "code 9" in answer.message


def test_an_interrupt_ends_the_child_and_the_call(monkeypatch):
    """A solver that would go on for a minute; Ctrl-C reaches this process."""
    monkeypatch.setattr(outside, "LARGE", 2)
    monkeypatch.setattr(outside, "_WORK", "import time; time.sleep(60)")
    children, start = [], subprocess.Popen.__init__

    def noted(self, *args, **kwargs):
        children.append(self)
        start(self, *args, **kwargs)

    monkeypatch.setattr(subprocess.Popen, "__init__", noted)
    main = threading.main_thread().ident
    timer = threading.Timer(0.5, signal.pthread_kill, (main, signal.SIGINT))
    begun = time.monotonic()
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        outside.stoppable_linprog(**PROGRAM)
    assert time.monotonic() - begun < 30
    assert children[0].poll() is not None
