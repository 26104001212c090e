"""Ctrl-C at any moment: one line and exit code 130, never a traceback, never swallowed. Imports nothing heavy.

While a command starts there is nothing to put in order, so the process ends at once: an exception could be lost in the
imports, many of which handle all. From `begin_work` on it is a KeyboardInterrupt, so that files and workers are left in order;
one that library code has swallowed is raised again, and a second Ctrl-C while the first is dealt with ends the process.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import threading
import time
from contextlib import suppress

CODE = 130
LINE = "lagjax: interrupted; run the same command again"
AGAIN = 0.3  # seconds after which an interrupt that has gone nowhere is raised again

_state = {"working": False, "asked": False, "over": False}


def install() -> None:
    """Takes Ctrl-C over, unless the parent has this process ignore it."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupt)


def begin_work() -> None:
    """From now on Ctrl-C raises KeyboardInterrupt: there is something to put in order."""
    _state["working"] = True


def asked() -> bool:
    """Whether Ctrl-C was pressed since work began, whatever has become of the exception."""
    return _state["asked"]


def finish() -> None:
    """The command is over, and what there is to say is said: only a process that hangs on its way out is ended."""
    _state["over"] = True


def _interrupt(number, frame):
    if _state["over"]:
        if _state["asked"]:
            os._exit(CODE)
        return
    if not _state["working"] or (_state["asked"] and _handled(threading.main_thread().ident)):
        with suppress(OSError):
            os.write(2, f"{LINE}\n".encode())
        os._exit(CODE)
    if not _state["asked"]:
        _state["asked"] = True
        _quieten()
        threading.Thread(target=_insist, args=(threading.main_thread().ident,), daemon=True).start()
    raise KeyboardInterrupt


def _quieten():
    """What cannot be raised, such as in a callback of the garbage collector, comes again: no word about it."""
    shown = sys.unraisablehook
    sys.unraisablehook = lambda what: None if what.exc_type is KeyboardInterrupt else shown(what)


def _insist(main):
    while not _state["over"]:
        time.sleep(AGAIN)
        if not _state["over"] and not _handled(main):
            _send(main)


def _send(main):
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(main, signal.SIGINT)  # wakes what waits, which the other does not
    else:
        _thread.interrupt_main()


def _handled(main):
    """Whether the main thread is handling a KeyboardInterrupt, or an exception that came from one."""
    found = sys._current_exceptions().get(main)
    error = found[1] if isinstance(found, tuple) else found
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__context__
    return False
