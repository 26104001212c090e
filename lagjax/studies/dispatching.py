"""Policies compared on one system: discounted reward along the horizon, long-run average, and the distance to the oracle."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from lagjax.engine.checks import MOST_REPLICAS, whole_number
from lagjax.engine.devices import device_name
from lagjax.errors import InputError
from lagjax.partial_information import pair
from lagjax.partial_information.arms import arms_of
from lagjax.partial_information.index import PRECISION
from lagjax.partial_information.policies import POLICIES, Dispatching, build_policies
from lagjax.partial_information.seen import seen_optimum, seen_states
from lagjax.partial_information.simulate import MOST_SLOTS, STARTS, replica_bytes, simulate_dispatching
from lagjax.partial_information.system import System
from lagjax.runs.batched import Batch, batched
from lagjax.runs.job import Job, Watch
from lagjax.runs.record import Record, digest
from lagjax.runs.running import Running
from lagjax.stats import Estimate, estimate, left_of_start, ratio_of_means
from lagjax.studies.dataset import part_of, provenance, record_of, worded
from lagjax.studies.study import conduct, named_apart

DEFAULT_HORIZON = 1000
DEFAULT_REPLICAS = 1024
CURVE = 40  # horizons of a curve, at most
MOST_SEEN = 3000  # states with all backlogs seen up to which their optimum is computed unasked: seconds


def dispatch(
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
    out: str | Path | None = None,
    running: Running | None = None,
) -> xr.Dataset:
    """Simulates policies on the same departures.

    Args:
      system: what to dispatch to.
      policies: names of `POLICIES`, or policies made for this system.
      horizon: slots simulated.
      start, replicas, seed: as in `simulate_dispatching`.
      ages, precision: of the beliefs and indices, as in `arms_of` and `whittle_indices`.
      progress: called with what is done and the total, in slots times policies and replicas.
      out: folder that keeps how far the run came, and in the end what `lagjax partial` leaves.
      running: where and how it runs; see `lagjax.runs.running.Running`. No result depends on it.

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
    whole_number("replicas", replicas, 1, MOST_REPLICAS)
    whole_number("seed", seed, 0, 2**64 - 1)
    if start not in STARTS:
        raise InputError(f"no start '{start}'; choose from {', '.join(STARTS)}")
    if not policies:
        raise InputError("no policies to simulate; give at least one")
    named_apart("policies", [p if isinstance(p, str) else p.name for p in policies])
    named = [p for p in policies if isinstance(p, str)]
    needs = {"whittle", "myopic"} & set(named)
    made = iter(build_policies(named, system, arms_of(system, ages) if needs else None, precision))
    built = tuple(next(made) if isinstance(p, str) else p for p in policies)
    described = {
        "rates": system.rates.tolist(), "capacity": system.capacity, "model": system.model, "discount": system.discount,
        "arrivals": system.arrivals, "exogenous": system.exogenous.tolist(), "horizon": horizon, "start": start, "ages": ages,
    }  # fmt: skip
    configuration = {
        **described, "precision": precision, "replicas": int(replicas), "seed": int(seed),
        "policies": [p if isinstance(p, str) else {"name": p.name, "tables": _digest(p)} for p in policies],
    }  # fmt: skip

    def assemble(records):
        data, about = part_of(records[0]), records[0].head["about"]
        data.attrs = {
            "title": "Rewards of dispatching with partial queue information",
            "oracle": about["oracle"],
            **provenance(seed=seed, device=about["device"]),
            "configuration": json.dumps(described),
        }
        return worded(data, "partial")

    spec = DispatchSpec(system, built, horizon, start, replicas, seed)
    return conduct(
        "partial", [dispatch_job(spec)], configuration, assemble, out=out, running=running, progress=progress
    )


def _digest(policy):
    return digest(policy.rule, policy.ties, *(policy.index or ()))[:16]


class DispatchSpec(NamedTuple):
    """What determines the cell: the system, built policies, and the rest of a study."""

    system: System
    policies: tuple[Dispatching, ...]
    horizon: int
    start: str
    replicas: int
    seed: int


def dispatch_job(spec: DispatchSpec) -> Job:
    """The job of a study; its work is in slots, times policies and replicas."""
    work = spec.horizon * len(spec.policies) * spec.replicas
    return Job("dispatching", "dispatching", work, functools.partial(run_dispatch, spec))


def run_dispatch(spec: DispatchSpec, watch: Watch) -> Record:
    """Simulates all policies on the same departures and measures what they take."""
    points = np.unique(np.geomspace(1, spec.horizon, CURVE).round().astype(int)).tolist()
    points = sorted({*points, spec.horizon // 2, spec.horizon} - {0})
    horizons = sorted({*points, *_quarters(spec.horizon, spec.system.num_servers)})

    def piece(first, count, resume, save, progress):
        counts = simulate_dispatching(
            spec.system, spec.policies, horizons=horizons, start=spec.start, replicas=count, first_replica=first,
            seed=spec.seed, progress=progress, resume=resume, save=save,
        )  # fmt: skip
        return {"total": counts.total, "discounted": counts.discounted}

    batch = Batch(piece, replica_bytes(spec.system, spec.policies, horizons), spec.horizon * len(spec.policies))
    counts = batched(watch, spec.replicas, lambda about: batch)
    return _measured(spec, horizons, points, counts["total"], counts["discounted"])


def _measured(spec, horizons, points, total, discounted) -> Record:
    """The Dataset, from (H, P, B) sums up to H horizons; its curves have some of these as points."""
    horizon, half = spec.horizon, spec.horizon // 2
    left = left_of_start(*_quarter_means(total, horizons, _quarters(horizon, spec.system.num_servers)))
    total, discounted = _at(total, horizons, points), _at(discounted, horizons, points)
    before = total[points.index(half)] if half else 0
    average = estimate((total[-1] - before) / (horizon - half))
    reward = estimate(discounted)
    lead = estimate(discounted[:, :1] - discounted)
    oracle = _oracle(spec.policies, reward.mean[-1])
    below = _below(discounted, oracle)
    value, best = _exact(spec.system, spec.policies, spec.start)
    seen = seen_optimum(spec.system, start=spec.start).value if seen_states(spec.system) <= MOST_SEEN else np.nan
    names = [policy.name for policy in spec.policies]
    return record_of(
        {
            "discounted_reward": ("policy", reward.mean[-1]), "discounted_ci95": ("policy", reward.ci95[-1]),
            "average_reward": ("policy", average.mean), "average_ci95": ("policy", average.ci95),
            "drift": ("policy", left.drift.mean), "drift_ci95": ("policy", left.drift.ci95),
            "stationary": ("policy", left.stationary()), "value": ("policy", value), "optimal_value": ((), best),
            "seen_value": ((), seen),
            "reward": (("horizon", "policy"), reward.mean), "reward_ci95": (("horizon", "policy"), reward.ci95),
            "below_oracle": (("horizon", "policy"), below.mean), "below_oracle_ci95": (("horizon", "policy"), below.ci95),
            "lead": (("horizon", "policy"), lead.mean), "lead_ci95": (("horizon", "policy"), lead.ci95),
            "discounted": (("policy", "replica"), discounted[-1]),
        },
        {"policy": names, "horizon": points}, oracle="" if oracle is None else names[oracle], device=device_name(),
    )  # fmt: skip


def _quarters(horizon, turn):
    """The last two quarters' ends and where the first of them begins: whole turns of `turn` slots, where they are that long."""
    length = horizon // 4 // turn * turn or horizon // 4
    return [horizon - 2 * length, horizon - length, horizon] if length else []


def _quarter_means(total, horizons, quarters):
    """(P, B) jobs taken per slot in the last two quarters; NaN where there are none."""
    if not quarters:
        return np.full((2, *total.shape[1:]), np.nan)
    return np.diff(_at(total, horizons, quarters), axis=0) / np.diff(quarters)[:, None, None]


def _at(sums, horizons, wanted):
    """Sums up to the horizons wanted."""
    return sums[np.searchsorted(horizons, wanted)]


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
