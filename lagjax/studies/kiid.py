"""OPT(KIID) beside the results of a study: a line for reference, left out where it would cost more than all the rest.

What decides are counts of operations, never times: the same study gives the same results on every machine.
"""

from __future__ import annotations

from collections.abc import Collection

import xarray as xr

from lagjax.errors import InputError
from lagjax.instance import Instance
from lagjax.tune import TUNED

KIID = ("auto", "always", "never")
SOLVED_ANYWAY = ("alg-sc-lp", TUNED)  # policies that are made from the KIID LP
PROGRAMS = 3  # OCC-LPs that a cell solves at least: for its policy, at B_hat, and for its dagger
ITERATIONS = 40  # of an interior method, V R min(V, R) operations each
EVALUATIONS = 1000  # of the dual method, V R times as many operations each as one root takes
ROOT = 20
EVENT = 20  # operations per task, policy and server in simulation, a few per server and the draws


def check_kiid(choice: str) -> str:
    """Returns the choice.

    Raises:
      InputError: it is none of `KIID`.
    """
    if choice not in KIID:
        raise InputError(f"kiid is {choice!r}; choose from {', '.join(KIID)}")
    return choice


def wants_kiid(choice: str, instance: Instance, policies: Collection[str], tasks: float = 0.0) -> bool:
    """Whether a cell solves the KIID LP.

    Args:
      choice: "always", "never", or "auto": if a policy needs it anyway, or it costs no more operations than the rest.
      instance: the cell's.
      policies: names of its policies.
      tasks: simulated in the cell, times its policies; 0 where that is not known beforehand.
    """
    if choice != "auto":
        return choice == "always"
    pairs = instance.num_types * instance.num_servers
    interior = ITERATIONS * pairs * min(instance.num_types, instance.num_servers)
    rest = PROGRAMS * min(interior, EVALUATIONS * ROOT * pairs) + EVENT * tasks * instance.num_servers
    return any(name in SOLVED_ANYWAY for name in policies) or interior <= rest


def kiid_note(data: xr.Dataset) -> list[str]:
    """Says, in a line if there is something to say, of which instances OPT(KIID) was left out, and why."""
    skipped = data.kiid_ub.isnull() & data.occ_ub.notnull()
    names = [str(name) for name in data.instance.values if skipped.sel(instance=name).any()]
    if not names:
        return []
    asked = data.attrs.get("kiid") == "never"
    why = "as asked" if asked else "it costs more than the rest, and --kiid always solves it"
    return [f"kiid skipped: no OPT(KIID), a line for reference, for {', '.join(names)} ({why})"]
