"""The halves of a run of the original system, and what they say of its empty start."""

import numpy as np

from lagjax.engine.run import simulate
from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.policies import build_policy
from lagjax.studies.measure import arrivals_and_warmup, early_sums, measure, measured, summed


def long_tailed():
    law = np.zeros(400)
    law[0], law[-1] = 0.98, 0.02
    return make_instance(np.linspace(0.1, 1, 18).reshape(3, 6), law, load=0.8, name="tail")


def test_the_usual_warm_up_is_enough_for_long_tails():
    """From the same tasks: with the warm-up of a sweep nothing is seen of the start, without any it is."""
    instance = long_tailed()
    policies = [build_policy("greedy", instance)]
    _, usual = arrivals_and_warmup(instance, 5000)
    assert usual == round(400 * instance.total_rate + 0.5)
    found = {}
    for warmup in (0, usual):
        early = []
        counts = simulate(
            instance, policies, arrivals=600, warmup=warmup, replicas=512, block=32,
            halfway=lambda half, early=early: early.append(early_sums(instance, half)),
        )  # fmt: skip
        cell = measured(instance, policies, summed(instance, counts, early[0]), 600, warmup, None, False)
        found[warmup] = cell.stationary.tolist()
        assert np.all(early[0][-1] == 32 * round((warmup + 300) / 32) - warmup)
    assert found == {0: [0.0], usual: [1.0]}


def test_the_halves_of_a_sweep_are_those_of_two_runs():
    """The first half alone is a run of its own; where no block ends among the counted tasks nothing is known."""
    instance = priority(0.7)
    policies = [build_policy(name, instance) for name in ("greedy", "random")]
    early, how = [], {"replicas": 8, "block": 32, "chunk": 3}
    whole = simulate(instance, policies, arrivals=200, warmup=20, halfway=early.append, **how)
    (half,) = early
    assert half.arrivals == 32 * 4 - 20
    alone = simulate(instance, policies, arrivals=half.arrivals, warmup=20, **how)
    for name in ("served", "arrived", "blocked"):
        np.testing.assert_array_equal(getattr(half, name), getattr(alone, name))
    plain = simulate(instance, policies, arrivals=200, warmup=20, **how)
    np.testing.assert_array_equal(whole.served, plain.served)
    simulate(instance, policies, arrivals=20, warmup=3, halfway=early.append, **how)
    assert len(early) == 1
    cell = measure(instance, policies, plain)
    assert np.isnan(cell.stationary).all() and np.isnan(cell.drift).all()
