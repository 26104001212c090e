"""A solution together with all that its policy is made of: what a folder or an npz holds."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.instance import Instance
from lagjax.lp import OccSolution
from lagjax.policies import Policy
from lagjax.policies.lag import lag_policy
from lagjax.runs.record import digest

ARRAYS = ("index", "tie_weight", "task_price", "server_price", "free_fraction", "arrival_rate", "mean_duration")
FACTS = (
    "instance", "load", "servers_per_task", "largest_score", "blocking", "selection", "method", "objective", "bound",
    "relative_gap", "primal_residual", "dual_residual", "iterations", "ties_undecided", "zero_tolerance", "status",
    "face_dimensions",
)  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Stored:
    """A solution and the system that it is of; arrays are read-only.

    Attributes:
      instance: name of the system. load: rho. servers_per_task: k.
      largest_score: max s_vr, to which the tolerances of ties are relative.
      tasks: V ids of the task types. servers: R ids of the servers.
      arrival_rate: (V,) lambda_v per step. mean_duration: (V,) E[D_v], steps.
      solution: of OCC-LP(B).
    """

    instance: str
    load: float
    servers_per_task: int
    largest_score: float
    tasks: tuple[str, ...]
    servers: tuple[str, ...]
    arrival_rate: np.ndarray
    mean_duration: np.ndarray
    solution: OccSolution

    def policy(self) -> Policy:
        """LAG by this solution: the policy that `lag` makes of the instance, bit for bit."""
        s = self.solution
        return lag_policy(s.index, s.tie_weight, s.zero_tolerance, self.largest_score, s.ties_undecided)

    def rank(self, scores, mean_duration: float) -> np.ndarray:
        """Servers in the order in which LAG would ask them for a task that is not in the file, the best first.

        Args:
          scores: (R,) s_r of the task.
          mean_duration: E[D] of the task, steps.

        Returns:
          (R,) numbers of servers by decreasing s_r - E[D] q_r; ties by server order. The task's own price is the same for all.
        """
        value = np.asarray(scores, dtype=np.float64) - mean_duration * self.solution.server_price
        return np.argsort(-value, kind="stable")


def stored(instance: Instance, solution: OccSolution) -> Stored:
    """Puts a solution beside what its files need of the instance."""
    rate, duration = (np.array(x, dtype=np.float64) for x in (instance.arrival_rate, instance.mean_duration))
    scale = float(np.max(instance.scores))
    name, load, k = instance.name, float(instance.load), instance.servers_per_task
    return Stored(name, load, k, scale, instance.tasks, instance.servers, rate, duration, solution)


def facts_of(page: Stored) -> dict:
    """The numbers and names of a solution by the names of `FACTS`, as JSON has them."""
    named = {"relative_gap": page.solution.duality_gap}
    return {
        key: named[key] if key in named else getattr(page if hasattr(page, key) else page.solution, key)
        for key in FACTS
    }


def arrays_of(page: Stored) -> dict[str, np.ndarray]:
    """The arrays by the names of `ARRAYS`."""
    return {key: getattr(page if hasattr(page, key) else page.solution, key) for key in ARRAYS}


def assembled(facts: dict, tasks: tuple[str, ...], servers: tuple[str, ...], arrays: dict[str, np.ndarray]) -> Stored:
    """What `facts_of` and `arrays_of` were given.

    Raises:
      KeyError: a fact or an array is missing.
      ValueError: an array has another shape, or holds what is no finite number.
    """
    table, column = (len(tasks), len(servers)), (len(servers),)
    shapes: dict = {"index": table, "tie_weight": table, "server_price": column, "free_fraction": column}
    held: dict = {}
    for key in ARRAYS:
        array = np.array(arrays[key], dtype=np.float64)
        expected = shapes.get(key, (len(tasks),))
        if array.shape != expected:
            raise ValueError(f"{key} has shape {array.shape}, not {expected}")
        if not np.isfinite(array).all():
            raise ValueError(f"{key} holds what is no finite number")
        held[key] = array
    rate, duration, weight = held.pop("arrival_rate"), held.pop("mean_duration"), held["tie_weight"]
    solution = OccSolution(
        assignment_rate=rate[:, None] * weight, duality_gap=float(facts["relative_gap"]), **held,
        **{key: facts[key] for key in FACTS[4:-1] if key != "relative_gap"},
        face_dimensions=tuple(facts["face_dimensions"]),
    )  # fmt: skip
    for array in (rate, duration, solution.assignment_rate, *held.values()):
        array.setflags(write=False)
    name, load, k, scale = (facts[key] for key in FACTS[:4])
    return Stored(name, load, k, scale, tuple(tasks), tuple(servers), rate, duration, solution)


def checksum(page: Stored) -> str:
    """Of all that the files hold, the same for csv and npz."""
    return digest(facts_of(page), list(page.tasks), list(page.servers), *arrays_of(page).values())
