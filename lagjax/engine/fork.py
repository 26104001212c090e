"""Processes made by `os.fork` after JAX has started: JAX's threads stay behind, and the copy would wait for them for ever."""

from __future__ import annotations

import os
import sys
from contextlib import suppress

from lagjax.errors import RunError

_state = {"started": False, "forked": False}


def check_not_forked() -> None:
    """Raises RunError where this process is a copy of one in which JAX had started."""
    if _state["forked"]:
        raise RunError(
            "this process was forked from one that had used JAX, whose threads a fork does not copy, so it would wait for "
            "ever; start processes with multiprocessing.get_context('spawn'), or fork before anything is simulated"
        )


def jax_starts() -> None:
    """Says that JAX is about to be used here, and raises RunError where it cannot be; see `check_not_forked`."""
    check_not_forked()
    _state["started"] = True


def _in_copy():
    _state["forked"] = _state["forked"] or _state["started"] or _jax_started()


def _jax_started():
    """Whether JAX has started, though not by us; where it has not been imported it has not."""
    bridge = sys.modules.get("jax._src.xla_bridge")  # JAX has no public name for it
    with suppress(Exception):
        return bridge is not None and bool(bridge.backends_are_initialized())
    return False


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_copy)
