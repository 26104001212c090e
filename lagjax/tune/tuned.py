"""The policy `tuned`: the best index policy found for one finite system, starting from LAG and never knowingly below it."""

from __future__ import annotations

import dataclasses

import numpy as np

from lagjax.engine.checks import whole_number
from lagjax.exact.groups import single_tiers
from lagjax.exact.many import tier_rewards
from lagjax.instance import Instance
from lagjax.lp.memo import Memo, fingerprint
from lagjax.policies.registry import build_policy
from lagjax.policies.table import Policy
from lagjax.stats import Estimate, estimate
from lagjax.tune.candidates import distinct
from lagjax.tune.exactly import search_exactly
from lagjax.tune.simulated import FALSE_CHOICE, search_scaled, search_single
from lagjax.tune.trials import Trial, derived_seed, scaled_cost, scaled_trial, single_trial

MAX_SCALED_WORK = 80_000_000  # tasks times servers of one search at many copies: about 40 s of processor time
_FRESH = 1_000_000  # number of the first draw of the report; searches use smaller ones
_FRESH_TRIALS = 4
_KNOWN = Memo(1 << 26)


@dataclasses.dataclass(frozen=True, eq=False)
class Tuned:
    """A tuned policy and what is known of it.

    Attributes:
      policy: named "tuned"; its notes say where it comes from and how it was chosen.
      origin: name of the policy that it is, or was moved from.
      reward: per step and copy, with the half-width of its 95% interval: zero where it is exact, else from replicas that no
        choice has seen.
      gain: the same of its difference to LAG at the canonical optimum, paired.
      exact: whether rewards were computed from chains.
      tried: policies evaluated.
      false_choice: bound on the chance that it is worse than LAG; 0 where exact.
    """

    policy: Policy
    origin: str
    reward: Estimate
    gain: Estimate
    exact: bool
    tried: int
    false_choice: float


def tune(instance: Instance, *, copies: int = 1, dispatchers: int = 1, seed: int = 0) -> Tuned:
    """Finds an index policy for one finite system.

    Candidates are LAG at every selection of the LP's optimum, all other named policies, LAG's index at other prices, fixed
    orders or, where they are many, gradient steps on a smoothed model, and moves around the best. Rewards are exact where
    every server can be told apart in a chain of 512 states; else candidates race LAG in simulation, and replace it only if
    they are better beyond doubt (`lagjax.tune.racing`). At several copies it is one race, without gradient steps and moves.
    Equal arguments are tuned once in a process and always give the same policy.

    Args:
      instance: the system, at its load.
      copies, dispatchers: n and m of the scaled system; see `lagjax.engine.scaled_run`.
      seed: in [0, 2^64). The random numbers of the search are not those that `sweep` and `converge` draw from this seed.

    Raises:
      InputError: an argument outside its range.
    """
    whole_number("copies", copies, 1)
    whole_number("dispatchers", dispatchers, 1)
    whole_number("seed", seed, 0, 2**64 - 1)
    arrays = map(np.asarray, (instance.scores, instance.arrival_rate, instance.service_pmf))
    size = int(copies), int(dispatchers), int(seed)
    key = fingerprint(*arrays, instance.servers_per_task, *size)
    return _KNOWN.get(key, lambda: _tune(instance, *size), lambda tuned: 16 * tuned.policy.tier.size)


def _tune(instance: Instance, copies: int, dispatchers: int, seed: int) -> Tuned:
    one = copies == dispatchers == 1
    reward = tier_rewards(instance) if one else None
    lag = build_policy("lag", instance)
    if reward is not None:
        found = search_exactly(instance, reward)
        value, base = reward(*single_tiers(found.policy)), reward(*single_tiers(lag))
        known = Estimate(np.array(value), np.array(0.0)), Estimate(np.array(value - base), np.array(0.0))
        said = f"{found.policy.name}: the best of {found.tried:,} policies by exact rewards"
    else:
        trial = single_trial(instance) if one else scaled_trial(instance, copies, dispatchers)
        if one:
            found = search_single(instance, trial, seed)
        else:
            affordable = MAX_SCALED_WORK / scaled_cost(instance, dispatchers) - 2  # the report takes two trials
            found = search_scaled(instance, trial, seed, affordable)
        known = _report(trial, found.policy, lag, seed, _FRESH_TRIALS if one else 1)
        said = (
            f"{found.policy.name}: raced against LAG among {found.tried:,} policies, worse than LAG with a chance of at most "
            f"{100 * FALSE_CHOICE:g}%"
        )
    policy = dataclasses.replace(found.policy, name="tuned", notes=(said,))
    chance = 0.0 if reward is not None else FALSE_CHOICE
    return Tuned(policy, found.policy.name, *known, reward is not None, found.tried, chance)


def _report(trial: Trial, policy: Policy, lag: Policy, seed: int, trials: int) -> tuple[Estimate, Estimate]:
    """Rewards on fresh replicas; LAG's own gain is zero."""
    same = distinct([lag], [policy]) == []
    policies = [policy] if same else [policy, lag]
    rewards = np.concatenate([trial(policies, derived_seed(seed, _FRESH + i)) for i in range(trials)], axis=1)
    return estimate(rewards[0]), estimate(rewards[0] - rewards[-1])
