"""SciPy's HiGHS in a process of its own, where it can be stopped: inside one call it answers no interrupt until it has ended."""

from __future__ import annotations

import pickle
import subprocess
import sys

import scipy.optimize

LARGE = 10_000  # variables from which a program may take more than a second

_WORK = (
    "import pickle, sys, scipy.optimize; "
    "pickle.dump(scipy.optimize.linprog(**pickle.load(sys.stdin.buffer)), sys.stdout.buffer)"
)


def stoppable_linprog(**arguments) -> scipy.optimize.OptimizeResult:
    """`scipy.optimize.linprog`; a large program is solved by a child that ends with this call, however it ends.

    Where the child dies, as for lack of memory, the answer has SciPy's status 4 and says so.
    """
    if len(arguments["c"]) < LARGE or not sys.executable:
        return scipy.optimize.linprog(**arguments)
    # Its own session: Ctrl-C reaches this process only, which then ends the child.
    with subprocess.Popen(
        [sys.executable, "-c", _WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as child:  # fmt: skip
        try:
            answer, _ = child.communicate(pickle.dumps(arguments))
        except BaseException:
            child.kill()
            child.wait()
            raise
    if child.returncode != 0:
        said = f"its process ended with code {child.returncode}; it may have lacked memory"
        return scipy.optimize.OptimizeResult(status=4, message=said)
    return pickle.loads(answer)
