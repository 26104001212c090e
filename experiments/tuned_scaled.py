"""Tuned index policies beside LAG under every selection at the sizes of Figure 6.

python experiments/tuned_scaled.py [INSTANCE ...] > experiments/tuned_scaled.md    (all four in about forty minutes on two cores)
"""

from __future__ import annotations

import sys
import time

import numpy as np

from lagjax import gallery
from lagjax.cli.terminal import use_all_cores
from lagjax.lp import occ_upper_bound
from lagjax.stats import estimate
from lagjax.studies.convergence import DEFAULT_COPIES, sizes_of
from lagjax.tune.candidates import distinct, lag_policies
from lagjax.tune.trials import scaled_trial
from lagjax.tune.tuned import tune

INSTANCES = ("specialist", "unfriendly", "low-rank", "priority")
LOAD = 0.8
SEED = 0
FRESH_SEED = 6  # of replicas that no choice has seen
FRESH_TRIALS = 4

HEAD = """# Tuned index policies at the sizes of Figure 6

Made by `python experiments/tuned_scaled.py > experiments/tuned_scaled.md`. Load 0.8, m = sqrt(n); n = m = 1 is in
[tuned.md](tuned.md). Reward as % of OPT(OCC-LP(0)), which is no bound where tasks are lost (hence over 100 on
Specialist), on replicas that no choice has seen; ± are half-widths of 95% intervals. `less LAG` is the paired difference
between tuned and LAG at that one of the LP's selections that did best on the same replicas, which favours LAG a little.
tried: policies raced, LAG included; a tuned policy that is worse than LAG is chosen with a chance of at most 5%.
s: processor time of the tuning.

| instance | n | m | LAG, best selection | tuned | ± | less LAG | ± | tried | s | tuned is |
|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|"""


def main(names) -> None:
    print(HEAD)
    for name in names:
        for size in sizes_of(DEFAULT_COPIES[1:]):
            print(line(gallery(name, LOAD), size), flush=True)


def line(instance, size) -> str:
    begun = time.process_time()
    found = tune(instance, copies=size.copies, dispatchers=size.dispatchers, seed=SEED)
    seconds = time.process_time() - begun
    lags = lag_policies(instance)
    policies = [*lags, *distinct([found.policy], lags)]
    trial = scaled_trial(instance, size.copies, size.dispatchers)
    rewards = np.concatenate([trial(policies, FRESH_SEED + i) for i in range(FRESH_TRIALS)], axis=1)
    percent = 100 * rewards / occ_upper_bound(instance, 0.0)
    best = int(np.argmax(percent[: len(lags)].mean(axis=1)))
    own = next(i for i, policy in enumerate(policies) if not distinct([found.policy], [policy]))
    value, gain = estimate(percent[own]), estimate(percent[own] - percent[best])
    return (
        f"| {instance.name} | {size.copies} | {size.dispatchers} | {percent[best].mean():.2f} | {value.mean:.2f} "
        f"| {value.ci95:.2f} | {gain.mean + 0.0:.3f} | {gain.ci95:.3f} | {found.tried} | {seconds:.0f} | {found.origin} |"
    )


if __name__ == "__main__":
    use_all_cores()
    main(sys.argv[1:] or INSTANCES)
