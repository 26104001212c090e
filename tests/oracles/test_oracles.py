"""The oracles against identities, closed forms and one another; the compiled simulator against the chains."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from lagjax.durations import geometric
from lagjax.gallery import gallery, journal, priority, specialist
from lagjax.instance import make_instance

HERE = Path(__file__).resolve().parent


def load(path):
    name = f"_oracle_{path.stem}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


events = load(HERE / "event_simulator.py")
chain = load(HERE / "busy_chain.py")


@pytest.fixture(scope="module")
def compiled():
    pytest.importorskip("numba")
    return load(HERE.parents[1] / "experiments" / "benchmarks" / "numba_loss.py")


def by_score(scores):
    return np.stack([np.unique(-row, return_inverse=True)[1].reshape(-1) for row in scores])


def small(k=1, servers=4, service=(0.2, 0.5, 0.3), load=0.45, seed=0, types=3):
    scores = np.random.default_rng(seed).integers(0, 3, (types, servers)) / 2
    return make_instance(scores, service, servers_per_task=k, load=load, mix=np.arange(1, types + 1))


def draws(instance, arrivals, seed):
    rng = np.random.default_rng(seed)
    gaps = rng.geometric(instance.total_rate, arrivals)
    types = rng.choice(instance.num_types, arrivals, p=instance.arrival_rate / instance.total_rate)
    cdf = np.cumsum(instance.service_pmf, axis=1)
    durations = 1 + (rng.random(arrivals)[:, None] > cdf[types]).sum(axis=1)
    return gaps, types, durations


# ---- event simulator ----


def test_assigned_server_is_busy_for_exactly_its_duration():
    trace = events.simulate([0, 1, 1, 1], [0] * 4, [2, 5, 5, 1], events.strict_order([[0]]), num_servers=1)
    assert trace.accepted.tolist() == [True, False, False, True]  # taken at 0, busy at 1 and 2, free at 3
    assert trace.assigned.ravel().tolist() == [0, -1, -1, 0]
    assert trace.busy.tolist() == [0, 1, 1, 0]
    assert trace.step.tolist() == [0, 1, 2, 3]


def test_shared_duration_and_blocking_below_k():
    trace = events.simulate([2, 1, 3], [0] * 3, [3, 1, 1], events.strict_order([[2, 0, 1]], k=2), 3, 2)
    assert trace.accepted.tolist() == [True, False, True]
    assert trace.assigned.tolist() == [[2, 0], [-1, -1], [2, 0]]
    assert trace.busy.tolist() == [0, 2, 0]


@pytest.mark.parametrize("k", [1, 3])
def test_event_simulator_equals_release_times(k):
    instance = small(k=k, servers=7, load=0.5, service=np.full(9, 1 / 9))
    gaps, types, durations = draws(instance, 1500, seed=k)
    order = np.argsort(-instance.scores, axis=1, kind="stable")
    trace = events.simulate(gaps, types, durations, events.strict_order(order, k), 7, k)
    free_at = np.zeros(7, int)
    for i, t in enumerate(np.cumsum(gaps)):
        free = free_at <= t
        assert trace.busy[i] == np.sum(~free)
        assert trace.accepted[i] == (free.sum() >= k)
        if trace.accepted[i]:
            chosen = order[types[i]][free[order[types[i]]]][:k]
            np.testing.assert_array_equal(trace.assigned[i], chosen)
            free_at[chosen] = t + durations[i] + 1
    assert 0 < trace.accepted.sum() < len(gaps)


def test_busy_path_is_the_same_under_every_policy():
    """Lemma 3.1."""
    instance = small(k=2, servers=6, load=0.6, service=np.full(7, 1 / 7))
    given = draws(instance, 1500, seed=1)
    tiers = by_score(instance.scores)
    u = np.random.default_rng(2).random((1500, 2))
    choosers = [
        events.strict_order([range(6)] * 3, 2),
        events.strict_order([range(5, -1, -1)] * 3, 2),
        events.equal_race(tiers, u, 2),
        events.equal_race(0 * tiers, lambda i, copy, count: (i + copy) % count, 2),
        events.weighted_race(0 * tiers, instance.scores + 0.1, u, 2),
    ]
    first, *others = [events.simulate(*given, choose, 6, 2) for choose in choosers]
    for other in others:
        np.testing.assert_array_equal(first.accepted, other.accepted)
        np.testing.assert_array_equal(first.busy, other.busy)
    assert any(np.any(first.assigned != other.assigned) for other in others)


def test_choosers_follow_their_picks():
    free = np.array([True, False, True, True, True])
    tiers = [[0, 0, 1, 0, 1]]
    assert events.equal_race(tiers, [[0.5, 0.9]], 2)(0, free, 0) == [3, 0]  # tier 0 offers 0 and 3
    assert events.equal_race(tiers, [[0.0, 0.0, 0.5]], 3)(0, free, 0) == [0, 3, 4]  # then tier 1: 2 and 4
    weights = [[1.0, 9.0, 2.0, 3.0, 2.0]]
    race = events.weighted_race([[0] * 5], weights, [[0.2, 0.5], [0.1249, 0.0], [0.125, 0.99]], 2)
    assert race(0, free, 0) == [2, 3]  # 0.2 * 8 = 1.6 lies in (1, 3]; then 0.5 * 6 = 3 lies in (1, 4]
    assert race(0, free, 1) == [0, 2]
    assert race(0, free, 2) == [2, 4]


def test_event_simulator_refuses_what_it_cannot_use():
    with pytest.raises(ValueError, match="expected 1 different free"):
        events.simulate([0, 1], [0, 0], [3, 3], lambda v, free, i: [0], 2)
    with pytest.raises(ValueError, match="at least 1"):
        events.simulate([0, 0], [0, 0], [3, 3], events.strict_order([[0]]), 1)
    with pytest.raises(ValueError, match="equal numbers"):
        events.simulate([0, 1], [0], [3, 3], events.strict_order([[0]]), 1)


# ---- exact chains ----


def test_choices_of_races():
    equal = chain.choices([0, 2, 3, 5], [0] * 6, [1] * 6, 2)
    assert len(equal) == 6
    np.testing.assert_allclose(list(equal.values()), 1 / 6)
    weighted = chain.choices([0, 1, 2], [0] * 3, [1.0, 2.0, 3.0], 2)
    assert weighted[0, 1] == pytest.approx(1 / 6 * 2 / 5 + 2 / 6 * 1 / 4)
    assert sum(weighted.values()) == pytest.approx(1)
    assert chain.choices([0, 1, 2], [2, 1, 0], [1] * 3, 2) == {(1, 2): 1.0}
    tiered = chain.choices([0, 1, 2, 3], [0, 1, 1, 1], [1] * 4, 2)
    assert tiered == pytest.approx({(0, 1): 1 / 3, (0, 2): 1 / 3, (0, 3): 1 / 3})


def systems():
    strict = np.array([[0, 1, 2, 3], [3, 2, 1, 0], [1, 0, 3, 2]])
    weights = np.random.default_rng(5).uniform(0.2, 2, (3, 4))
    for k, top in ((1, 0.5), (2, 0.45), (3, 0.2)):
        instance = small(k=k, load=top)
        yield pytest.param(instance, strict, None, id=f"k{k}-strict")
        yield pytest.param(instance, by_score(instance.scores), None, id=f"k{k}-ties")
        yield pytest.param(instance, 0 * strict, weights, id=f"k{k}-weights")


@pytest.mark.parametrize(("instance", "tiers", "weights"), list(systems()))
def test_chain_identities(instance, tiers, weights):
    k, total = instance.servers_per_task, instance.total_rate
    means = np.array([2.0, 1.5, 3.0])
    solved = {
        "equal": (chain.geometric_chain(instance, tiers, weights, mean=2.5), np.full(3, 2.5)),
        "unequal": (chain.geometric_chain(instance, tiers, weights, mean=means), means),
        "bounded": (chain.remaining_chain(instance, tiers, weights), instance.mean_duration),
    }
    for result, mean in solved.values():
        law = np.array(list(result.probability.values()))
        np.testing.assert_allclose(result.transition.sum(axis=1), 1, atol=1e-13)
        np.testing.assert_allclose(law @ result.transition, law, atol=1e-13)
        assert law.min() > -1e-14
        assert result.busy_law.sum() == pytest.approx(1, abs=1e-12)
        # Little's law, and every accepted task takes k servers
        assert (result.rate.sum(axis=1) @ mean) == pytest.approx(result.mean_busy, rel=1e-11)
        accepted = k * instance.arrival_rate * (1 - result.blocking)
        np.testing.assert_allclose(result.rate.sum(axis=1), accepted, rtol=1e-11)
        assert result.reward == pytest.approx(np.sum(result.rate * instance.scores))
    blocking, tasks = chain.exact_blocking(4, total, 2.5, k)
    equal = solved["equal"][0]
    assert equal.blocking == pytest.approx(blocking, abs=1e-13)
    np.testing.assert_allclose(equal.busy_law[: k * len(tasks) : k], tasks, atol=1e-13)


def test_busy_law_does_not_depend_on_the_policy():
    instance = small(k=2)
    results = [chain.remaining_chain(instance, t) for t in (by_score(instance.scores), np.zeros((3, 4), int))]
    np.testing.assert_allclose(results[0].busy_law, results[1].busy_law, atol=1e-13)
    assert abs(results[0].reward - results[1].reward) > 1e-3


def test_single_server_closed_form():
    """Constraint (3) with R = 1, k = 1: phi (1 + sum lambda_v E[D_v]) = 1, whatever the law."""
    instance = make_instance([[1.0], [3.0]], [[0.1, 0.2, 0.7], [0.5, 0.0, 0.5]], arrival_rate=[0.2, 0.3])
    bounded = chain.remaining_chain(instance, [[0], [0]])
    geometric_law = chain.geometric_chain(instance, [[0], [0]])
    phi = 1 / (1 + 0.2 * 2.6 + 0.3 * 2.0)
    for result in (bounded, geometric_law):
        assert result.busy_law[0] == pytest.approx(phi, rel=1e-12)
        assert result.blocking == pytest.approx(1 - phi, rel=1e-12)
        assert result.reward == pytest.approx((0.2 * 1 + 0.3 * 3) * phi, rel=1e-12)
    assert chain.exact_blocking(1, 0.5, 4.0)[0] == pytest.approx(1 - 1 / (1 + 0.5 * 4), rel=1e-12)


def test_duration_of_one_step():
    """D = 1 with R = 2, k = 1: a task leaves when the next one sees its server, so nobody is ever blocked."""
    instance = make_instance([[1.0, 2.0]], [1.0], arrival_rate=[0.6])
    for result in (chain.remaining_chain(instance, [[1, 0]]), chain.geometric_chain(instance, [[1, 0]])):
        assert result.blocking == 0
        assert result.busy_law[:2] == pytest.approx([0.4, 0.6])
        # server 1 is free with probability phi = 1 / (1 + lambda)
        np.testing.assert_allclose(result.rate, [[0.6 * (1 - 1 / 1.6), 0.6 / 1.6]])


def test_truncated_geometric_law_agrees_with_the_untruncated_chain():
    instance = make_instance([[1.0, 0.3], [0.2, 1.0]], geometric(1.5), arrival_rate=[0.3, 0.3])
    tiers = [[0, 1], [1, 0]]
    bounded = chain.remaining_chain(instance, tiers)
    untruncated = chain.geometric_chain(instance, tiers, mean=1.5)
    np.testing.assert_allclose(bounded.rate, untruncated.rate, rtol=1e-7)
    assert bounded.blocking == pytest.approx(untruncated.blocking, rel=1e-7)


@pytest.mark.parametrize(("make", "mean", "states"), [(priority, 20, 256), (specialist, 10, 128)])
def test_gallery_chains(make, mean, states):
    instance = make(0.8)
    result = chain.geometric_chain(instance, by_score(instance.scores), mean=mean)
    assert len(result.probability) == states
    blocking, tasks = chain.exact_blocking(instance.num_servers, instance.total_rate, mean)
    assert result.blocking == pytest.approx(blocking, abs=1e-13)
    np.testing.assert_allclose(result.busy_law, tasks, atol=1e-13)
    if make is specialist:
        assert blocking == pytest.approx(0.133, abs=5e-4)  # the value quoted for the published system


def test_event_simulator_agrees_with_the_chain():
    instance = small(k=2, load=0.5)
    tiers = by_score(instance.scores)
    exact = chain.remaining_chain(instance, tiers)
    uniforms = np.random.default_rng(1).random((20_000, 2))
    trace = events.simulate(*draws(instance, 20_000, 3), events.equal_race(tiers, uniforms, 2), 4, 2)
    batches = 1 - trace.accepted[1000:].reshape(50, -1).mean(axis=1)
    assert abs(batches.mean() - exact.blocking) < 4 * batches.std(ddof=1) / np.sqrt(50)
    seen = np.stack([trace.busy[1000:].reshape(50, -1) == n for n in (0, 2, 4)]).mean(axis=2)
    error = seen.std(axis=1, ddof=1) / np.sqrt(50)
    assert np.all(np.abs(seen.mean(axis=1) - exact.busy_law[[0, 2, 4]]) < 4 * error)


# ---- compiled simulator ----


def check_against(compiled, instance, exact, tiers, weights=None, method="auto", arrivals=40_000):
    """Reward and blocking of 40 runs within 4 standard errors of the exact value, every rate within 5."""
    runs = [compiled.simulate(instance, tiers, weights, arrivals, 2000, s, method=method) for s in range(40)]
    per_step = instance.total_rate / arrivals
    rates = np.stack([counts for counts, _, _ in runs]) * per_step
    for sample, value, sigmas in (
        (np.sum(rates * instance.scores, axis=(1, 2)), exact.reward, 4),
        (np.array([blocked.sum() for _, blocked, _ in runs]) / arrivals, exact.blocking, 4),
        (rates, exact.rate, 5),
    ):
        error = sample.std(axis=0, ddof=1) / np.sqrt(len(runs))
        assert np.all(np.abs(sample.mean(axis=0) - value) <= sigmas * error + 1e-8)
    for counts, blocked, by_type in runs:
        assert by_type.sum() == arrivals
        np.testing.assert_array_equal(counts.sum(axis=1), instance.servers_per_task * (by_type - blocked))


def test_compiled_greedy_and_strict_on_priority(compiled):
    instance = priority(0.7)
    for strict in (False, True):
        tiers = compiled.tiers_by_score(instance.scores, strict=strict)
        check_against(compiled, instance, chain.geometric_chain(instance, tiers, mean=20), tiers)


def test_compiled_weighted_race_on_specialist(compiled):
    instance = specialist(0.6)
    weights = np.random.default_rng(0).uniform(0.1, 2, instance.scores.shape)
    tiers = by_score(instance.scores)
    exact = chain.geometric_chain(instance, tiers, weights, mean=10)
    check_against(compiled, instance, exact, tiers, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_compiled_shared_duration(compiled, weighted):
    instance = small(k=2, load=0.5)
    tiers = by_score(instance.scores)
    weights = np.random.default_rng(1).uniform(0.1, 2, tiers.shape) if weighted else None
    check_against(compiled, instance, chain.remaining_chain(instance, tiers, weights), tiers, weights)


def test_compiled_unequal_laws(compiled):
    instance = make_instance(
        [[1.0, 0.4, 0.1], [0.3, 1.0, 0.2]], [geometric(6), geometric(2)], load=0.6, mix=[1, 2]
    )  # fmt: skip
    tiers = compiled.tiers_by_score(instance.scores, strict=True)
    exact = chain.geometric_chain(instance, tiers, mean=[6, 2])
    check_against(compiled, instance, exact, tiers, method="scan")


@pytest.mark.parametrize("make", [priority, journal])
def test_compiled_methods_agree(compiled, make):
    instance = make(0.8)
    tiers = compiled.tiers_by_score(instance.scores, strict=True)
    runs = [compiled.simulate(instance, tiers, None, 50_000, 500, 7, method=m) for m in compiled.METHODS]
    first, *others = runs
    for other in others:
        for a, b in zip(first, other, strict=True):
            np.testing.assert_array_equal(a, b)
    again = compiled.simulate(instance, tiers, None, 50_000, 500, 8)
    assert np.any(again[0] != first[0])


def test_compiled_clocks_survive_long_gaps(compiled):
    """At a rate of 1e-4 gaps take many table draws, calendar pages turn and the 32-bit clock restarts."""
    instance = priority(0.7)
    rare = make_instance(instance.scores, geometric(20), arrival_rate=[0.7e-4, 0.3e-4])
    tiers = compiled.tiers_by_score(rare.scores, strict=True)
    results = [compiled.simulate(rare, tiers, None, 150_000, 0, 1, method=m) for m in compiled.METHODS]
    for other in results[1:]:
        np.testing.assert_array_equal(results[0][0], other[0])
    exact = chain.geometric_chain(rare, tiers, mean=20)
    expected = np.maximum(exact.rate, 0) / rare.total_rate * 150_000
    assert np.all(np.abs(results[0][0] - expected) < 5 * np.sqrt(expected) + 5)


def test_compiled_order_helpers_and_errors(compiled):
    np.testing.assert_array_equal(compiled.tiers_of_order([[2, 0, 1]]), [[1, 2, 0]])
    np.testing.assert_array_equal(compiled.tiers_by_score([[0.5, 2.0, 0.5]]), [[1, 0, 1]])
    np.testing.assert_array_equal(compiled.tiers_by_score([[0.5, 2.0, 0.5]], strict=True), [[1, 0, 2]])
    instance = gallery("low-rank")
    with pytest.raises(ValueError, match="shape"):
        compiled.simulate(instance, [[0, 1]], None, 10, 0, 0)
    with pytest.raises(ValueError, match="positive"):
        compiled.simulate(instance, np.zeros((10, 30), int), np.zeros((10, 30)), 10, 0, 0)
