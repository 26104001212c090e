"""The reduced Newton system against the whole one, in both of its forms."""

import numpy as np
import pytest

from lagjax.lp.newton import Curvature, NewtonSystem


def whole(occupancy, c):
    """The equations in all multipliers and idle, dense."""
    follow = np.zeros_like(c.inverse_w) if c.follow is None else c.follow
    aw = occupancy[:, None] * c.inverse_w
    gain = np.diag(1 + occupancy @ follow)
    top = np.hstack([np.diag(c.inverse_w.sum(1) + c.inverse_spare), aw, follow])
    middle = np.hstack([aw.T, np.diag(occupancy @ aw), gain])
    return np.vstack([top, middle, np.hstack([follow.T, gain, -np.diag(1 / c.inverse_idle)])])


@pytest.mark.parametrize("coupled", [True, False], ids=["occ", "kiid"])
@pytest.mark.parametrize("shape", [(3, 8), (8, 3), (6, 6)])
def test_both_forms_solve_the_whole_system(shape, coupled):
    rng = np.random.default_rng(1)
    for _ in range(20):
        occupancy, inverse_w = rng.random(shape[0]), rng.random(shape)
        follow = rng.random(shape) if coupled else None
        spare = np.zeros(shape[0]) if coupled else rng.random(shape[0])
        if coupled and shape[0] > shape[1]:
            inverse_w[0] = 0  # a type that only idle servers serve
        c = Curvature(inverse_w, follow, rng.random(shape[1]), spare)
        rhs = rng.normal(size=shape[0]), rng.normal(size=shape[1]), rng.normal(size=shape[1])
        found = np.concatenate(NewtonSystem(occupancy, c).multipliers(*rhs))
        right = np.concatenate([rhs[0], rhs[1], -rhs[2]])
        left = whole(occupancy, c) @ found - right
        assert np.abs(left).max() <= 1e-9 * max(1, np.abs(found).max())


@pytest.mark.parametrize("shape", [(4, 9), (9, 4)])
def test_dependent_equations_are_solved_where_they_can_be(shape):
    """Two groups of types and servers that do not meet, with no idle time: in each, the equations add up to nothing."""
    rng = np.random.default_rng(2)
    occupancy = rng.random(shape[0])
    types, servers = np.arange(shape[0]) % 2, np.arange(shape[1]) % 2
    inverse_w = rng.random(shape) * (types[:, None] == servers)
    c = Curvature(inverse_w, None, np.zeros(shape[1]), np.zeros(shape[0]))
    null = (types[:, None] == [0, 1]) * occupancy[:, None], -1.0 * (servers[:, None] == [0, 1])
    system = NewtonSystem(occupancy, c, null)
    dw = rng.normal(size=shape) * (inverse_w > 0)
    zero = np.zeros(shape), np.zeros(shape[1]), np.zeros(shape[0])
    gaps = dw.sum(1), occupancy @ dw
    moves = system.correct(*system.solve(*zero, *gaps)[:3], *gaps)
    np.testing.assert_allclose(moves[0].sum(1), gaps[0], atol=1e-12)
    np.testing.assert_allclose(occupancy @ moves[0], gaps[1], atol=1e-12)
