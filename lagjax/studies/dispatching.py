"""Policies compared on one system: discounted reward along the horizon, long-run average, and the distance to the oracle."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr

from lagjax.engine.checks import whole_number
from lagjax.engine.devices import device_name
from lagjax.errors import InputError
from lagjax.partial_information import pair
from lagjax.partial_information.arms import arms_of
from lagjax.partial_information.index import PRECISION
from lagjax.partial_information.policies import POLICIES, Dispatching, build_policies
from lagjax.partial_information.seen import seen_optimum, seen_states
from lagjax.partial_information.simulate import MOST_SLOTS, simulate_dispatching
from lagjax.partial_information.system import System
from lagjax.stats import Estimate, estimate, left_of_start, ratio_of_means, told
from lagjax.studies.dataset import provenance

DEFAULT_HORIZON = 1000
DEFAULT_REPLICAS = 1024
CURVE = 40  # horizons of a curve, at most
MOST_SEEN = 3000  # states with all backlogs seen up to which their optimum is computed unasked: seconds

ROW_KEYS = (
    "policy", "discounted_reward", "discounted_ci95", "average_reward", "average_ci95", "below_oracle_percent",
    "below_oracle_ci95", "value", "optimal_value", "horizon", "replicas", "oracle", "seen_value",
    "drift", "drift_ci95", "stationary",
)  # fmt: skip


def compare_dispatching(
    system: System,
    *,
    policies: Sequence[str | Dispatching] = POLICIES,
    horizon: int = DEFAULT_HORIZON,
    start: str = "full",
    replicas: int = DEFAULT_REPLICAS,
    seed: int = 0,
    ages: int | None = None,
    precision: float = PRECISION,
    progress: Callable[[int, int], object] | None = None,
) -> xr.Dataset:
    """Simulates policies on the same departures.

    Args:
      system: what to dispatch to.
      policies: names of `POLICIES`, or policies made for this system.
      horizon: slots simulated.
      start, replicas, seed: as in `simulate_dispatching`.
      ages, precision: of the beliefs and indices, as in `arms_of` and `whittle_indices`.
      progress: called with what is done and the total, in slots times policies and replicas.

    Returns:
      A Dataset. Over policy: discounted_reward (the sum over the horizon, undiscounted at discount 1), average_reward (per
      slot, over the second half of the horizon), both with _ci95; drift, what is left of the start in that average (its second
      half less its first) with drift_ci95, and stationary, 1 where nothing is seen to be left, 0 where something is, NaN where
      that is not known (see `lagjax.stats.start`); value, the policy's exact reward for ever, and the scalar
      optimal_value where there are two servers, else NaN; the scalar seen_value, the most that full information allows for
      ever, where it has MOST_SEEN states at most, else NaN. Over (horizon, policy): reward, the discounted sum up to there,
      lead, the first policy's reward less this one's on the same departures, and below_oracle, (R_oracle - R) / R_oracle in
      percent, all with _ci95. The oracle, an attribute, is the one of the policies which see all backlogs that earns most;
      without such a policy below_oracle is NaN and the attribute empty. Over (policy, replica): discounted.

    Raises:
      InputError: an argument outside its range.
    """
    whole_number("horizon", horizon, 1, MOST_SLOTS)
    names = [p if isinstance(p, str) else p.name for p in policies]
    if len(set(names)) < len(names):
        raise InputError(f"policies {names} repeat; name each once")
    named = [p for p in policies if isinstance(p, str)]
    needs = {"whittle", "myopic"} & set(named)
    made = iter(build_policies(named, system, arms_of(system, ages) if needs else None, precision))
    built = [next(made) if isinstance(p, str) else p for p in policies]
    half = horizon // 2
    points = np.unique(np.geomspace(1, horizon, CURVE).round().astype(int)).tolist()
    points = sorted({*points, half, horizon} - {0})
    quarters = _quarters(horizon, system.num_servers)
    done, total = 0, horizon * replicas * len(built)

    def advance(count):
        nonlocal done
        done = min(done + count, total)
        if progress is not None:
            progress(done, total)

    counts = simulate_dispatching(
        system,
        built,
        horizons=sorted({*points, *quarters}),
        start=start,
        replicas=replicas,
        seed=seed,
        progress=advance,
    )
    left = left_of_start(*_quarter_means(counts, quarters))
    counts = _at(counts, points)
    before = counts.total[points.index(half)] if half else 0
    average = estimate((counts.total[-1] - before) / (horizon - half))
    reward = estimate(counts.discounted)
    last = counts.discounted[-1]
    lead = estimate(counts.discounted[:, :1] - counts.discounted)
    oracle = _oracle(built, reward.mean[-1])
    below = _below(counts.discounted, oracle)
    value, best = _exact(system, built, start)
    seen = seen_optimum(system, start=start).value if seen_states(system) <= MOST_SEEN else np.nan
    data = xr.Dataset(
        {
            "discounted_reward": ("policy", reward.mean[-1]), "discounted_ci95": ("policy", reward.ci95[-1]),
            "average_reward": ("policy", average.mean), "average_ci95": ("policy", average.ci95),
            "drift": ("policy", left.drift.mean), "drift_ci95": ("policy", left.drift.ci95),
            "stationary": ("policy", left.stationary()), "value": ("policy", value), "optimal_value": best, "seen_value": seen,
            "reward": (("horizon", "policy"), reward.mean), "reward_ci95": (("horizon", "policy"), reward.ci95),
            "below_oracle": (("horizon", "policy"), below.mean), "below_oracle_ci95": (("horizon", "policy"), below.ci95),
            "lead": (("horizon", "policy"), lead.mean), "lead_ci95": (("horizon", "policy"), lead.ci95),
            "discounted": (("policy", "replica"), last),
        },
        {"policy": names, "horizon": points},
    )  # fmt: skip
    configuration = {
        "rates": system.rates.tolist(), "capacity": system.capacity, "model": system.model, "discount": system.discount,
        "arrivals": system.arrivals, "exogenous": system.exogenous.tolist(), "horizon": horizon, "start": start, "ages": ages,
    }  # fmt: skip
    data.attrs = {
        "title": "Rewards of dispatching with partial queue information",
        "oracle": "" if oracle is None else names[oracle],
        **provenance(seed=seed, selection="none", device=device_name()),
        "configuration": json.dumps(configuration),
    }
    return data


def _quarters(horizon, turn):
    """The last two quarters' ends and where the first of them begins: whole turns of `turn` slots, where they are that long."""
    length = horizon // 4 // turn * turn or horizon // 4
    return [horizon - 2 * length, horizon - length, horizon] if length else []


def _quarter_means(counts, quarters):
    """(P, B) jobs taken per slot in the last two quarters; NaN where there are none."""
    if not quarters:
        return np.full((2, *counts.total.shape[1:]), np.nan)
    return np.diff(_at(counts, quarters).total, axis=0) / np.diff(quarters)[:, None, None]


def _at(counts, horizons):
    """What was counted up to these horizons."""
    places = np.searchsorted(counts.horizons, horizons)
    return counts._replace(
        horizons=np.array(horizons), total=counts.total[places], discounted=counts.discounted[places]
    )


def _oracle(policies, reward) -> int | None:
    """The policy of the highest reward among those that see all backlogs."""
    return max((i for i, p in enumerate(policies) if p.rule == "backlog"), key=lambda i: reward[i], default=None)


def _below(reward, oracle) -> Estimate:
    """How far (H, P, B) rewards are below the oracle's on the same departures, in percent."""
    if oracle is None:
        return Estimate(*np.full((2, *reward.shape[:2]), np.nan))
    ratio = estimate(ratio_of_means(reward, reward[:, [oracle]]))
    return Estimate(100 * (1 - ratio.mean), 100 * ratio.ci95)


def _exact(system, policies, start):
    """Rewards for ever of each policy, and of the best that sees what the dispatcher sees; NaN where not two servers."""
    nothing = np.full(len(policies), np.nan), np.nan
    if system.num_servers != 2:
        return nothing
    try:
        values = np.array([pair.evaluate(system, policy, start=start).value for policy in policies])
        return values, pair.optimum(system, start=start).value
    except InputError:  # too many joint beliefs: what was simulated stands by itself
        return nothing


def rows(data: xr.Dataset) -> list[dict]:
    """One dict per policy with the keys `ROW_KEYS` and plain Python values; None where there is none."""
    out, horizon = [], int(data.horizon.values[-1])
    for policy in data.policy.values:
        cell, end = data.sel(policy=policy), data.sel(policy=policy, horizon=horizon)
        given = {
            "policy": str(policy), "horizon": horizon, "replicas": data.sizes["replica"],
            "oracle": data.attrs["oracle"] or None,
            "stationary": told(cell.stationary),
            "below_oracle_percent": _number(end.below_oracle), "below_oracle_ci95": _number(end.below_oracle_ci95),
        }  # fmt: skip
        out.append({key: given[key] if key in given else _number(cell[key]) for key in ROW_KEYS})
    return out


def _number(value):
    value = float(value)
    return value if np.isfinite(value) else None
