"""What is simulated: scores, arrival rates and service laws of one loss system (Lag, section 1.1)."""

from __future__ import annotations

import dataclasses
import math
import sys
from collections.abc import Sequence

import jax
import numpy as np

from lagjax.durations import from_pmf, mean_duration, stack_laws
from lagjax.errors import InputError
from lagjax.given import printable

_LOAD_SLACK = 1e-9
_LEAST_RATE = sys.float_info.min  # arrivals per step; rarer ones have no full precision
LEAST_LOAD = (
    1e-6  # below it the 32-bit words that gaps between tasks are drawn from are too coarse, and programs too flat
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Instance:
    """One system of R servers and V task types; build it with `make_instance`, which checks what it is given.

    A pytree: the arrays are data, the rest is static, so a sweep over loads compiles once.

    Attributes:
      scores: (V, R) reward s_vr >= 0 of one server on one task.
      arrival_rate: (V,) lambda_v > 0, probability per step that a type-v task arrives; sums to 1 at most.
      service_pmf: (V, d) P(D_v = i + 1), in steps.
      servers_per_task: k, servers that each task takes.
      name: what tables and files call the instance.
      tasks: V names of the task types.
      servers: R names of the servers.
    """

    scores: np.ndarray
    arrival_rate: np.ndarray
    service_pmf: np.ndarray
    servers_per_task: int
    name: str
    tasks: tuple[str, ...]
    servers: tuple[str, ...]

    def __repr__(self) -> str:
        if not isinstance(self.arrival_rate, np.ndarray):  # inside a traced function
            return f"Instance({self.name!r})"
        sizes = f"V = {self.num_types} task types, R = {self.num_servers} servers, k = {self.servers_per_task}"
        return f"Instance({self.name!r}: {sizes}, load {self.load:.4g})"

    @property
    def num_types(self) -> int:
        """V."""
        return self.scores.shape[-2]

    @property
    def num_servers(self) -> int:
        """R."""
        return self.scores.shape[-1]

    @property
    def max_duration(self) -> int:
        """d, in steps."""
        return self.service_pmf.shape[-1]

    @property
    def mean_duration(self) -> np.ndarray:
        """(V,) E[D_v], in steps."""
        return mean_duration(self.service_pmf)

    @property
    def total_rate(self) -> float:
        """Lambda = sum_v lambda_v, tasks per step."""
        return float(np.sum(self.arrival_rate))

    @property
    def load(self) -> float:
        """rho = k sum_v lambda_v E[D_v] / R."""
        return float(self.servers_per_task * (self.arrival_rate @ self.mean_duration) / self.num_servers)

    @property
    def max_load(self) -> float:
        """1 - k / R, the largest load at which OCC-LP(0) is feasible (Assumption 4.1 asks for less)."""
        return 1 - self.servers_per_task / self.num_servers

    def with_load(self, load: float) -> Instance:
        """Returns the same instance with all arrival rates scaled to the given load rho in [LEAST_LOAD, 1 - k/R].

        Raises:
          InputError: the load is outside that range, too small to compute with, or would need more than one arrival per step.
        """
        load = as_number("load", load)
        if self.max_load <= 0:
            raise InputError(
                f"instance '{self.name}' has {self.num_servers} servers and every task takes {self.servers_per_task} of them, so "
                "no load is feasible (1 - k/R = 0); use fewer servers per task or more servers"
            )
        if not LEAST_LOAD <= load <= self.max_load + _LOAD_SLACK:
            raise InputError(
                f"load {load:g} of instance '{self.name}' is outside [{LEAST_LOAD:g}, 1 - k/R]; "
                f"choose a load from {LEAST_LOAD:g} to {self.max_load:.6g}"
            )
        least = _LEAST_RATE * float(self.load / self.arrival_rate.min())
        if load < least:
            raise InputError(
                f"load {load:g} of instance '{self.name}' makes arrivals too rare to compute with; choose a load from "
                f"{least:.3g} to {self.max_load:.6g}"
            )
        rates = self.arrival_rate * (load / self.load)
        if rates.sum() > 1 + 1e-12:
            raise InputError(
                f"load {load:g} of instance '{self.name}' needs {rates.sum():.4g} arrivals per step, at most 1 is "
                f"possible; use a load up to {load / rates.sum():.4g} or shorter steps"
            )
        return dataclasses.replace(self, arrival_rate=rates)


jax.tree_util.register_dataclass(
    Instance,
    data_fields=["scores", "arrival_rate", "service_pmf"],
    meta_fields=["servers_per_task", "name", "tasks", "servers"],
)


def make_instance(
    scores,
    service,
    *,
    servers_per_task: int = 1,
    arrival_rate=None,
    load: float | None = None,
    mix=None,
    name: str = "instance",
    tasks: Sequence[str] | None = None,
    servers: Sequence[str] | None = None,
) -> Instance:
    """Builds a checked instance.

    Args:
      scores: (V, R) reward of each server on each task type, finite and not negative.
      service: one law for all types, or V laws (see `lagjax.durations`; a law is P(D = 1), P(D = 2), ...).
      servers_per_task: k, between 1 and R.
      arrival_rate: (V,) tasks per step of each type, positive, summing to 1 at most. Either this or `load`.
      load: rho in (0, 1 - k/R]; the rates are then `mix` scaled to it.
      mix: (V,) positive relative arrival rates, used with `load`; equal by default.
      name: what tables and files call the instance.
      tasks, servers: names; numbered by default.

    Raises:
      InputError: a field that cannot be used, named with its value and what was expected.
    """
    scores = _finite_array("scores", scores, ndim=2)
    num_types, num_servers = scores.shape
    if scores.min() < 0:
        v, r = np.unravel_index(np.argmin(scores), scores.shape)
        raise InputError(f"scores[{v}, {r}] is {scores[v, r]:g}; scores are 0 or more (shift or clip them)")
    if scores.max() == 0:
        raise InputError("scores are all 0, so every policy earns nothing; give at least one positive score")
    k = as_number("servers_per_task", servers_per_task)
    if k != round(k) or k < 1:
        raise InputError(f"servers_per_task is {servers_per_task!r}; give a whole number, 1 or more")
    if servers_per_task > num_servers:
        raise InputError(f"servers_per_task is {servers_per_task} but there are only {num_servers} servers; lower it")
    if (arrival_rate is None) == (load is None):
        raise InputError("give either arrival_rate or load (with an optional mix), not both or neither")
    if load is not None:
        given = np.ones(num_types) if mix is None else _positive_vector("mix", mix, num_types)
        rates = given / given.max()
        rates = rates / rates.sum() / 2
    else:
        if mix is not None:
            raise InputError("mix goes with load; arrival_rate already says how the types mix")
        rates = _positive_vector("arrival_rate", arrival_rate, num_types)
        if rates.sum() > 1 + 1e-12:
            raise InputError(
                f"arrival_rate sums to {rates.sum():.6g}; at most one task arrives per step, so keep it at 1 or below"
            )
    instance = Instance(
        scores=scores,
        arrival_rate=rates,
        service_pmf=_service_table(service, num_types),
        servers_per_task=int(k),
        name=printable("name", str(name)),
        tasks=_names("tasks", tasks, num_types),
        servers=_names("servers", servers, num_servers),
    )
    return instance if load is None else instance.with_load(load)


def _finite_array(field, value, ndim):
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{field} is not a numeric {ndim}-d array ({error}); give equal-length rows of numbers"
        ) from None
    if array.ndim != ndim or array.size == 0:
        raise InputError(f"{field} has shape {array.shape}; expected {ndim} non-empty dimensions")
    bad = np.argwhere(~np.isfinite(array))
    if bad.size:
        where = ", ".join(map(str, bad[0]))
        raise InputError(f"{field}[{where}] is {array[tuple(bad[0])]}; every entry must be a finite number")
    return array


def _positive_vector(field, value, length):
    array = _finite_array(field, value, ndim=1)
    if array.shape != (length,):
        raise InputError(f"{field} has {array.size} entries; expected {length}, one per task type")
    if array.min() <= 0:
        v = int(np.argmin(array))
        raise InputError(f"{field}[{v}] is {array[v]:g}; rates are positive (leave out a type that never arrives)")
    return array


def _service_table(service, num_types):
    try:
        one_law = np.ndim(service) == 1
    except ValueError:  # laws of unequal length
        one_law = False
    try:
        laws = [service] * num_types if one_law else list(service)
    except TypeError:
        raise InputError(
            f"service is {service!r}; give a law, such as lagjax.geometric(20), or one law per task type"
        ) from None
    if len(laws) != num_types:
        raise InputError(f"service has {len(laws)} laws; expected one for all types or {num_types}, one per type")
    return stack_laws([from_pmf(law) for law in laws])


def _names(field, names, length):
    try:
        names = tuple(map(str, range(length))) if names is None else tuple(printable(field, str(n)) for n in names)
    except TypeError:
        raise InputError(f"{field} is {names!r}; give {length} names") from None
    if len(names) != length:
        raise InputError(f"{field} has {len(names)} names; expected {length}")
    if len(set(names)) != length:
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(f"{field} names '{twice}' twice; names must differ")
    return names


def as_number(field: str, value) -> float:
    """Returns `value` as a finite float.

    Raises:
      InputError: it is not one number.
    """
    try:
        number = float(value) if not isinstance(value, (bool, str)) and np.ndim(value) == 0 else math.nan
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{field} is {value!r}; give a finite number")
    return number
