"""Eigenvalues of the derivative of G on its tangent space, the directions along which every row sums to 0.

Only phi moves the rates, so with M_j the (R, R) derivative of the rates of service law j summed over its types, a direction
that G multiplies by z satisfies (I + sum_j M_j sum_{i=1..d} P(D_j >= i) z^-i) dphi = 0. With one law that is one polynomial of
degree d for each eigenvalue of M; with several, a matrix of size R d whose leading eigenvalues are asked for.
"""

from __future__ import annotations

import dataclasses

import jax
import numpy as np
import scipy.linalg
import scipy.sparse.linalg

from lagjax.durations import survival
from lagjax.errors import SolverError
from lagjax.fluid.checks import checked_state, system_shape
from lagjax.fluid.map import FluidSystem, assignment_rates

DENSE = 2500  # largest R d whose whole spectrum is computed when types have different laws
LEADING = 32  # eigenvalues beyond that
STARTS = 3  # of the iteration that finds them, until one ends well
_EQUAL = 1e-9  # eigenvalues of M this close, relative to the largest, are one with a multiplicity


@dataclasses.dataclass(frozen=True, eq=False)
class Spectrum:
    """Eigenvalues of the derivative of G on the tangent space.

    Attributes:
      eigenvalues: complex, the largest modulus first; those at 0 are left out, but where types have several laws
        rounding can make defective ones as large as 1e-2.
      whole: whether these are all; otherwise the leading ones.
      radius: the largest modulus, 0 if there is none: near the fixed point distances shrink by this factor per step.
      direction: (R, d+1) real tangent direction along which they do so, rows summing to 0, of largest entry 1.
    """

    eigenvalues: np.ndarray
    whole: bool
    radius: float
    direction: np.ndarray


def spectrum(system: FluidSystem, x) -> Spectrum:
    """The spectrum at a state (R, d+1), in float64; where the derivative of G jumps, that of one side.

    Raises:
      InputError: x is no state of the system.
      SolverError: the iteration for the leading eigenvalues failed from every start.
    """
    law = np.asarray(system.law, np.float64)
    slopes = rate_slopes(system, checked_state("x", x, system_shape(system)))
    eigenvalues, free, whole = _of_polynomials(slopes[0], law[0]) if len(law) == 1 else _of_matrix(slopes, law)
    eigenvalues = eigenvalues[np.argsort(-np.abs(eigenvalues), kind="stable")]
    radius = float(np.abs(eigenvalues).max(initial=0))
    return Spectrum(eigenvalues, whole, radius, _direction(eigenvalues[:1], free, slopes, law))


def rate_slopes(system: FluidSystem, x) -> np.ndarray:
    """(K, R, R) derivatives d a_jr / d phi_s of the rates a_j = sum of u_v over the types of law j, float64."""
    with jax.enable_x64(True):
        return np.asarray(_slopes(system, np.asarray(x, np.float64)[:, 0]))


@jax.jit
def _slopes(system, phi):
    member = np.equal.outer(np.arange(len(system.law)), system.law_of_type).astype(phi.dtype)
    return jax.jacfwd(lambda phi: member @ assignment_rates(system, phi[:, None]))(phi)


def _of_polynomials(slopes, law):
    """Eigenvalues, and the free fractions of the leading direction, for one law."""
    values, vectors = np.linalg.eig(slopes)
    values = np.where(np.abs(values) <= _EQUAL * np.abs(values).max(), 0, values)
    found, free, radius = [np.empty(0)], vectors[:, 0], -1.0
    for value in np.unique(np.round(values[(values != 0) & (values.imag >= 0)], 12)):
        roots = _roots(value, law)
        found += [roots] * int(np.sum(np.round(values, 12) == value))
        if np.abs(roots).max() > radius:
            radius = np.abs(roots).max()
            branch = roots[np.argmax(np.abs(roots))]
            own = np.abs(1 + value * (survival(law) @ branch ** -np.arange(1.0, len(law) + 1)))
            other = np.abs(1 + np.conj(value) * (survival(law) @ branch ** -np.arange(1.0, len(law) + 1)))
            free = vectors[:, np.argmin(np.abs(values - (value if own <= other else np.conj(value))))]
    return np.concatenate(found), free, True


def _roots(slope, law):
    """z^d + slope sum_i P(D >= i) z^(d-i) = 0; for a complex slope together with its conjugate's, in real arithmetic."""
    factor = np.concatenate([[1], slope * survival(law)])
    if slope.imag == 0:
        return np.linalg.eigvals(scipy.linalg.companion(factor.real))
    return np.linalg.eigvals(scipy.linalg.companion(np.convolve(factor, factor.conj()).real))


def _of_matrix(slopes, law):
    """Eigenvalues on coordinates x[r, 1..d], and the free fractions of the leading direction."""
    num_servers, longest = slopes.shape[1], law.shape[1]
    size = num_servers * longest
    if not slopes.any():
        return np.empty(0), np.zeros(num_servers), True  # running services only end: all eigenvalues are 0

    def moved(columns):
        busy = columns.reshape(num_servers, longest, -1)
        started = -np.einsum("jrs,scn->jrn", slopes, busy)
        later = np.concatenate([busy[:, 1:], np.zeros_like(busy[:, :1])], axis=1)
        return (later + np.einsum("jrn,ji->rin", started, law)).reshape(size, -1)

    whole = size <= DENSE
    if whole:
        values, vectors = np.linalg.eig(moved(np.eye(size)))
    else:
        operator = scipy.sparse.linalg.LinearOperator((size, size), matvec=lambda x: moved(x).ravel(), dtype=np.float64)
        values, vectors = _leading(operator, size)
    leading = vectors[:, np.argmax(np.abs(values))].reshape(num_servers, longest)
    return values[np.abs(values) > 1e-14], -leading.sum(axis=1), whole


def _leading(operator, size):
    for seed in range(STARTS):
        start = np.random.Generator(np.random.PCG64(seed)).standard_normal(size)
        try:
            return scipy.sparse.linalg.eigs(operator, LEADING, v0=start, ncv=4 * LEADING, maxiter=20 * size)
        except scipy.sparse.linalg.ArpackError as error:
            failure = error
    raise SolverError(f"the leading eigenvalues of a derivative of size {size:,} were not found: {failure}")


def _direction(leading, free, slopes, law):
    """The real part of x[r, i] = sum_j M_j dphi P(D_j >= i), shifted by powers of z, that belongs to dphi."""
    longest = law.shape[1]
    out = np.zeros((slopes.shape[1], longest + 1), complex)
    if leading.size:
        out[:, 0] = free
        later = np.zeros(slopes.shape[1], complex)
        started = slopes @ free
        for i in range(longest, 0, -1):  # z x_i = x_{i+1} + sum_j P(D_j = i) M_j dphi
            later = (later + law[:, i - 1] @ started) / leading[0]
            out[:, i] = later
        out[:, 0] = -out[:, 1:].sum(axis=1)  # `free` again, with the rounding that powers of a small z magnify
    real = out.real if np.abs(out.real).max() >= np.abs(out.imag).max() else out.imag
    return real / max(np.abs(real).max(), 1e-300)
