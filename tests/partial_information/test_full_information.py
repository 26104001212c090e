"""Policies that see all backlogs: how they break ties, what they earn, and the most that anybody can."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_partial import follow_shortest, seen
from scipy.stats import binom, norm

from lagjax import InputError
from lagjax.models import streams
from lagjax.partial_information import (
    build_policies,
    make_system,
    model,
    seen_optimum,
    seen_states,
    shortest_queue,
    simulate_dispatching,
)
from lagjax.stats import estimate
from lagjax.studies import dispatching
from lagjax.studies.dispatching import dispatch

NAMES = {"random": "jsq", "slower": "jsq-slower", "faster": "jsq-faster"}
FINITE = make_system([0.3, 0.8, 0.3], 3, model="finite", discount=0.9)
BLOCKING = make_system([0.3, 0.8, 0.3], 3, model="blocking", discount=0.9)
SURE = norm.isf(5e-8) / norm.isf(0.025)  # half-widths of 95% to one of false alarm 1e-7


@pytest.mark.parametrize("backlogs", [[2, 1, 1, 3, 1], [4] * 256])
def test_every_shortest_queue_is_chosen_alike(backlogs):
    """And no other one; false alarm 1e-6 for each server."""
    number = 2**19 // len(backlogs)
    system = make_system([0.5] * len(backlogs), 4)
    tables = model.policy_tables(system, build_policies(["jsq"], system)[0])
    word = np.random.default_rng(0).integers(0, 2**32, number, dtype=np.uint32)
    event = model.Event(jobs=None, turn=None, pick=None, tie=jnp.asarray(word))
    backlog = jnp.tile(jnp.array(backlogs, jnp.uint8)[:, None], number)
    chosen, found = map(np.asarray, jax.jit(lambda e: model._choose(tables, e, None, backlog))(event))
    assert (chosen.sum(axis=0) == 1).all() and (found == min(backlogs)).all()
    counts, tied = chosen.sum(axis=1), np.array(backlogs) == min(backlogs)
    assert counts[~tied].sum() == 0
    p = 1 / tied.sum()
    assert np.all((binom.ppf(5e-7, number, p) <= counts[tied]) & (counts[tied] <= binom.isf(5e-7, number, p)))


@pytest.mark.parametrize("system", [FINITE, BLOCKING])
def test_fixed_ties_in_lockstep_with_a_plain_simulator(system):
    policies = build_policies(["jsq-slower", "jsq-faster"], system)
    done = simulate_dispatching(system, policies, horizons=(1, 50, 200), replicas=4, seed=3)
    keys = streams.replica_keys(3, streams.EXOGENOUS, np.arange(4))
    slot = jax.device_put(model.slot_tables(system))
    drawn = jax.jit(model.draw_slots)(slot, keys, None, jnp.arange(200, dtype=jnp.uint32))
    jobs = np.asarray(drawn.jobs)
    served = np.concatenate([jobs & 255, jobs >> 8], axis=1).astype(int)[:, :3]
    for p, b in np.ndindex(2, 4):
        taken = follow_shortest(system.rates, 3, system is BLOCKING, served[..., b], 3, policies[p].ties)
        assert done.total[:, p, b].tolist() == [sum(taken[:h]) for h in done.horizons]


@pytest.mark.parametrize("system", [FINITE, BLOCKING])
def test_exact_values(system):
    """Equal servers counted together earn what they earn told apart; nobody beats the optimum."""
    found = {ties: shortest_queue(system, ties) for ties in NAMES}
    best = seen_optimum(system)
    for ties, value in {**found, None: best}.items():
        exact = seen(system.rates, 3, system is BLOCKING, 0.9, ties)
        assert value.lower - 1e-8 <= exact <= value.upper + 1e-8 and value.upper - value.lower < 1e-7
    assert all(value.lower <= best.upper for value in found.values())
    assert len({round(value.value, 6) for value in found.values()}) == 3  # ties matter


@pytest.mark.parametrize("system", [FINITE, BLOCKING])
def test_simulated_values(system):
    """Ours, and a plain simulator with random numbers of its own, cover the exact values (false alarm 1e-7 each)."""
    slots, replicas, rng = 200, 300, np.random.default_rng(0)
    policies = build_policies(list(NAMES.values()), system)
    ours = estimate(simulate_dispatching(system, policies, horizons=(slots,), replicas=4096, seed=5).discounted[0])
    served = rng.poisson(system.rates, (replicas, slots, 3))
    weights = 0.9 ** np.arange(slots)
    plain = [follow_shortest(system.rates, 3, system is BLOCKING, one, 3, "random", rng) @ weights for one in served]
    for p, ties in enumerate(NAMES):
        exact = shortest_queue(system, ties).value
        assert abs(ours.mean[p] - exact) < SURE * ours.ci95[p] + 1e-6
    theirs = estimate(plain)
    assert abs(theirs.mean - shortest_queue(system, "random").value) < SURE * theirs.ci95 + 1e-6


def test_ties_at_the_published_setting():
    """Random ties lie between the two fixed rules; 157.5, 158.0 and 156.6 by an independent simulator, each +- 0.1."""
    system = make_system([0.05] * 4 + [0.1] * 4 + [0.5] * 2, 6, model="finite", discount=0.99)
    data = dispatch(system, policies=["whittle", *NAMES.values()], replicas=2048)
    assert data.attrs["oracle"] == "jsq-slower" and data.seen_value.isnull()  # too many states to solve unasked
    below, half = data.below_oracle.isel(horizon=-1), data.below_oracle_ci95.isel(horizon=-1)
    for name, value in (("jsq", 157.5), ("jsq-slower", 158.0), ("jsq-faster", 156.6)):
        one = data.sel(policy=name)
        # 0.1 is taken as the half-width of their 95% interval.
        assert abs(one.discounted_reward - value) < SURE * np.hypot(one.discounted_ci95, 0.1)
        wanted = 100 * (1 - value / 158.0)
        assert abs(below.sel(policy=name) - wanted) < SURE * (half.sel(policy=name) + 0.1)
    assert 2.2 < below.sel(policy="whittle") < 2.9 and half.sel(policy="whittle") < 0.03


def test_the_oracle_is_the_best_that_sees_all_backlogs():
    blocking = make_system([0.05, 0.1, 0.5], 3, model="blocking")
    data = dispatch(blocking, policies=["random", "jsq-slower", "jsq", "jsq-faster"], horizon=200)
    best = data.below_oracle.isel(horizon=-1)
    assert data.attrs["oracle"] == "jsq-faster" and best.sel(policy="jsq-faster") == 0 and (best >= 0).all()
    ratio = data.discounted.mean("replica") / data.discounted.sel(policy="jsq-faster").mean("replica")
    np.testing.assert_allclose(best, 100 * (1 - ratio))
    np.testing.assert_allclose(data.seen_value, seen_optimum(blocking).value)
    alone = build_policies(["random"], blocking)
    assert (
        dispatching._oracle(alone, np.ones(1)) is None and np.isnan(dispatching._below(np.ones((2, 1, 3)), None)).all()
    )


def test_states_and_their_limit():
    assert seen_states(FINITE) == 4 * 10  # one server by 4 backlogs, two alike by 10 pairs
    assert seen_states(make_system([0.05] * 4 + [0.1] * 4 + [0.5] * 2, 6)) == 210 * 210 * 28
    with pytest.raises(InputError, match=r"ways to spread jobs over the servers; solutions stop at 2,000,000"):
        seen_optimum(make_system(np.linspace(0.1, 1, 10), 6))
