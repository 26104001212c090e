"""The optimum where it costs nothing to speak of, for results to stand beside."""

from __future__ import annotations

from typing import NamedTuple

from lagjax.errors import InputError
from lagjax.exact.blocking import exact_blocking
from lagjax.exact.many import is_small
from lagjax.exact.optimum import optimum
from lagjax.instance import Instance
from lagjax.lp import SolverError, occ_upper_bound


class KnownOptimum(NamedTuple):
    """The best that any policy can do; both numbers are exact, so their quotient has no interval.

    Attributes:
      reward: reward per step of the best policy.
      occ_ub: OPT(OCC-LP(B)) at the exact blocking B, reward per step.
    """

    reward: float
    occ_ub: float


def known_optimum(instance: Instance) -> KnownOptimum | None:
    """The optimum beside its bound, or None where the chain that tells every server apart has more than 512 states."""
    if not is_small(instance):
        return None
    try:
        return KnownOptimum(optimum(instance).reward, occ_upper_bound(instance, exact_blocking(instance)))
    except (InputError, SolverError):  # an arrival at every step with durations that are not geometric; no convergence
        return None
