"""The batched simulator: in lockstep with a plain one, against exact rewards, and bit for bit the same however it is cut."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plain_partial import follow, open_loop
from scipy.stats import binom, norm, poisson

from lagjax import InputError
from lagjax.models import streams
from lagjax.partial_information import (
    POLICIES,
    arms_of,
    build_policies,
    evaluate,
    from_index,
    make_system,
    model,
    optimum,
    seen_optimum,
    simulate_dispatching,
)
from lagjax.stats import estimate
from lagjax.studies.dispatching import dispatch
from lagjax.studies.show_partial import rows

FINITE = make_system([0.3, 0.8, 0.3], 4, model="finite", discount=0.95)
BLOCKING = make_system([0.3, 0.8, 0.4, 0.3], 3, model="blocking", discount=0.9)
MORE = make_system([0.5, 0.3], 3, model="blocking", discount=0.95, exogenous=[0.1, 0.0], arrivals=2.0)
SURE = norm.isf(5e-8) / norm.isf(0.025)  # half-widths of 95% to one of false alarm 1e-7


def drawn(system, replicas, seed, slots):
    """(slots, R, B) jobs: served, come, offered."""
    tables = model.slot_tables(system)
    keys = streams.replica_keys(seed, streams.EXOGENOUS, np.arange(replicas))
    jobs = np.asarray(model.draw_slots(jax.device_put(tables), keys, None, jnp.arange(slots, dtype=jnp.uint32)).jobs)
    return np.concatenate([jobs & 255, jobs >> 8], axis=1).astype(int)


@pytest.mark.parametrize("system", [FINITE, BLOCKING])
@pytest.mark.parametrize("start", ["full", "empty"])
def test_lockstep_with_a_plain_simulator(system, start):
    policies = build_policies(["whittle", "myopic"], system)
    done = simulate_dispatching(system, policies, horizons=(1, 7, 16, 17, 300), start=start, replicas=4, seed=3)
    served = drawn(system, 4, 3, 300)[:, : system.num_servers]
    weights = system.discount ** np.arange(300)
    first = system.capacity if start == "full" else 0
    for p, policy in enumerate(policies):
        index = [policy.index[kind] for kind in system.kinds[1]]
        for b in range(4):
            taken = follow(index, system.rates, system.capacity, system is BLOCKING, served[..., b], first)
            for h, horizon in enumerate(done.horizons):
                assert done.total[h, p, b] == sum(taken[:horizon])
                assert done.discounted[h, p, b] == pytest.approx(np.dot(taken[:horizon], weights[:horizon]), rel=1e-13)


def test_numbers_have_their_law():
    system = make_system([0.05, 0.7, 2.5], 4, exogenous=[0.0, 0.2, 0.0], arrivals=1.5)
    jobs = drawn(system, 256, 0, 400)
    for row, rate in enumerate((0.05, 0.7, 2.5, 0.0, 0.2, 0.0, 1.5)):
        for k in range(1, 5):
            p, n = poisson.sf(k - 1, rate), jobs[:, row].size
            seen = (jobs[:, row] >= k).sum()
            assert binom.ppf(1e-8, n, p) <= seen <= binom.isf(1e-8, n, p)
    for a, b in ((0, 4), (1, 5), (0, 2), (1, 2)):  # of one word pair, and of different ones
        if jobs[:, b].any():
            assert abs(np.corrcoef(jobs[:, a].ravel(), jobs[:, b].ravel())[0, 1]) < norm.isf(1e-7) / np.sqrt(
                jobs[:, a].size
            )


def test_model_1_has_its_expected_reward():
    """Choices depend on ages alone there, so that the expected reward of every slot is known (false alarm 1e-7 each)."""
    policies = build_policies(["whittle", "myopic"], FINITE)
    done = simulate_dispatching(FINITE, policies, horizons=(5, 50, 200), replicas=4096, seed=1)
    found = estimate(done.discounted)
    for p, policy in enumerate(policies):
        index = [policy.index[kind][-1] for kind in FINITE.kinds[1]]
        exact = np.cumsum(open_loop(index, FINITE.rates, 4, 200) * 0.95 ** np.arange(200))[[4, 49, 199]]
        assert np.all(np.abs(found.mean[:, p] - exact) < SURE * found.ci95[:, p])


PAIRS = [
    make_system([0.3, 0.1], 3, model="finite", discount=0.9),
    MORE,
    make_system([0.4, 0.25], 3, model="blocking", discount=1.0),
]


@pytest.mark.parametrize("system", PAIRS)
@pytest.mark.parametrize("start", ["full", "empty"])
def test_two_servers(system, start):
    """Every policy's exact value is covered (false alarm 1e-7 each), none beats the optimum of what it sees."""
    policies = build_policies(POLICIES, system)
    exact = [evaluate(system, policy, start=start) for policy in policies]
    best, seen = optimum(system, start=start), seen_optimum(system, start=start)
    assert all(v.lower <= v.value <= v.upper and v.upper - v.lower < 1e-6 for v in (*exact, best, seen))
    for policy, value in zip(policies, exact, strict=True):
        assert value.lower <= (seen if policy.rule == "backlog" else best).upper
    assert best.lower <= seen.upper and exact[0].value > 0.99 * best.value  # Whittle loses little
    done = simulate_dispatching(system, policies, horizons=(200, 400), start=start, replicas=1024, seed=2)
    found = estimate(done.discounted[1] if system.discount < 1 else (done.total[1] - done.total[0]) / 200)
    # What comes after the horizon is below 1e-7 in the discounted systems.
    for value, mean, half in zip(exact, found.mean, found.ci95, strict=True):
        assert abs(mean - value.value) < SURE * half + 1e-6


def test_one_server_is_always_chosen():
    system = make_system([0.7], 3, model="finite")
    done = simulate_dispatching(system, build_policies(POLICIES, system), horizons=(100,), replicas=8)
    served = drawn(system, 8, 0, 100)[:, 0]
    assert (done.total == served.sum(axis=0)).all()  # always full, and refilled with what left


def test_bitwise_the_same_however_it_is_cut():
    policies = build_policies(POLICIES, MORE)
    given = {"horizons": (10, 333), "replicas": 12, "seed": 9}
    whole = simulate_dispatching(MORE, policies, **given)
    for other in (
        simulate_dispatching(MORE, policies, **given, chunk=3),
        simulate_dispatching(MORE, policies, **given, devices=jax.local_devices()[:1]),
    ):
        np.testing.assert_array_equal(whole.total, other.total)
        np.testing.assert_array_equal(whole.backlog, other.backlog)
        np.testing.assert_allclose(whole.discounted, other.discounted, rtol=1e-13)
    fewer = simulate_dispatching(MORE, policies, **(given | {"replicas": 5}))
    np.testing.assert_array_equal(fewer.total, whole.total[..., :5])
    some = simulate_dispatching(MORE, [policies[3], policies[0]], **given)  # whatever runs beside it
    np.testing.assert_array_equal(some.total, whole.total[:, [3, 0]])
    assert (simulate_dispatching(MORE, policies, **(given | {"seed": 10})).total != whole.total).any()


def test_published_claims():
    """Whittle is above myopic, paired, and within a few percent of the oracle (false alarm below 1e-6)."""
    system = make_system([0.05] * 5 + [0.1] * 4 + [0.5], 6, model="blocking")
    data = dispatch(system, horizon=600, replicas=1024)
    one = data.sel(policy="myopic").isel(horizon=-1)
    assert one.lead > 5 / 1.96 * one.lead_ci95 > 0
    assert 0 < data.below_oracle.sel(policy="whittle").isel(horizon=-1) < 5
    assert [r["policy"] for r in rows(data)] == list(POLICIES) and rows(data)[0]["value"] is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"horizons": (0,)}, "horizon is 0"),
        ({"horizons": (5, 5)}, "do not ascend"),
        ({"replicas": 0}, "replicas is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"start": "half"}, "no start 'half'"),
    ],
)
def test_faults(arguments, words):
    with pytest.raises(InputError, match=words):
        simulate_dispatching(FINITE, build_policies(["jsq"], FINITE), **arguments)


def test_faults_of_policies():
    with pytest.raises(InputError, match="at least one"):
        simulate_dispatching(FINITE, [])
    mine = from_index([arm.expected for arm in arms_of(make_system([0.3], 4))], "mine")
    with pytest.raises(InputError, match="the system needs 2 of shape"):
        simulate_dispatching(FINITE, [mine])
    with pytest.raises(InputError, match="not a number"):
        from_index([np.array([[np.nan]])], "mine")
    with pytest.raises(InputError, match="named twice"):
        build_policies(["jsq", "jsq"], FINITE)
    with pytest.raises(InputError, match="no policy 'lag'"):
        build_policies(["lag"], FINITE)
    with pytest.raises(InputError, match="solved for 2"):
        optimum(FINITE)
