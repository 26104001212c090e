"""Solvers of libraries that give up: tried again from a sane start, and if that does not help, named in one line."""

import importlib

import numpy as np
import optimistix
import pytest
import scipy.sparse.linalg
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence

from lagjax.compatibility import certificate, complete, mean_field, random_routing, regular
from lagjax.errors import InputError, SolverError
from lagjax.fluid import fluid_system
from lagjax.gallery import priority
from lagjax.loss_routing import chain, exact_loss, make_system
from lagjax.loss_routing.policies import build_routing
from lagjax.policies import build_policy

fixed_point, spectrum = (importlib.import_module(f"lagjax.fluid.{name}") for name in ("fixed_point", "spectrum"))


def failing(solver, error, times):
    """A solver that raises so often before it works."""
    left = [times]

    def solve(*given, **options):
        left[0] -= 1
        if left[0] >= 0:
            raise error
        return solver(*given, **options)

    return solve


@pytest.mark.parametrize(
    "error", [ArpackError(-9), ArpackNoConvergence("No convergence", np.empty(0), np.empty((9, 0)))]
)
def test_singular_values_of_a_large_graph(monkeypatch, error):
    graph = regular(60, 60, 7)
    exact = certificate.singular_value(graph)
    monkeypatch.setattr(certificate, "DENSE", 1)
    eigsh = certificate.eigsh
    monkeypatch.setattr(certificate, "eigsh", failing(eigsh, error, certificate.STARTS - 1))
    assert certificate.singular_value(graph) == pytest.approx(exact, rel=1e-8)
    monkeypatch.setattr(certificate, "eigsh", failing(eigsh, error, certificate.STARTS))
    with pytest.raises(SolverError, match=r"^singular values of graph 'regular' \(60 types, 60 servers\): [^\n]+$"):
        certificate.singular_value(graph)


def test_a_complete_graph_of_any_size_has_none():
    found = certificate.certify(complete(65_536, 65_536))
    assert found.sigma < 1e-10 and found.at_least == 0 and found.at_most < 1e-12


def test_leading_eigenvalues_of_a_fluid(monkeypatch):
    operator = scipy.sparse.linalg.aslinearoperator(np.diag(np.arange(1.0, 201.0)))
    eigs = scipy.sparse.linalg.eigs
    monkeypatch.setattr(scipy.sparse.linalg, "eigs", failing(eigs, ArpackError(-9), spectrum.STARTS - 1))
    assert np.abs(spectrum._leading(operator, 200)[0]).max() == pytest.approx(200)
    monkeypatch.setattr(scipy.sparse.linalg, "eigs", failing(eigs, ArpackError(-9), spectrum.STARTS))
    with pytest.raises(
        SolverError, match=r"^the leading eigenvalues of a derivative of size 200 were not found: [^\n]+$"
    ):
        spectrum._leading(operator, 200)


def test_a_fluid_that_nothing_moves_has_no_eigenvalues(monkeypatch):
    monkeypatch.setattr(spectrum, "DENSE", 1)
    values, free, whole = spectrum._of_matrix(np.zeros((2, 3, 3)), np.full((2, 40), 1 / 40))
    assert values.size == 0 and whole and not free.any()


def test_the_fixed_point_of_a_fluid(monkeypatch):
    instance = priority(0.8)
    system = fluid_system(instance, build_policy("greedy", instance))
    full = np.eye(1, instance.max_duration + 1, 1).repeat(instance.num_servers, axis=0)
    exact = fixed_point.fixed_point(system)
    solver = optimistix.fixed_point
    monkeypatch.setattr(optimistix, "fixed_point", failing(solver, RuntimeError("many\nlines"), 1))
    np.testing.assert_array_equal(
        fixed_point.fixed_point(system, full).state, exact.state
    )  # from all free, the second time
    monkeypatch.setattr(optimistix, "fixed_point", solver)
    monkeypatch.setattr(fixed_point, "_DAMPED_STEPS", 0)
    with pytest.raises(
        SolverError, match=r"^the fixed point of 8 servers was not found in 0 steps of FixedPointIteration$"
    ):
        fixed_point.fixed_point(system, full)


def test_trajectories_of_the_mean_field(monkeypatch):
    monkeypatch.setattr(mean_field, "MAX_STEPS", 4)
    with pytest.raises(SolverError, match=r"^the trajectory over 7 mean service times takes more than 4 steps"):
        mean_field.trajectory(
            random_routing(), 0.7, [3.0, 7.0], (0.5,) * 9
        )  # a shape of its own, so that it is compiled anew


def test_factors_of_a_routing_chain(monkeypatch):
    system = make_system([1, 2], [3, 4], [1.0, 0.8], 1.5)
    (policy,) = build_routing(["sq"], system)
    exact = exact_loss(system, policy).loss
    splu = chain.splu
    monkeypatch.setattr(chain, "splu", failing(splu, RuntimeError("Factor is exactly singular"), 1))
    assert exact_loss(system, policy).loss == pytest.approx(exact, rel=1e-12)
    monkeypatch.setattr(chain, "splu", failing(splu, RuntimeError("Factor is exactly singular"), 3))
    with pytest.raises(InputError, match=r"the chain of 20 states is too ill-conditioned"):
        exact_loss(system, policy)
