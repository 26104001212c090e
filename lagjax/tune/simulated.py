"""The search by simulation: rounds of candidates, each raced against the incumbent on replicas of its own."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from lagjax.instance import Instance
from lagjax.policies.table import Policy, make_policy
from lagjax.tune.candidates import distinct, lag_policies, named_policies, order_by, price_policies
from lagjax.tune.exactly import Found
from lagjax.tune.gradient import gradient_policies
from lagjax.tune.moves import combined, places, shifts, swaps
from lagjax.tune.racing import STAGES, Race, race
from lagjax.tune.trials import Trial, derived_seed

FALSE_CHOICE = 0.05  # over all rounds of one search
ROUNDS = 17  # at most, two for every kind of move
MAX_CANDIDATES = 320  # per round
MAX_SERVERS = 10_000  # per round, candidates times servers
MAX_SCALED = 16  # candidates at several copies, besides LAG
MAX_STAGES = 6  # of the race of LAG at different optima there
SHIFTS = (1.5, 4.5)  # places that a server moves up or down for all types


class _Races:
    """Races of candidates against an incumbent; every draw has a new seed."""

    def __init__(self, trial: Trial, seed: int) -> None:
        self._trial, self._seed, self._numbers = trial, seed, itertools.count()

    def new_seed(self) -> int:
        return derived_seed(self._seed, next(self._numbers))

    def run(
        self, incumbent: Policy, candidates: Sequence[Policy], rounds: int = ROUNDS, stages: int = STAGES
    ) -> tuple[Policy, Race]:
        """The incumbent after one of so many rounds, and how that went."""

        def sample(arms: Sequence[int], stage: int) -> np.ndarray:
            policies = [incumbent, *(candidates[arm] for arm in arms)]
            return np.concatenate([self._trial(policies, self.new_seed()) for _ in range(2**stage)], axis=1)

        outcome = race(sample, len(candidates), FALSE_CHOICE / rounds, stages)
        return (incumbent if outcome.winner is None else candidates[outcome.winner]), outcome


def search_single(instance: Instance, trial: Trial, seed: int) -> Found:
    """Races policies at one copy of every server: named ones, LAG at other prices, gradient steps, then moves around the best.

    The incumbent is LAG at the canonical optimum. Each of up to ROUNDS races may replace it and has a false-choice rate of
    FALSE_CHOICE / ROUNDS, so the chance that the result is worse than LAG is at most FALSE_CHOICE (see `race`). Moves are
    shifts of a server for all types, neighbours exchanged for one type, and sums of those that looked good.
    """
    races = _Races(trial, seed)
    incumbent, *others = lag_policies(instance)
    candidates = [*others, *named_policies(instance), *price_policies(instance), *gradient_policies(instance)]
    candidates = distinct(candidates, [incumbent])
    incumbent, outcome = races.run(incumbent, candidates)
    tried, rounds = 1 + len(candidates), 1
    base = _order_near(instance, incumbent, candidates, outcome)
    kinds = [SHIFTS[0], None, *SHIFTS[1:]]  # None: neighbours exchanged
    while kinds and rounds + 2 <= ROUNDS:
        by = kinds.pop(0)
        changes = swaps(base, instance.scores) if by is None else shifts(base, instance.scores, by)
        changes = _some(changes, instance, races.new_seed())
        before, old = incumbent, base
        incumbent, base, outcome = _move(races, instance, incumbent, base, old, changes)
        sums = combined(changes, outcome.gain, outcome.error)
        incumbent, base, _ = _move(races, instance, incumbent, base, old, sums)
        tried, rounds = tried + len(changes) + len(sums), rounds + 2
        if incumbent is not before:  # worth another try, when the others have had theirs
            kinds.append(by)
    return Found(incumbent, tried)


def search_scaled(instance: Instance, trial: Trial, seed: int, most: float) -> Found:
    """Races policies at any number of copies, for about `most` trials of one policy; shares within tiers are then exact.

    As `search_single`, with two races: first LAG at every optimum of the LP, with up to half of the trials, since these differ by
    little; then the others, as many as the rest allows. Where copies are many a lottery within a tier has the fluid limit of even
    or weighted shares, so every candidate is a capped policy, and they share one compiled program.
    """
    incumbent, *others = lag_policies(instance)
    policies = [make_policy(p.name, p.tier, p.weight, "capped") for p in named_policies(instance)]
    alternating = itertools.chain(*itertools.zip_longest(policies, price_policies(instance)))
    candidates = distinct(filter(None, alternating), [incumbent, *others])
    races, stages = _Races(trial, seed), STAGES
    while stages < MAX_STAGES and _trials(len(others), stages + 1) <= most / 2:
        stages += 1
    incumbent, _ = races.run(incumbent, others, rounds=2, stages=stages)
    left = most - _trials(len(others), stages)
    few = max((n for n in range(min(len(candidates), MAX_SCALED) + 1) if _trials(n, STAGES) <= left), default=0)
    incumbent, _ = races.run(incumbent, candidates[:few], rounds=2)
    return Found(incumbent, 1 + len(others) + few)


def _trials(candidates: int, stages: int) -> int:
    """Trials of one policy that a race takes: stage s sees what is left of the candidates, and the incumbent, 2^s times."""
    if candidates == 0:
        return 0
    return sum(2**stage * (1 + math.ceil(candidates / 2**stage)) for stage in range(stages))


def _move(
    races: _Races,
    instance: Instance,
    incumbent: Policy,
    base: np.ndarray,
    old: np.ndarray,
    changes: Sequence[np.ndarray],
) -> tuple[Policy, np.ndarray, Race]:
    """A race of `old` plus each change; the new base is the winner's order."""
    name = incumbent.name.removesuffix(", moved")
    after, outcome = races.run(incumbent, [order_by(-(old + change), f"{name}, moved") for change in changes])
    return after, (base if after is incumbent else _order_near(instance, after, (), outcome)), outcome


def _order_near(instance: Instance, incumbent: Policy, candidates: Sequence[Policy], outcome: Race) -> np.ndarray:
    """The order of the incumbent, or of the best candidate that is one."""
    by_gain = (candidates[arm] for arm in np.argsort(-outcome.gain, kind="stable"))
    found = (places(instance, policy) for policy in itertools.chain([incumbent], by_gain))
    return next(order for order in found if order is not None)  # fixed orders are among the candidates


def _some(changes: list[np.ndarray], instance: Instance, seed: int) -> list[np.ndarray]:
    """At most so many that a round stays cheap, drawn at random."""
    most = max(2, min(MAX_CANDIDATES, MAX_SERVERS // instance.num_servers))
    if len(changes) <= most:
        return changes
    drawn = np.random.Generator(np.random.PCG64(seed)).permutation(len(changes))[:most]
    return [changes[i] for i in sorted(drawn)]
