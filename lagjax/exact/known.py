"""The optimum where it costs nothing to speak of, for results to stand beside."""

from __future__ import annotations

from lagjax.errors import InputError
from lagjax.exact.many import is_small
from lagjax.exact.optimum import optimum
from lagjax.instance import Instance
from lagjax.lp import SolverError


def known_optimum(instance: Instance) -> float | None:
    """Reward per step of the best policy, or None where the chain that tells every server apart has more than 512 states."""
    if not is_small(instance):
        return None
    try:
        return optimum(instance).reward
    except (InputError, SolverError):  # an arrival at every step with durations that are not geometric; no convergence
        return None
