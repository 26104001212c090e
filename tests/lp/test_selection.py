"""The canonical optimum: unique, equivariant, strictly complementary, and the centre that it claims to be."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize
from programs import GALLERY_CASES, load_grid, random_instance

from lagjax.errors import InputError
from lagjax.gallery import gallery
from lagjax.instance import make_instance
from lagjax.lp import SolverError, solve_kiid, solve_occ
from lagjax.lp.program import kiid_program, occ_program
from lagjax.lp.selection import check_selection, select


def permuted(instance, types, servers):
    return dataclasses.replace(
        instance, scores=instance.scores[np.ix_(types, servers)], arrival_rate=instance.arrival_rate[types],
        service_pmf=instance.service_pmf[types],
    )  # fmt: skip


@pytest.mark.parametrize("name", GALLERY_CASES)
def test_permuting_types_and_servers_permutes_the_solution(name):
    rng = np.random.default_rng(1)
    for load in load_grid(name)[::2]:
        instance = gallery(name, load)
        types, servers = rng.permutation(instance.num_types), rng.permutation(instance.num_servers)
        other = permuted(instance, types, servers)
        scale, grid = instance.scores.max(), np.ix_(types, servers)
        a, b = solve_occ(instance), solve_occ(other)
        np.testing.assert_allclose(b.tie_weight, a.tie_weight[grid], atol=1e-9)
        np.testing.assert_allclose(b.index, a.index[grid], atol=1e-9 * scale)
        np.testing.assert_allclose(b.free_fraction, a.free_fraction[servers], atol=1e-9)
        np.testing.assert_allclose(b.task_price, a.task_price[types], atol=1e-9 * scale)
        np.testing.assert_array_equal(b.index == 0, a.index[grid] == 0)
        x, y = solve_kiid(instance), solve_kiid(other)
        np.testing.assert_allclose(y.assignment_rate, x.assignment_rate[grid], atol=1e-9)
        np.testing.assert_allclose(y.reduced, x.reduced[grid], atol=1e-9 * scale)


def test_permuting_random_instances():
    rng = np.random.default_rng(2)
    for _ in range(60):
        instance = random_instance(rng)
        types, servers = rng.permutation(instance.num_types), rng.permutation(instance.num_servers)
        a, b = solve_occ(instance), solve_occ(permuted(instance, types, servers))
        np.testing.assert_allclose(b.tie_weight, a.tie_weight[np.ix_(types, servers)], atol=1e-6)
        np.testing.assert_allclose(b.index, a.index[np.ix_(types, servers)], atol=1e-6)


@pytest.mark.parametrize("make", [occ_program, lambda i, _: kiid_program(i)], ids=["occ", "kiid"])
def test_strictly_complementary(make):
    rng = np.random.default_rng(3)
    cases = [gallery(n, load) for n in GALLERY_CASES for load in (0.2, 0.5, 0.8)]
    for instance in cases + [random_instance(rng) for _ in range(40)]:
        program = make(instance, 0.2)
        p = select(program, "canonical")
        up = program.slack_up(p.w, p.idle)
        assert p.w[p.reduced >= 0].min(initial=1) > 1e-9
        assert up[p.reduced <= 0].min(initial=1) > 1e-9
        assert np.all(p.w[p.reduced < 0] == 0) and np.all(up[p.reduced > 0] == 0)


def all_slacks(program, w, idle):
    """All slacks of the program; the centre maximises the sum of logs of those not zero on the face."""
    spare = program.demand - w.sum(1)
    parts = [w.ravel(), program.slack_up(w, idle).ravel(), idle] + ([] if program.coupled else [spare])
    return np.concatenate(parts)


@pytest.mark.parametrize("make", [occ_program, lambda i, _: kiid_program(i)], ids=["occ", "kiid"])
def test_centre_of_the_primal_face_by_a_general_solver(make):
    """Along every direction that HiGHS finds inside the optimal face, the barrier does not increase."""
    rng = np.random.default_rng(4)
    moved = 0
    for instance in [gallery(n, 0.5) for n in ("specialist", "unfriendly", "priority")] + [
        random_instance(rng) for _ in range(90)
    ]:
        program = make(instance, 0.1)
        p = select(program, "canonical")
        slack = all_slacks(program, p.w, p.idle)
        inside = slack > 1e-9
        for _ in range(6):
            w, idle = another_optimum(program, p, rng)
            towards = all_slacks(program, w, idle) - slack
            assert np.abs(towards[~inside]).max(initial=0) < 1e-6
            moved += np.abs(towards).max() > 1e-3
            assert (towards[inside] / slack[inside]).sum() <= 1e-6 * inside.sum()
    assert moved > 100


def another_optimum(program, p, rng):
    """A vertex of the optimal face: any objective over the points complementary to the canonical prices."""
    num_types, num_servers = program.scores.shape
    size, a = p.w.size, program.occupancy
    rows_type = np.hstack([np.kron(np.eye(num_types), np.ones((1, num_servers))), np.zeros((num_types, num_servers))])
    rows_server = np.hstack([np.kron(a[None], np.eye(num_servers)), np.eye(num_servers)])
    reduced = p.reduced.ravel()
    lower, upper = np.zeros(size + num_servers), np.full(size + num_servers, np.inf)
    upper[:size][reduced < 0] = 0
    equal, value = [rows_server], [np.ones(num_servers)]
    at_most, bound = [], []
    if program.coupled:
        below = np.hstack([np.eye(size), -np.kron(np.ones((num_types, 1)), np.eye(num_servers))])
        equal += [rows_type, below[reduced > 0]]
        value += [np.full(num_types, program.demand), np.zeros((reduced > 0).sum())]
        at_most, bound = below[reduced <= 0], np.zeros((reduced <= 0).sum())
    else:
        upper[:size] = np.where(reduced < 0, 0, 1)
        lower[:size] = np.where(reduced > 0, 1, 0)
        upper[size:] = np.where(p.server_price > 0, 0, np.inf)
        priced = p.price > 0
        equal.append(rows_type[priced])
        value.append(np.full(priced.sum(), program.demand))
        at_most, bound = rows_type[~priced], np.full((~priced).sum(), program.demand)
    answer = scipy.optimize.linprog(
        rng.normal(size=size + num_servers), A_ub=at_most if len(at_most) else None,
        b_ub=bound if len(at_most) else None, A_eq=np.vstack(equal), b_eq=np.concatenate(value),
        bounds=np.stack([lower, upper], axis=1),
    )  # fmt: skip
    assert answer.status == 0, answer.message
    return answer.x[:size].reshape(p.w.shape), answer.x[size:]


def test_centre_of_a_face_of_one_dimension():
    """Scores made from chosen prices, so that phi_0 is free; its centre by a search along the face."""
    rate, index = np.array([0.4, 0.2, 0.1]), np.array([[0, 0, 0], [1, 1, -0.5], [0.5, -1, 0]])
    server_price = rate @ np.maximum(index, 0)
    instance = make_instance(1 + 2 * server_price + index, [0.0, 1.0], arrival_rate=rate)

    def point(phi):
        first, second = (1 - 1.6 * phi) / 0.8, (1 - 1.4 * (1 - phi)) / 0.8
        w = np.array([[first, second, 1 - first - second], [phi, 1 - phi, 0], [phi, 0, 1 - phi]])
        return w, np.array([phi, 1 - phi, 1 - 2 * rate @ w[:, 2]])

    def minus_logs(phi):
        w, idle = point(phi)
        return -np.log(np.concatenate([w[index >= 0], (idle - w)[index <= 0], idle])).sum()

    best = scipy.optimize.minimize_scalar(minus_logs, bounds=(0.45, 0.55), method="bounded", options={"xatol": 1e-10})
    assert 0.46 < best.x < 0.54
    s = solve_occ(instance)
    np.testing.assert_allclose(s.index, index, atol=1e-12)
    np.testing.assert_allclose(s.tie_weight, point(best.x)[0], atol=1e-6)
    np.testing.assert_allclose(s.free_fraction, point(best.x)[1], atol=1e-6)


@pytest.mark.parametrize("coupled", [True, False], ids=["occ", "kiid"])
def test_dual_centre_maximises_the_sum_of_logs(coupled):
    """Towards other prices, which HiGHS finds, the sum of logs of the dual slacks does not increase."""
    rng = np.random.default_rng(5)
    found = 0
    for _ in range(200):
        # a demand that a whole number of servers meets exactly leaves an interval of prices
        scores = rng.integers(0, 3, (2, 4)) / 2 + 0.5 * rng.random((2, 1))
        instance = make_instance(scores, [0.0, 1.0], arrival_rate=[1 / 12, 1 / 12])
        if coupled:
            program = dataclasses.replace(occ_program(instance, 0.0), demand=rng.integers(1, 4) * 3 / 4)
        else:
            program = dataclasses.replace(kiid_program(instance), demand=float(rng.integers(1, 4)))
        p, other = select(program, "canonical"), select(program, "vertex")
        if np.abs(other.reduced - p.reduced).max() < 1e-6:
            continue
        found += 1
        strict, priced, bought = p.reduced != 0, p.price > 0, p.server_price > 0
        rates = (other.reduced - p.reduced)[strict] / p.reduced[strict]
        if not coupled:
            more = (other.price / np.where(priced, p.price, 1) - 1)[priced]
            rates = np.concatenate([rates, more, (other.server_price[bought] / p.server_price[bought]) - 1])
        assert np.abs(other.reduced[~strict]).max(initial=0) < 1e-9
        assert rates.sum() <= 1e-8
    assert found > 5


def test_interior_is_the_centre():
    for name in GALLERY_CASES:
        instance = gallery(name, 0.4)
        a, b = solve_occ(instance), solve_occ(instance, selection="interior")
        np.testing.assert_array_equal(a.index, b.index)
        np.testing.assert_array_equal(a.tie_weight, b.tie_weight)
        assert (a.selection, b.selection) == ("canonical", "interior")


def test_an_uncertified_solution_is_an_error(monkeypatch):
    monkeypatch.setattr("lagjax.lp.selection.RESIDUAL_TOLERANCE", -1.0)
    monkeypatch.setattr("lagjax.lp.selection.RESIDUAL_AIM", -1.0)
    program = dataclasses.replace(occ_program(gallery("specialist", 0.3), 0.0), demand=0.98765)
    for selection in ("canonical", "vertex"):
        with pytest.raises(SolverError, match="OCC-LP"):
            select(program, selection)


def test_names():
    assert check_selection("vertex") == "vertex"
    with pytest.raises(InputError, match="choose from canonical, interior, vertex"):
        check_selection("simplex")
