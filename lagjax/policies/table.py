"""A policy as data: per task type, the order in which tiers of servers fill and the shares within a tier."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.errors import InputError
from lagjax.given import printable

RULES = ("capped", "race")
TIE_TOLERANCE = 1e-9  # values this close, relative to the largest in the table, are equal


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Policy:
    """A work-conserving policy; build it with `make_policy`, which checks what it is given.

    For an arriving task the free servers (or copies) of the lowest tier go first. Within a tier, with free
    capacity c_r and theta set by the budget:

    - "capped": u_r = min(c_r, theta w_r), Waterfill's second stage (Lag, Appendix A); with single servers
      that is decreasing weight, ties by server order.
    - "race": copies are drawn one after another without replacement with probability proportional to weight.

    Attributes:
      name: what tables and files call the policy.
      tier: (V, R) int32, tiers of each type numbered 0, 1, ... without gaps; or (m, V, R), one such table for each number of
        running tasks 0..m-1, m = floor(R / k), each row a strict order (see `order_by_level`; one copy of every server only).
      weight: as `tier`, float64 > 0, comparable only within a tier.
      rule: "capped" or "race".
      notes: what a reader of results should know, in words.
    """

    name: str
    tier: np.ndarray
    weight: np.ndarray
    rule: str
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        *levels, types, servers = self.tier.shape
        by_level = f", {levels[0]} levels" if levels else ""
        return f"Policy({self.name!r}: {self.rule}, V = {types} task types, R = {servers} servers{by_level})"


def make_policy(name: str, tier, weight=None, rule: str = "race", notes=()) -> Policy:
    """Builds a checked policy.

    Args:
      name: what tables and files call the policy.
      tier: (V, R) whole numbers; lower ones fill first. They are renumbered 0, 1, ... per type.
      weight: (V, R) finite and not negative; 1 by default. Servers of weight 0 in a tier become a tier of
        their own right after it, with equal weights: they are used when no other server of that tier is left.
      rule: "capped" or "race"; see `Policy`.
      notes: sentences kept with the policy.

    Raises:
      InputError: a field that cannot be used, named with its value and what was expected.
    """
    if rule not in RULES:
        raise InputError(f"rule is {rule!r}; choose from {', '.join(RULES)}")
    tier = _table("tier", tier)
    if not np.array_equal(tier, np.floor(tier)):
        v, r = np.argwhere(tier != np.floor(tier))[0]
        raise InputError(f"tier[{v}, {r}] is {tier[v, r]:g}; tiers are whole numbers")
    weight = np.ones_like(tier) if weight is None else _table("weight", weight)
    if weight.shape != tier.shape:
        raise InputError(f"weight has shape {weight.shape} but tier has {tier.shape}; both are (V, R)")
    if weight.min() < 0:
        v, r = np.unravel_index(np.argmin(weight), weight.shape)
        raise InputError(f"weight[{v}, {r}] is {weight[v, r]:g}; weights are 0 or more")
    empty = ~_in_tiers(_ranked(tier), weight > 0)
    if empty.any():
        v, r = np.argwhere(empty)[0]
        raise InputError(
            f"tier {tier[v, r]:g} of task type {v} has zero total weight; give at least one positive weight"
        )
    late = weight == 0
    return _frozen(str(name), _ranked(2 * tier + late), np.where(late, 1.0, weight), rule, tuple(map(str, notes)))


def strict_order(policy: Policy) -> np.ndarray | None:
    """The order in which single servers (n = 1) are taken, when chance has no part in it.

    Returns:
      (V, R) int32, rank 0..R-1 of each server for each type, or (m, V, R) if the policy depends on the number of running
      tasks; or None when some race tier has several servers.
    """
    num_servers = policy.tier.shape[-1]
    if policy.rule == "race" and policy.tier.max(axis=-1).min() < num_servers - 1:
        return None
    rank = np.empty(policy.tier.shape, dtype=np.int32)
    for row in np.ndindex(policy.tier.shape[:-1]):
        order = np.lexsort((np.arange(num_servers), -policy.weight[row], policy.tier[row]))
        rank[row][order] = np.arange(num_servers)
    return rank


def from_priorities(priorities, ties: str = "order", name: str = "priorities") -> Policy:
    """A user's own index policy: for each type the free servers of highest priority go first.

    Args:
      priorities: (V, R) finite numbers; only their order within a type matters.
      ties: "order" takes equal servers by number, "random" draws among them with equal chances.
      name: what tables and files call the policy.

    Raises:
      InputError: a field that cannot be used.
    """
    if ties not in ("order", "random"):
        raise InputError(f"ties is {ties!r}; choose from order, random")
    priorities = _table("priorities", priorities)
    return make_policy(name, _ranked(-priorities), rule="capped" if ties == "order" else "race")


def order_by_level(priorities, name: str = "priorities by level", notes=()) -> Policy:
    """A policy that depends on the number of running tasks: for each type the free servers of highest priority go first.

    Args:
      priorities: (m, V, R) finite numbers, a table for each number of running tasks 0..m-1, m = floor(R / k) (with all m running
        every task is lost); ties by server number.
      name: what tables and files call the policy.
      notes: sentences kept with the policy.

    Raises:
      InputError: a field that cannot be used.
    """
    priorities = np.asarray(priorities)
    if priorities.ndim != 3 or priorities.size == 0:
        raise InputError(f"priorities has shape {priorities.shape}; expected a non-empty (m, V, R) table")
    flat = _table("priorities", priorities.reshape(-1, priorities.shape[-1]))
    rank = np.argsort(np.argsort(-flat, axis=1, kind="stable"), axis=1, kind="stable").reshape(priorities.shape)
    return _frozen(str(name), rank, np.ones(rank.shape), "capped", tuple(map(str, notes)))


def check_shape(policy: Policy, instance, levels: bool = False) -> None:
    """Raises InputError unless the policy is a (V, R) table of the instance, or, where `levels` are understood, (m, V, R)."""
    shape = instance.scores.shape
    by_level = (instance.num_servers // instance.servers_per_task, *shape)
    if policy.tier.shape == shape or (levels and policy.tier.shape == by_level):
        return
    if policy.tier.shape == by_level:
        raise InputError(
            f"policy '{policy.name}' depends on the number of running tasks, which is for one copy of every server only; "
            "choose a policy that does not"
        )
    raise InputError(f"policy '{policy.name}' has shape {policy.tier.shape}, instance '{instance.name}' has {shape}")


def tie_groups(values, tolerance: float) -> np.ndarray:
    """Ranks each row's values from the largest (0); steps of at most `tolerance` do not change the rank."""
    values = np.asarray(values, dtype=np.float64)
    order = np.argsort(-values, axis=1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=1)
    steps = ordered[:, :-1] - ordered[:, 1:] > tolerance
    ranks = np.concatenate([np.zeros((len(values), 1), dtype=np.int64), np.cumsum(steps, axis=1)], axis=1)
    groups = np.empty_like(ranks)
    np.put_along_axis(groups, order, ranks, axis=1)
    return groups


def close_calls(values, tolerance: float) -> int:
    """How many neighbours in a row, sorted by size, differ by between a tenth of the tolerance and ten times it.

    `tie_groups` could decide these otherwise with another round-off.
    """
    gaps = np.diff(np.sort(np.asarray(values), axis=1), axis=1)
    return int(((gaps > tolerance / 10) & (gaps < 10 * tolerance)).sum())


def _ranked(values):
    """Each row's values as ranks 0, 1, ... from the smallest; equal ones share a rank."""
    return np.stack([np.unique(row, return_inverse=True)[1].ravel() for row in values])


def _in_tiers(rank, chosen):
    """(V, R) whether some server of the same tier is chosen."""
    place = rank + rank.shape[1] * np.arange(len(rank))[:, None]
    return np.bincount(place.ravel(), chosen.ravel(), rank.size)[place] > 0


def _table(field, value):
    try:
        table = np.array(value, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{field} is not a numeric (V, R) table ({error})") from None
    if table.ndim != 2 or table.size == 0:
        raise InputError(f"{field} has shape {table.shape}; expected a non-empty (V, R) table")
    bad = np.argwhere(~np.isfinite(table))
    if bad.size:
        v, r = bad[0]
        raise InputError(f"{field}[{v}, {r}] is {table[v, r]}; every entry must be a finite number")
    return table


def _frozen(name, tier, weight, rule, notes):
    tier, weight = tier.astype(np.int32), weight.astype(np.float64)
    tier.setflags(write=False)
    weight.setflags(write=False)
    return Policy(printable("policy", name), tier, weight, rule, notes)
