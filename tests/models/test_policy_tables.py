"""Policies as kernel tables: the cheapest exact rule for each, slots that lead to servers, weights."""

import numpy as np
import pytest

from lagjax.models.policy_tables import policy_tables
from lagjax.policies import make_policy


def test_each_policy_gets_the_cheapest_rule_that_serves_it_exactly():
    tier = np.array([[0, 0, 1], [1, 0, 0]])
    weight = np.array([[1.0, 3.0, 5.0], [1.0, 2.0, 2.0]])
    policies = [
        make_policy("weighted", tier, weight),
        make_policy("capped", tier, weight, rule="capped"),
        make_policy("even", tier, [[2.0, 2.0, 7.0], [1.0, 3.0, 3.0]]),
        make_policy("strict race", [[2, 1, 0], [0, 1, 2]], [[1, 2, 3], [3, 2, 1]]),
        make_policy("uniform", 0 * tier),
    ]
    tables, layouts = policy_tables(policies)
    assert [(layout.group, layout.place) for layout in layouts] == [(2, 0), (0, 0), (1, 0), (0, 1), (1, 1)]
    assert tables.order.tolist() == [[[1, 0, 2], [2, 0, 1]], [[2, 1, 0], [0, 1, 2]]]
    assert tables.even.tolist() == [tier.tolist(), (0 * tier).tolist()]
    assert tables.tier.tolist() == [tier.tolist()]
    assert layouts[1].server_of_slot.tolist() == [[1, 0, 2], [1, 2, 0]]
    assert layouts[0].server_of_slot.tolist() == [[0, 1, 2]] * 2
    for v in range(2):
        for layout, order in zip((layouts[1], layouts[3]), tables.order, strict=True):
            assert order[v, layout.server_of_slot[v]].tolist() == [0, 1, 2]


def test_absent_groups_are_none():
    tables, _ = policy_tables([make_policy("uniform", [[0, 0]])])
    assert tables.order is None
    assert tables.tier is None
    assert tables.weight is None
    assert tables.even.shape == (1, 1, 2)


@pytest.mark.parametrize(("servers", "dtype"), [(254, np.uint8), (255, np.uint16)])
def test_no_rank_or_tier_is_mistaken_for_nobody(servers, dtype):
    rank = np.arange(servers)[None]
    tier, paired = np.maximum(rank - 1, 0), np.where(rank == 1, 2.0, 1.0)
    policies = [make_policy("a", rank), make_policy("b", tier), make_policy("c", tier, paired)]
    tables, _ = policy_tables(policies)
    found = (tables.order, servers - 1), (tables.even, servers - 2), (tables.tier, servers - 2)
    for table, largest in found:
        assert table.dtype == dtype
        assert table.max() == largest < np.iinfo(dtype).max


def test_weights_keep_their_ratios_within_a_tier():
    tier = [[0, 0, 0, 1, 1, 2]]
    weight = [[1e-200, 2e-200, 4e-200, 1e200, 3e200, 5.0]]
    tables, _ = policy_tables([make_policy("wide", tier, weight)])
    assert tables.weight.dtype == np.float32
    np.testing.assert_allclose(tables.weight[0, 0], [0.25, 0.5, 1, 1 / 3, 1, 1], rtol=1e-7)
    tables, _ = policy_tables([make_policy("vanishing", [[0, 0]], [[1.0, 1e-100]])])
    assert tables.weight[0, 0, 1] == np.float32(1e-30)  # still positive: taken when it is the only one free
