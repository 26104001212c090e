"""Dispatching policies as data: an index for every belief, or one of the rules that need none.

Among servers of equal index the fastest is chosen; among equally fast ones the one to which fewer jobs come by themselves;
then the first. A new index policy is a new table: `from_index`. Join the shortest queue sees all backlogs and meets far more
ties. What it earns depends on how it breaks them: at random by convention (`jsq`), or towards the slower or the faster
server; either can win.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from lagjax.errors import InputError
from lagjax.partial_information.arms import Arm, arms_of
from lagjax.partial_information.index import PRECISION, whittle_indices
from lagjax.partial_information.system import System

POLICIES = ("whittle", "myopic", "round-robin", "random", "jsq", "jsq-slower", "jsq-faster")
RULES = ("index", "turn", "random", "backlog")
TIES = ("faster", "slower", "random")


@dataclasses.dataclass(frozen=True, eq=False)
class Dispatching:
    """A policy.

    Attributes:
      name: for tables.
      rule: "index" (the highest), "turn" (one after another), "random" (any) or "backlog" (the lowest, which it is told).
      index: for the rule "index", a (K+1, T) table for each of `System.kinds`, by q and age less one; ages beyond T count as T.
      ties: for the rule "backlog", which of the shortest queues is chosen: the "faster" or the "slower" server's, those
        that are equally fast as above, or a "random" one, each alike.
    """

    name: str
    rule: str
    index: tuple[np.ndarray, ...] | None = None
    ties: str = "faster"


_WITHOUT_INDEX = {
    "round-robin": Dispatching("round-robin", "turn"),
    "random": Dispatching("random", "random"),
    "jsq": Dispatching("jsq", "backlog", ties="random"),
    "jsq-slower": Dispatching("jsq-slower", "backlog", ties="slower"),
    "jsq-faster": Dispatching("jsq-faster", "backlog", ties="faster"),
}


def from_index(index: Sequence[np.ndarray], name: str) -> Dispatching:
    """Makes a policy of index tables, (K+1, T) for each of `System.kinds`; higher is chosen first.

    Raises:
      InputError: an index is not a number.
    """
    index = tuple(np.asarray(table, np.float64) for table in index)
    if any(np.isnan(table).any() for table in index):
        raise InputError(f"policy '{name}' has an index that is not a number")
    return Dispatching(name, "index", index)


def build_policies(
    names: Sequence[str], system: System, arms: Sequence[Arm] | None = None, precision: float = PRECISION
) -> list[Dispatching]:
    """Builds the named policies, in that order.

    Args:
      names: of POLICIES.
      arms: `arms_of(system)` by default.
      precision: as in `whittle_indices`.

    Raises:
      InputError: an unknown name, one given twice, or ages too few for the precision.
    """
    for i, name in enumerate(names):
        if name not in POLICIES:
            raise InputError(f"no policy '{name}'; choose from {', '.join(POLICIES)}")
        if name in names[:i]:
            raise InputError(f"policy '{name}' is named twice; name it once")
    built = []
    for name in names:
        if name in ("whittle", "myopic"):
            arms = arms_of(system) if arms is None else arms
            index = (
                [t.index for t in whittle_indices(arms, precision)] if name == "whittle" else [a.expected for a in arms]
            )
            built.append(from_index(index, name))
        else:
            built.append(_WITHOUT_INDEX[name])
    return built
