"""The scaled system: the split among dispatchers, conservation, paths at one copy, laws of small systems copy by copy."""

import collections
import itertools

import copies_simulator
import event_simulator
import jax
import jax.numpy as jnp
import numpy as np
import plain_allocation
import pytest
from scipy.stats import chi2, hypergeom, multivariate_hypergeom, norm
from scipy.stats import t as student_t

from lagjax.engine.scaled_run import simulate_scaled
from lagjax.fluid import lp_fixed_point
from lagjax.gallery import GALLERY, priority
from lagjax.instance import make_instance
from lagjax.lp import solve_occ
from lagjax.models import alias, scaled, streams
from lagjax.policies import build_policy, make_policy, strict_order

FALSE_ALARM = 1e-6  # of all statistical tests of this file together
TESTS = 1000  # more than there are
MOST = 256  # dispatchers that the table of gaps has room for: one program for all sizes

run_steps = jax.jit(
    lambda state, numbers, tables, keys: jax.lax.scan(
        lambda state, now: _recorded(state, now, tables, keys), state, numbers
    )
)


def _recorded(state, now, tables, keys):
    free = scaled.occupancy(state, now, 1)[..., 0]
    state, counts = scaled.step(state, scaled.Moment(now, keys), tables)
    return state, (free, counts, jnp.sum(state.returning, axis=0) + state.free)


def tables_of(instance, policy, copies, dispatchers, most=None):
    with jax.enable_x64(True):
        return jax.tree.map(
            jnp.asarray, scaled.scaled_tables(instance, policy, copies, dispatchers, most or dispatchers)
        )


def keys_of(replicas, seed=0):
    kinds = streams.EXOGENOUS, streams.PARTITION, streams.TIES
    return scaled.Keys(*(streams.replica_keys(seed, kind, np.arange(replicas)) for kind in kinds))


def no_counts(instance, replicas):
    per_type = jnp.zeros((instance.num_types, replicas), jnp.int32)
    return scaled.Counts(jnp.zeros((*instance.scores.shape, replicas), jnp.int32), per_type, per_type)


def path(instance, policy, copies, dispatchers, *, steps, replicas, seed=0, state=None):
    """The final state and, of every step, (T, R, B) free copies at its start, its counts, (T, R, B) copies after it."""
    tables = tables_of(instance, policy, copies, dispatchers, MOST)
    state = scaled.empty(tables, replicas) if state is None else state
    numbers = jnp.arange(steps, dtype=jnp.uint32)
    state, (free, counts, total) = run_steps(state, numbers, tables, keys_of(replicas, seed))
    free = np.rint(np.moveaxis(np.asarray(free), 1, 2)).astype(int)
    return state, free, jax.tree.map(np.asarray, counts), np.asarray(total)


# The split among dispatchers. Tasks of k = 2 take all that they find of servers 0 and 1, and make up for the rest from
# servers 2 and 3, of which all copies are free: so a step shows what the tasks' dispatchers found, named by their types.


def found_by_dispatchers(free, copies, dispatchers, rate, lanes, seed):
    """(3, 2, L) free copies of servers 0 and 1 found by three dispatchers, where just three had tasks, of all three types."""
    instance = make_instance(np.ones((3, 4)), [1.0], servers_per_task=2, arrival_rate=[rate] * 3)
    policy = make_policy("strict", np.tile([0, 1, 2, 3], (3, 1)), rule="capped")
    total = copies * dispatchers
    busy = np.array([total - free[0], total - free[1], 0, 0], np.int32)
    returning = np.zeros((2, 4, lanes), np.int32)
    returning[1] = busy[:, None]
    start = scaled.State(jnp.asarray(np.repeat(total - busy[:, None], lanes, axis=1)), jnp.asarray(returning))
    _, _, counts, _ = path(instance, policy, copies, dispatchers, steps=1, replicas=lanes, seed=seed, state=start)
    assert not np.any(counts.blocked)
    tasks = counts.arrived[0].sum(axis=0)
    assert np.all(tasks <= dispatchers) and (rate < 1 / 3 or np.all(tasks == dispatchers))
    chosen = np.all(counts.arrived[0] == 1, axis=0)
    return counts.served[0][:, :2][:, :, chosen].astype(np.int64)


SPLITS = {  # free copies of servers 0 and 1, n, m, rate of each type
    "all dispatchers": ((5, 9), 4, 3, 1 / 3),
    "one copy each": ((2, 1), 1, 3, 1 / 3),
    "some without a task": ((11, 4), 5, 4, 0.2),
    "many without a task": ((300, 16000), 64, 256, 1 / 256),
    "large": ((10_000_000, 5_000), 2**22, 4, 0.25),
    "largest figure": ((3_300_000, 2**24 - 400), 2**16, 256, 1 / 256),
}


@pytest.mark.parametrize("name", SPLITS)
def test_dispatchers_find_the_multivariate_hypergeometric_law(name):
    free, n, m, rate = SPLITS[name]
    found = found_by_dispatchers(free, n, m, rate, lanes=2**16, seed=4)
    size, total = found.shape[-1], n * m
    assert size > 2000
    sigmas = norm.isf(FALSE_ALARM / TESTS / 2)
    for r in range(2):
        few = free[r]
        mean = few * n / total
        variance = few * (total - few) * n * (total - n) / (total**2 * (total - 1))
        covariance = -few * (total - few) * n**2 / (total**2 * (total - 1))
        x = found[:, r].astype(np.float64)
        assert x.min() >= max(0, few - (total - n)) and x.max() <= min(n, few)
        assert np.all(x.sum(axis=0) <= few)
        if m == 3:
            np.testing.assert_array_equal(x.sum(axis=0), few)
        assert np.all(np.abs(x.mean(axis=1) - mean) <= sigmas * np.sqrt(variance / size))
        excess = 1 / variance - 6 if n == 1 else float(hypergeom(float(total), float(few), float(n)).stats("k"))
        dev = x - mean
        assert np.all(np.abs((dev**2).mean(axis=1) - variance) <= sigmas * variance * np.sqrt((excess + 2) / size))
        for i, j in itertools.combinations(range(3), 2):
            products = dev[i] * dev[j]
            assert abs(products.mean() - covariance) <= sigmas * products.std() / np.sqrt(size)
    # the two server types are split independently
    cross = np.corrcoef(found[0, 0], found[0, 1])[0, 1]
    assert abs(cross) <= sigmas / np.sqrt(size)


@pytest.mark.parametrize("name", ["all dispatchers", "one copy each", "some without a task"])
def test_joint_counts_of_three_dispatchers(name):
    """Chi-square of the joint law of three dispatchers, for each server type."""
    free, n, m, rate = SPLITS[name]
    found = found_by_dispatchers(free, n, m, rate, lanes=2**16, seed=5)
    for r in range(2):
        seen = collections.Counter(map(tuple, found[:, r].T.tolist()))
        groups = [n] * 3 + ([n * (m - 3)] if m > 3 else [])
        expected = {}
        for cell in itertools.product(range(n + 1), repeat=3):
            counts = [*cell, free[r] - sum(cell)][: len(groups)]
            if sum(counts) == free[r] and all(0 <= c <= g for c, g in zip(counts, groups, strict=True)):
                expected[cell] = float(multivariate_hypergeom.pmf(counts, groups, free[r])) * found.shape[-1]
        assert set(seen) <= set(expected)
        cells = sorted(expected, key=expected.get)
        pooled, observed, hoped = [], 0, 0.0
        for cell in cells:
            observed, hoped = observed + seen[cell], hoped + expected[cell]
            if hoped >= 25:
                pooled.append((observed, hoped))
                observed, hoped = 0, 0.0
        statistic = sum((o - e) ** 2 / e for o, e in pooled)
        assert len(pooled) >= 3
        assert chi2.sf(statistic, len(pooled) - 1) > FALSE_ALARM / TESTS


def deterministic_types():
    """Three types of 3, 1 and 5 steps: the counts say when every copy is back."""
    laws = [[0, 0, 1], [1], [0, 0, 0, 0, 1]]
    scores = np.random.default_rng(0).random((3, 4))
    return make_instance(scores, laws, servers_per_task=1, arrival_rate=[0.3, 0.25, 0.35]), (3, 1, 5)


POLICIES = {
    "capped": lambda shape: make_policy(
        "capped", np.tile([0, 1, 1, 1], (shape[0], 1)), np.tile([1, 2, 3, 1], (shape[0], 1)), "capped"
    ),
    "even": lambda shape: make_policy("even", np.tile([0, 1, 1, 0], (shape[0], 1))),
    "weighted": lambda shape: make_policy(
        "weighted", np.tile([0, 0, 1, 1], (shape[0], 1)), np.tile([1, 5, 2, 1], (shape[0], 1))
    ),
}


@pytest.mark.parametrize("rule", POLICIES)
@pytest.mark.parametrize(("copies", "dispatchers"), [(1, 1), (3, 2), (16, 4), (1, 5)])
def test_copies_are_conserved_and_come_back_after_their_duration(rule, copies, dispatchers):
    """Given at t, busy at t+1 .. t+D, free again at t+D+1: free copies and occupancy of every step, from the counts."""
    instance, durations = deterministic_types()
    policy = POLICIES[rule](instance.scores.shape)
    steps, replicas, total = 40, 5, copies * dispatchers
    state, free, counts, copies_after = path(instance, policy, copies, dispatchers, steps=steps, replicas=replicas)
    assert np.all(copies_after == total)
    assert np.all(counts.served >= 0)
    taken = copies * (counts.arrived - counts.blocked)
    np.testing.assert_array_equal(counts.served.sum(axis=2), taken)
    assert counts.blocked.sum() > 0
    for t in range(steps):
        busy = sum(counts.served[max(t - d, 0) : t, v].sum(axis=0) for v, d in enumerate(durations))
        np.testing.assert_array_equal(free[t], total - busy)
    expected = np.zeros((replicas, 4, 6))
    for v, d in enumerate(durations):
        for left in range(1, d + 1):
            expected[:, :, left] += counts.served[steps - 1 - (d - left), v].T
    expected[:, :, 0] = total - expected.sum(axis=2)
    np.testing.assert_allclose(scaled.occupancy(state, steps, total), expected / total, atol=1e-6)


def one_copy_systems():
    small = make_instance(
        np.random.default_rng(1).random((2, 7)), [0.1, 0.3, 0.2, 0.4], servers_per_task=3, load=0.5, mix=[1, 2]
    )
    return {"priority": priority(0.8), "k3": small}


@pytest.mark.parametrize("name", ["priority", "k3"])
def test_one_copy_and_one_dispatcher_are_the_original_system(name):
    """Path by path: the model's own tasks, fed to the event simulator with LAG's order of servers."""
    instance = one_copy_systems()[name]
    policy, k = build_policy("lag", instance), instance.servers_per_task
    steps, replicas = 500, 4
    state, free, counts, _ = path(instance, policy, 1, 1, steps=steps, replicas=replicas, seed=9)
    tables, keys = tables_of(instance, policy, 1, 1, MOST), keys_of(replicas, seed=9)
    numbers = jnp.arange(steps, dtype=jnp.uint32)[:, None]
    has_task = np.asarray(alias.draw(tables.gap, streams.words(keys.exogenous, numbers, scaled.FIRST)[0])) == 1
    mark = np.asarray(alias.draw(tables.mark, streams.words(keys.exogenous, numbers, 0)[0]))
    kinds, durations = mark // tables.span, mark % tables.span + tables.shortest
    choose = event_simulator.strict_order(np.argsort(strict_order(policy), axis=1), k)
    occupancy = np.asarray(scaled.occupancy(state, steps, 1))
    lost = 0
    for b in range(replicas):
        times = np.flatnonzero(has_task[:, b])
        gaps = np.diff(times, prepend=0)
        trace = event_simulator.simulate(gaps, kinds[times, b], durations[times, b], choose, instance.num_servers, k)
        served = np.zeros((steps, *instance.scores.shape), int)
        arrived, blocked = (np.zeros((steps, instance.num_types), int) for _ in range(2))
        left = np.zeros(instance.num_servers, int)
        for i, t in enumerate(times):
            v = kinds[t, b]
            arrived[t, v] = 1
            assert free[t, :, b].sum() == instance.num_servers - trace.busy[i]
            if trace.accepted[i]:
                served[t, v, trace.assigned[i]] = 1
                left[trace.assigned[i]] = np.maximum(durations[t, b] - (steps - 1 - t), 0)
            else:
                blocked[t, v] = 1
        for found, expected in ((counts.served, served), (counts.arrived, arrived), (counts.blocked, blocked)):
            np.testing.assert_array_equal(found[..., b], expected)
        np.testing.assert_array_equal(occupancy[b].argmax(axis=-1), left)
        np.testing.assert_array_equal(occupancy[b].sum(axis=-1), 1)
        lost += blocked.sum()
    assert lost > 10


def law_cases():
    """Small systems, each with a policy and sizes n, m."""
    rng = np.random.default_rng(3)
    pairs = make_instance(
        rng.integers(1, 5, (2, 4)) / 4, [[0.5, 0.1, 0.4], [0.2, 0.8]], servers_per_task=2, arrival_rate=[0.35, 0.35]
    )
    wide = make_policy("capped", [[0, 1, 1, 1], [0, 0, 0, 0]], [[1, 1, 4, 2], [5, 1, 2, 2]], "capped")
    race = make_policy("weighted", [[0, 0, 0, 1], [1, 0, 0, 0]], [[5, 1, 2, 1], [1, 1, 3, 9]])
    return {
        "capped pairs, n 3, m 2": (pairs, wide, 3, 2),
        "random pairs, n 3, m 2": (pairs, build_policy("random", pairs), 3, 2),
        "weighted pairs, n 2, m 2": (pairs, race, 2, 2),
        "weighted pairs, n 1, m 2": (pairs, race, 1, 2),
    }


@pytest.mark.parametrize("name", law_cases())
def test_small_systems_equal_individual_copies(name):
    """Rewards, losses and rates of every (type, server) within intervals from replicas of both simulators."""
    instance, policy, n, m = law_cases()[name]
    steps, warmup = 150, 30
    ours = simulate_scaled(instance, policy, copies=n, dispatchers=m, steps=steps, warmup=warmup, replicas=3000, seed=6)
    plain = copies_simulator.simulate(instance, policy, n, m, steps=steps, warmup=warmup, replicas=200, seed=8)
    ours = copies_simulator.Totals(*(sum(getattr(w, field) for w in ours) for field in plain._fields))

    def observables(totals):
        per_step = 1 / (steps * m)
        yield np.einsum("vr,vrb->b", instance.scores, totals.served)[None] * per_step / n
        yield totals.blocked * per_step
        yield totals.arrived * per_step
        yield totals.served.reshape(-1, totals.served.shape[-1]) * per_step / n

    assert plain.blocked.sum() > 200
    sigmas = student_t.isf(FALSE_ALARM / TESTS / 2, 199)
    for found, expected in zip(observables(ours), observables(plain), strict=True):
        error = np.sqrt(found.var(axis=1, ddof=1) / found.shape[1] + expected.var(axis=1, ddof=1) / expected.shape[1])
        rare = expected.sum(axis=1) == 0  # servers that a type hardly gets
        difference = np.abs(found.mean(axis=1) - expected.mean(axis=1))
        assert np.all(difference <= np.where(rare, 30 / (200 * steps * m), sigmas * error)), name


@pytest.mark.parametrize("copies", [1, 7, 100, 65536, 2**23])
def test_every_task_keeps_the_guarantees_of_the_rounding(copies):
    """Appendix A at m = 1, where a step has one task: a_hat sums to n k, at most C, within 1 of the waterfill."""
    instance = make_instance(np.ones((2, 5)), [[0.5, 0.3, 0.2], [0, 0, 1]], servers_per_task=2, arrival_rate=[0.4, 0.4])
    policy = make_policy("capped", [[0, 1, 1, 1, 2], [1, 1, 0, 0, 0]], [[1, 2, 3, 5, 1], [1, 2, 4, 1, 1]], "capped")
    steps, replicas = 40, 3
    _, free, counts, _ = path(instance, policy, copies, 1, steps=steps, replicas=replicas, seed=2)
    tasks = 0
    for t, v, b in np.argwhere(counts.arrived):
        capacity, given = free[t, :, b], counts.served[t, v, :, b]
        budget = 2 * copies
        assert counts.blocked[t, v, b] == (capacity.sum() < budget)
        if counts.blocked[t, v, b]:
            assert not np.any(given)
            continue
        tasks += 1
        amount = plain_allocation.waterfill(
            float(budget), capacity.astype(float).tolist(), policy.tier[v].tolist(), policy.weight[v].tolist()
        )
        assert given.sum() == budget
        assert np.all(given >= 0) and np.all(given <= capacity)
        assert np.all(np.abs(given - amount) < 1 + 1e-6)
    assert tasks > 40 and counts.blocked.sum() > 0


@pytest.mark.parametrize("name", [n for n in GALLERY if n != "journal"])
def test_warm_start_is_the_fixed_point_in_whole_copies(name):
    """Lemma 4.4: x_hat[r, 0] = phi_r, x_hat[r, i] = sum_v P(D_v >= i) u_vr, by largest remainders."""
    instance = GALLERY[name](0.8)
    solution = solve_occ(instance)
    policy = build_policy("lag", instance)
    for copies, dispatchers in ((1, 1), (16, 4), (65536, 256)):
        total = copies * dispatchers
        state = scaled.filled(tables_of(instance, policy, copies, dispatchers), lp_fixed_point(instance, solution), 2)
        assert state.free.dtype == state.returning.dtype == np.int32
        free, returning = np.asarray(state.free), np.asarray(state.returning)
        assert free.shape == (instance.num_servers, 2)
        np.testing.assert_array_equal(free[:, 0], free[:, 1])
        np.testing.assert_array_equal(free + returning.sum(axis=0), total)
        assert np.all(free >= 0) and np.all(returning >= 0) and not np.any(returning[0])
        tail = np.array([instance.service_pmf[:, i:].sum(axis=1) for i in range(returning.shape[0] - 1)])  # P(D > i)
        exact = np.concatenate([solution.free_fraction[None], tail @ solution.assignment_rate]) * total
        found = np.concatenate([free[None, :, 0], returning[1:, :, 0]])
        assert np.all(np.abs(found - exact) < 1 + 1e-6 * total)
        if total < 100:
            for r in range(instance.num_servers):
                rest = np.sort(np.where(exact[:, r] % 1 > 1 - 1e-6, 0, exact[:, r] % 1))
                up = found[:, r] - np.floor(exact[:, r] + 1e-6) == 1
                assert np.all(exact[up, r] % 1 >= rest[rest.size - up.sum()] - 1e-6)


def test_warm_start_stays_where_it_is():
    """At n = 4096, m = 256 LAG's occupancy and reward remain those of the fluid fixed point, up to finite-size effects."""
    instance = GALLERY["specialist"](0.8)
    solution, policy = solve_occ(instance), build_policy("lag", instance)
    copies, dispatchers = 4096, 256
    tables = tables_of(instance, policy, copies, dispatchers, MOST)
    start = scaled.filled(tables, lp_fixed_point(instance, solution), 8)
    state, _, counts, _ = path(instance, policy, copies, dispatchers, steps=60, replicas=8, state=start)
    total = copies * dispatchers
    before, after = (np.asarray(scaled.occupancy(s, t, total)).mean(axis=0) for s, t in ((start, 0), (state, 60)))
    assert np.abs(before - after).max() < 0.02
    reward = np.einsum("vr,tvrb->", instance.scores, counts.served) / (60 * 8 * total)
    assert abs(reward / solution.objective - 1) < 0.01


@pytest.mark.parametrize("rule", ["capped", "weighted"])
def test_replicas_do_not_depend_on_each_other(rule):
    instance, _ = deterministic_types()
    policy = POLICIES[rule](instance.scores.shape)
    size = {"copies": 12, "dispatchers": 3, "steps": 21, "warmup": 4, "seed": 5}
    reference = simulate_scaled(instance, policy, replicas=6, **size)
    cuts = [{"replicas": 5}]
    if rule == "capped":
        cuts = [{"replicas": 6, "chunk": 4}, {"replicas": 6, "devices": jax.local_devices()[:1]}]
    for cut in cuts:
        for found, expected in zip(simulate_scaled(instance, policy, **size, **cut), reference, strict=True):
            for field in ("served", "arrived", "blocked"):
                expected_part = getattr(expected, field)[..., : cut["replicas"]]
                np.testing.assert_array_equal(getattr(found, field), expected_part)
    assert not np.array_equal(reference[0].served[..., 0], reference[0].served[..., 1])


def test_tasks_are_the_same_for_every_policy_and_every_n():
    """Exogenous streams: arrivals depend neither on the policy nor on n; at n = m = 1 losses do not either (Lemma 3.1)."""
    instance, _ = deterministic_types()
    for dispatchers, copies in ((1, (1, 1)), (3, (1, 16))):
        runs = [
            path(instance, POLICIES[rule](instance.scores.shape), n, dispatchers, steps=40, replicas=5)[2]
            for rule, n in zip(("even", "capped"), copies, strict=True)
        ]
        np.testing.assert_array_equal(runs[0].arrived, runs[1].arrived)
        if dispatchers == 1:
            np.testing.assert_array_equal(runs[0].blocked, runs[1].blocked)
            assert runs[0].blocked.any() and not np.array_equal(runs[0].served, runs[1].served)
