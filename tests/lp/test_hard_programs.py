"""Every program of a hard kind is solved to round-off, whatever the order of its types and servers."""

import dataclasses

import adversarial
import numpy as np
import pytest

from lagjax.lp.selection import select


@pytest.mark.parametrize(("seeds", "largest"), [(range(100), 12), (range(250, 262), 120)], ids=["small", "larger"])
def test_solved_and_equivariant(seeds, largest):
    solved = 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        program = adversarial.program(rng, largest)
        if program is None:
            continue
        solved += 1
        types, servers = rng.permutation(len(program.rate)), rng.permutation(program.scores.shape[1])
        a, b = select(program, "canonical"), select(adversarial.permuted(program, types, servers), "canonical")
        grid = np.ix_(types, servers)
        assert max(a.residuals) <= 1e-9 and max(b.residuals) <= 1e-9, seed
        np.testing.assert_array_equal(b.reduced == 0, a.reduced[grid] == 0, err_msg=str(seed))
        np.testing.assert_allclose(b.reduced, a.reduced[grid], atol=1e-8, err_msg=str(seed))
        np.testing.assert_allclose(b.w, a.w[grid], atol=1e-7, err_msg=str(seed))
        np.testing.assert_allclose(b.idle, a.idle[servers], atol=1e-7, err_msg=str(seed))
    assert solved > 0.75 * len(seeds)


def test_corners_are_corners_and_do_not_depend_on_the_way_there():
    """At a corner no more variables move than there are equations, and the weights tell it from all others."""
    seen = 0
    for seed in range(1000, 1040):
        program = adversarial.program(np.random.default_rng(seed), 12)
        if program is None:
            continue
        centre, corner = select(program, "canonical"), select(program, "vertex")
        assert max(corner.residuals) <= 1e-9, seed
        up = program.slack_up(corner.w, corner.idle)
        moving = ((corner.w > 1e-9) & (up > 1e-9)).sum() + (corner.idle > 1e-9).sum()
        moving += 0 if program.coupled else (program.demand - corner.w.sum(1) > 1e-9).sum()
        assert moving <= sum(program.scores.shape), seed
        seen += centre.dimensions[0] > 0 and np.abs(corner.w - centre.w).max() > 1e-3
    assert seen > 10


def test_a_start_nearby_gives_the_same_optimum():
    """The partition of a neighbour is taken where it holds, and left where it does not."""
    taken = 0
    for seed in range(2000, 2025):
        program = adversarial.program(np.random.default_rng(seed), 12)
        if program is None:
            continue
        start = select(program, "canonical")
        for factor in (1 - 1e-6, 0.9):
            other = dataclasses.replace(program, demand=program.demand * factor)
            warm, cold = select(other, "canonical", start=start), select(other, "canonical")
            taken += warm.iterations == 0
            np.testing.assert_array_equal(warm.reduced == 0, cold.reduced == 0)
            np.testing.assert_allclose(warm.reduced, cold.reduced, atol=1e-8)
            np.testing.assert_allclose(warm.w, cold.w, atol=1e-7)
    assert taken > 12
