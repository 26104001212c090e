"""Mehrotra's primal-dual interior-point method for the scaled assignment programs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence

import numpy as np

from lagjax.lp.newton import Curvature, NewtonSystem
from lagjax.lp.program import Program

_MAX_ITERATIONS = 200
_MIN_SHARE = 0.01  # a path whose weights differ by more narrows, and steps on it shorten
USUAL = 1e-12  # relative complementarity at which the partition of most programs is clear
_ENOUGH = 1e-22  # and of nearly degenerate ones; products keep their relative precision to there
_SHORTEN = 0.99  # part of the step to the boundary that is taken


@dataclasses.dataclass(frozen=True, eq=False)
class Point:
    """Primal and dual variables; every array but the prices is positive inside.

    Attributes:
      w, up, low, high: (V, R) w_vr, the room bound - w_vr, and their multipliers.
      idle, idle_low: (R,) idle_r and its multiplier.
      spare, spare_low: (V,) spare_v and its multiplier; ones and zeros when the demand is exact.
      type_price: (V,) lambda_v price_v. server_price: (R,) q_r.
    """

    w: np.ndarray
    up: np.ndarray
    idle: np.ndarray
    spare: np.ndarray
    low: np.ndarray
    high: np.ndarray
    idle_low: np.ndarray
    spare_low: np.ndarray
    type_price: np.ndarray
    server_price: np.ndarray


_PRIMAL, _DUAL = ("w", "up", "idle", "spare"), ("low", "high", "idle_low", "spare_low")


def path(program: Program) -> Iterator[tuple[Point, float]]:
    """Yields (point, complementarity relative to the size of the objective) after every step.

    The products of rare types are driven down in proportion to their rates, as far as _MIN_SHARE, so that their prices are
    resolved too.
    """
    p = _start(program)
    size = max(float(program.rate.sum() * program.demand), 1e-300)
    wanted = program.rate / program.rate.mean()
    share = np.maximum(wanted, _MIN_SHARE)
    enough = _ENOUGH * float((wanted / share).min())
    aim = (share[:, None], share[:, None], 1.0, 0.0 if program.coupled else share)
    count = 2 * p.w.size + p.idle.size + (0 if program.coupled else p.spare.size)
    for _ in range(_MAX_ITERATIONS):
        system = NewtonSystem(program.occupancy, _curvature(program, p))
        products = _products(p)
        mu = sum(x.sum() for x in products) / count
        guess = _direction(program, p, system, [-x for x in products])
        ahead = _move(p, guess, *_steps(p, guess, 1.0))
        target = mu * (sum(x.sum() for x in _products(ahead)) / count / mu) ** 3
        second = _products(guess)
        aims = [target * a - x - y for a, x, y in zip(aim, products, second, strict=True)]
        step = _direction(program, p, system, aims)
        p = _move(p, step, *_steps(p, step, _SHORTEN))
        left = float(sum(x.sum() for x in _products(p)) / size)
        if not np.isfinite(left):
            return
        yield p, left
        if left < enough:
            return


def _start(program: Program) -> Point:
    """A strictly feasible primal point, multipliers of the size of the rates."""
    num_types, num_servers = program.scores.shape
    coupled, load = program.coupled, program.occupancy.sum()
    even = program.demand / num_servers
    if not coupled:
        even = 0.5 * min(even, 1.0, 1 / load)
    w = np.full((num_types, num_servers), even)
    idle = np.full(num_servers, 1 - load * even)
    weight = np.repeat(program.rate[:, None], num_servers, axis=1)
    server = np.full(num_servers, program.rate.sum() if coupled else 1 / program.duration.mean())
    return Point(
        w=w,
        up=(idle if coupled else 1.0) - w,
        idle=idle,
        spare=np.ones(num_types) if coupled else program.demand - w.sum(1),
        low=weight,
        high=weight,
        idle_low=server,
        spare_low=np.zeros(num_types) if coupled else program.rate,
        type_price=program.rate * program.scores.mean(1),
        server_price=server,
    )


def _curvature(program: Program, p: Point) -> Curvature:
    low, high, idle = p.low / p.w, p.high / p.up, p.idle_low / p.idle
    total = low + high
    if program.coupled:
        inverse_idle = 1 / (idle + (low * high / total).sum(0))
        return Curvature(1 / total, high / total, inverse_idle, np.zeros_like(p.spare))
    return Curvature(1 / total, None, 1 / idle, p.spare / p.spare_low)


def _direction(program: Program, p: Point, system: NewtonSystem, aims: Sequence[np.ndarray]) -> Point:
    """The Newton step towards the given changes of the products of `_PRIMAL` and `_DUAL`."""
    a, coupled = program.occupancy[:, None], program.coupled
    t_low, t_high, t_idle, t_spare = aims
    price = p.type_price[:, None] + a * p.server_price
    pull_high = t_high / p.up
    dw, d_idle, d_spare, d_type, d_server = system.solve(
        program.rate[:, None] * program.scores - price + p.low - p.high + t_low / p.w - pull_high,
        p.idle_low - p.server_price + t_idle / p.idle + ((p.high + pull_high).sum(0) if coupled else 0.0),
        np.zeros_like(p.spare) if coupled else p.spare_low - p.type_price + t_spare / p.spare,
        program.demand - p.w.sum(1) - (0.0 if coupled else p.spare),
        1 - p.idle - (a * p.w).sum(0),
    )
    d_up = (d_idle if coupled else 0.0) - dw
    return Point(
        w=dw, up=d_up, idle=d_idle, spare=d_spare, low=(t_low - p.low * dw) / p.w,
        high=(t_high - p.high * d_up) / p.up, idle_low=(t_idle - p.idle_low * d_idle) / p.idle,
        spare_low=(t_spare - p.spare_low * d_spare) / p.spare, type_price=-d_type, server_price=-d_server,
    )  # fmt: skip


def _products(p: Point) -> list[np.ndarray]:
    return [getattr(p, x) * getattr(p, y) for x, y in zip(_PRIMAL, _DUAL, strict=True)]


def _steps(p: Point, d: Point, shorten: float) -> list[float]:
    """Longest primal and dual steps that keep every variable positive, shortened, at most 1."""
    return [
        min(1.0, shorten * min(_longest(getattr(p, x), getattr(d, x)) for x in names)) for names in (_PRIMAL, _DUAL)
    ]


def _longest(x: np.ndarray, dx: np.ndarray) -> float:
    return 1 / max(1e-300, float(np.max(-dx / np.maximum(x, 1e-300))))


def _move(p: Point, d: Point, primal: float, dual: float) -> Point:
    step = dict.fromkeys(_PRIMAL, primal)
    return Point(
        **{f.name: getattr(p, f.name) + step.get(f.name, dual) * getattr(d, f.name) for f in dataclasses.fields(p)}
    )
