"""Tuned index policies beside LAG under every selection and beside the paper's best, on the cells of Table 3.

python experiments/tuned.py [INSTANCE ...] > experiments/tuned.md    (all four in about ten minutes on two cores)
"""

from __future__ import annotations

import dataclasses
import sys
import time

import numpy as np

from lagjax import gallery, simulate
from lagjax.cli.inputs import default_loads
from lagjax.cli.terminal import use_all_cores
from lagjax.exact import evaluate, exact_blocking, improve, optimum
from lagjax.exact.many import is_small
from lagjax.lp import SELECTIONS, occ_upper_bound
from lagjax.policies import POLICIES, build_policy
from lagjax.stats import estimate, percent_of_bound
from lagjax.studies.measure import arrivals_and_warmup, measure
from lagjax.studies.published import published_percent
from lagjax.tune.tuned import tune

INSTANCES = ("specialist", "priority", "unfriendly", "low-rank")
REPLICAS = 1024
SEED = 0


HEAD = """# Tuned index policies on the cells of Table 3

Made by `python experiments/tuned.py > experiments/tuned.md`. Reward as % of OCC-UB. Specialist and Priority: exact,
and so is the optimum over all policies; `improved` is one step of policy improvement on `tuned`. Unfriendly and Low-
rank: simulated on the replicas of a sweep, which no choice has seen, with 95% half-widths (±); the difference is
paired. `best published` is the largest of the paper's five policies. Where it is above the optimum no policy reaches
it. Where the optimum is not known compare it with [table3.md](table3.md): in each such cell Greedy or Whittle, which
leave nothing open, is printed at least as far above ours. s: processor time of the tuning, in seconds.

| instance | load | best published | LAG, best selection | tuned | ± | less LAG | ± | improved | optimum | s | tuned is |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"""


def main(names) -> None:
    print(HEAD)
    for name in names:
        for load in default_loads(gallery(name)):
            print(line(gallery(name, load)), flush=True)


def line(instance) -> str:
    begun = time.process_time()
    found = tune(instance, seed=SEED)
    seconds = time.process_time() - begun
    lags = [build_policy("lag", instance, selection) for selection in SELECTIONS]
    if is_small(instance):
        bound = occ_upper_bound(instance, exact_blocking(instance)) / 100
        lag = max(evaluate(instance, policy).reward for policy in lags) / bound
        value, width, gain, gain_width = found.reward.mean / bound, 0.0, found.reward.mean / bound - lag, 0.0
        state = f"{improve(instance, found.policy).reward / bound:.2f} | {optimum(instance).reward / bound:.2f}"
    else:
        lag, value, width, gain, gain_width = simulated(instance, [*lags, found.policy])
        state = "- | -"
    best = max(published_percent(instance.name, instance.load, policy) or 0 for policy in POLICIES)
    ours = f"{lag:.2f} | {value:.2f} | {width:.2f} | {gain + 0.0:.3f} | {gain_width:.3f}"
    return f"| {instance.name} | {instance.load:.1f} | {best} | {ours} | {state} | {seconds:.0f} | {found.origin} |"


def simulated(instance, policies):
    """Percent of OCC-UB of the best LAG and of the last policy, and their paired difference, on a sweep's replicas."""
    policies = [dataclasses.replace(policy, name=str(i)) for i, policy in enumerate(policies)]
    arrivals, warmup = arrivals_and_warmup(instance, None)
    counts = simulate(instance, policies, arrivals=arrivals, warmup=warmup, replicas=REPLICAS, seed=SEED)
    cell = measure(instance, policies, counts, warmup=warmup)
    percent = percent_of_bound(cell.reward, cell.blocked, cell.occ_ub, cell.occ_slope)
    best = int(np.argmax(percent[:-1].mean(axis=1)))
    value, gain = estimate(percent[-1]), estimate(percent[-1] - percent[best])
    return percent[best].mean(), value.mean, value.ci95, gain.mean, gain.ci95


if __name__ == "__main__":
    use_all_cores()
    main(sys.argv[1:] or INSTANCES)
