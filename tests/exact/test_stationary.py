"""Stationary laws: identities of the chain, the plain oracle chains, and counting equal servers together."""

import busy_chain
import numpy as np
import pytest

from lagjax.durations import deterministic, geometric
from lagjax.errors import InputError
from lagjax.exact import evaluate, exact_blocking
from lagjax.exact import stationary as module
from lagjax.exact.chain import assign_matrix, build_chain, serve, serve_law
from lagjax.exact.choice import team_probabilities
from lagjax.exact.service import service_of
from lagjax.gallery import priority, specialist
from lagjax.instance import make_instance
from lagjax.policies import POLICIES, build_policy, make_policy, strict_order

BOUNDED = [[0.2, 0.5, 0.3], [0, 1.0]]
# kind of service: (laws, means of geometric laws or None, k, R)
KINDS = {
    "geometric": (geometric(3.3), [3.3, 3.3], 1, 5),
    "two means": ([geometric(1.4), geometric(5)], [1.4, 5], 1, 4),
    "pairs": (geometric(2.5), [2.5, 2.5], 2, 5),
    "pairs, two means": ([geometric(1.4), geometric(5)], [1.4, 5], 2, 5),
    "triples": (geometric(2.5), [2.5, 2.5], 3, 7),
    "bounded": (BOUNDED, None, 1, 3),
    "bounded pairs": (BOUNDED, None, 2, 4),
    "one step": (deterministic(1), None, 1, 3),
    "mixed": ([[0.2, 0.5, 0.3], geometric(1.3)], None, 1, 3),
}
CASES = 6


def system(kind, seed):
    """Random scores with equal servers, and a policy with ties, races of unequal weight or capped tiers."""
    rng = np.random.default_rng(seed)
    service, means, k, servers = KINDS[kind]
    columns = rng.integers(0, 3, (2, 2)) + np.array([[1.0], [0.0]])
    instance = make_instance(
        columns[:, rng.integers(0, 2, servers)], service, servers_per_task=k, load=0.25, mix=[1, 2]
    )
    shape = instance.scores.shape
    rule = ("race", "capped")[seed % 2]
    policy = make_policy("any", rng.integers(0, 2, shape), rng.choice([1.0, 1.0, 2.5], shape), rule)
    return instance, policy, means


def oracle(instance, policy, means):
    order = strict_order(policy)
    tier, weight = (policy.tier, policy.weight) if order is None else (order, None)
    if means is None:
        return busy_chain.remaining_chain(instance, tier, weight)
    return busy_chain.geometric_chain(instance, tier, weight, mean=means)


@pytest.mark.parametrize("seed", range(CASES))
@pytest.mark.parametrize("kind", KINDS)
def test_values_are_those_of_the_plain_chain_lumped_or_not(kind, seed):
    instance, policy, means = system(kind, seed)
    if kind == "mixed":  # the oracle has one representation for all types: geometric laws step by step, to 2^-12 only
        laws = [BOUNDED[0], geometric(1.3, tail=2.0**-12)]
        rough = make_instance(instance.scores, laws, arrival_rate=instance.arrival_rate)
        truth, tolerance = oracle(rough, policy, None), 1e-3
    else:
        truth, tolerance = oracle(instance, policy, means), 1e-12 if means is None else 1e-9
    sizes = []
    for lumped in (True, False):
        value = evaluate(instance, policy, lumped=lumped)
        rate = np.stack([truth.rate[:, list(members)].sum(axis=1) for members in value.groups], axis=1)
        np.testing.assert_allclose(value.rate, rate, atol=tolerance)
        np.testing.assert_allclose([value.reward, value.blocking], [truth.reward, truth.blocking], atol=tolerance)
        sizes.append(value.states)
    assert sizes[0] <= sizes[1]
    np.testing.assert_allclose(exact_blocking(instance), value.blocking, atol=1e-12)
    assert sorted(r for members in value.groups for r in members) == list(range(instance.num_servers))


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_factors_make_a_stochastic_matrix(kind):
    instance, policy, _ = system(kind, 0)
    chain = build_chain(instance, tuple((r,) for r in range(instance.num_servers)))
    taken = [
        rate * team_probabilities(chain.free, policy.tier[v], policy.weight[v], chain.teams)
        for v, rate in enumerate(instance.arrival_rate)
    ]
    fits = chain.free.sum(axis=1) >= instance.servers_per_task
    for part, rate in zip(taken, instance.arrival_rate, strict=True):
        np.testing.assert_allclose(part.sum(axis=1), rate * fits, atol=1e-15)
    assign = assign_matrix(chain, taken)
    transition = assign @ serve(chain, np.eye(chain.num_states))
    assert transition.min() > -1e-14
    np.testing.assert_allclose(transition.sum(axis=1), 1, atol=1e-14)
    some = np.random.default_rng(1).random(chain.num_states)
    np.testing.assert_allclose(serve(chain, some), serve(chain, some[:, None])[:, 0], atol=1e-14)
    np.testing.assert_allclose(serve_law(chain, assign.T @ some), transition.T @ some, atol=1e-13)


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize(("gallery", "mean", "states"), [(priority, 20, 21), (specialist, 10, 96)])
def test_gallery_chains_are_small_and_right(gallery, mean, states, name):
    instance = gallery(0.6)
    policy = build_policy(name, instance)
    value, truth = evaluate(instance, policy), oracle(instance, policy, mean)
    assert value.states == states
    np.testing.assert_allclose([value.reward, value.blocking], [truth.reward, truth.blocking], atol=1e-12)


def test_large_chains_are_solved_iteratively_to_the_same_values(monkeypatch):
    for kind in ("geometric", "two means", "pairs", "bounded"):
        instance, policy, _ = system(kind, 1)
        direct = evaluate(instance, policy, lumped=False)
        with monkeypatch.context() as patch:
            patch.setattr(module, "_DIRECT", 0)
            iterated = evaluate(instance, policy, lumped=False)
        assert iterated.residual < 1e-11
        np.testing.assert_allclose(iterated.reward, direct.reward, rtol=1e-11)
        np.testing.assert_allclose(iterated.rate, direct.rate, atol=1e-11)


def test_tens_of_thousands_of_states_block_as_they_must():
    scores = np.random.default_rng(0).random((2, 3))
    instance = make_instance(np.repeat(scores, 39, axis=1), geometric(120), load=0.95)
    value = evaluate(instance, build_policy("lag", instance))
    assert value.states == 40**3
    np.testing.assert_allclose(value.blocking, exact_blocking(instance), rtol=1e-6)
    np.testing.assert_allclose(
        instance.mean_duration @ value.rate.sum(axis=1),  # Little: busy servers
        (1 - value.blocking) * instance.load * instance.num_servers,
        rtol=1e-9,
    )


def test_geometric_laws_are_recognised_and_others_are_not():
    def laws_of(*laws):
        return service_of(make_instance(np.ones((len(laws), 3)), list(laws), load=0.1))

    found = laws_of(geometric(20), geometric(1.0001), [0.5, 0.5], geometric(20), deterministic(3))
    np.testing.assert_allclose(found.finish, [1 / 20, 1 / 1.0001], rtol=1e-12)
    assert found.law.tolist() == [0, 1, 2, 0, 3]
    assert [len(pmf) for pmf in found.steps] == [2, 3] and found.longest == 3
    for law in (geometric(20, tail=1e-3), [0.5, 0.25, 0.125, 0.125], geometric(20)[:50] / geometric(20)[:50].sum()):
        assert laws_of(law).longest == len(law)
    bent = geometric(20)
    bent[7] *= 1 + 1e-4
    assert laws_of(bent / bent.sum()).longest == len(bent)


def test_what_is_too_large_is_refused_before_it_is_built():
    rng = np.random.default_rng(0)
    cases = [
        (make_instance(rng.random((2, 40)), geometric(20), load=0.4), "about 10^12 states"),
        (make_instance(rng.random((2, 30)), geometric(20), load=0.4), "1,073,741,824 states"),
        (make_instance(rng.random((2, 9)), deterministic(43), load=0.5), "about 10^14 states"),
        (make_instance(rng.random((2, 20)), geometric(9), servers_per_task=2, load=0.3), "kinds of running tasks"),
        (make_instance(rng.random((2, 30)), geometric(9), servers_per_task=6, load=0.3), "more than 1,623,160 states"),
    ]
    for instance, words in cases:
        with pytest.raises(InputError, match=r"exact solutions stop at 2,000,000 states") as caught:
            evaluate(instance, build_policy("random", instance), lumped=False)
        assert words in str(caught.value)


def test_arguments_that_do_not_fit_are_named():
    with pytest.raises(InputError, match=r"policy 'random' has shape \(6, 7\), instance 'priority' has \(2, 8\)"):
        evaluate(priority(), build_policy("random", specialist()))
    every_step = make_instance(np.ones((1, 4)), deterministic(2), arrival_rate=[1.0])
    with pytest.raises(InputError, match="an arrival at every step"):
        exact_blocking(every_step)
