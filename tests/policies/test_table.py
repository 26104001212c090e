"""Policy tables: what the factory accepts, renumbers and refuses, and the strict order at n = 1."""

import numpy as np
import pytest

from lagjax.errors import InputError
from lagjax.gallery import priority
from lagjax.policies import from_priorities, make_policy, strict_order
from lagjax.policies.table import check_shape, order_by_level, tie_groups


def test_tiers_are_renumbered_and_arrays_are_read_only():
    p = make_policy("p", [[5, -2, 5], [0, 0, 0]], rule="race")
    np.testing.assert_array_equal(p.tier, [[1, 0, 1], [0, 0, 0]])
    assert p.tier.dtype == np.int32 and p.weight.dtype == np.float64 and np.all(p.weight == 1)
    with pytest.raises(ValueError, match="read-only"):
        p.tier[0, 0] = 3


def test_zero_weights_come_right_after_their_tier():
    p = make_policy("p", [[0, 0, 1, 1, 2]], [[2.0, 0.0, 0.0, 3.0, 1.0]])
    np.testing.assert_array_equal(p.tier, [[0, 1, 3, 2, 4]])
    np.testing.assert_array_equal(p.weight, [[2, 1, 1, 3, 1]])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tier": [[0, 1]], "rule": "auction"}, "rule is 'auction'; choose from capped, race"),
        ({"tier": [0, 1]}, r"tier has shape \(2,\)"),
        ({"tier": [[0, 0.5]]}, r"tier\[0, 1\] is 0.5; tiers are whole"),
        ({"tier": [[0, 1]], "weight": [[1.0]]}, r"weight has shape \(1, 1\) but tier has \(1, 2\)"),
        ({"tier": [[0, 1]], "weight": [[1.0, np.nan]]}, r"weight\[0, 1\] is nan"),
        ({"tier": [[0, 1]], "weight": [[1.0, -1.0]]}, r"weight\[0, 1\] is -1"),
        ({"tier": [[0, 1, 1]], "weight": [[1.0, 0.0, 0.0]]}, "tier 1 of task type 0 has zero total weight"),
        ({"tier": [["a", "b"]]}, "tier is not a numeric"),
    ],
)
def test_refused_with_one_line(arguments, message):
    with pytest.raises(InputError, match=message) as caught:
        make_policy("p", **arguments)
    assert "\n" not in str(caught.value)


def test_strict_order_of_capped_is_tier_then_weight_then_server():
    p = make_policy("p", [[1, 0, 0, 0], [0, 1, 2, 3]], [[1, 0.2, 0.5, 0.5], [1, 1, 1, 1]], rule="capped")
    np.testing.assert_array_equal(strict_order(p), [[3, 2, 0, 1], [0, 1, 2, 3]])


def test_strict_order_of_race_needs_single_servers():
    assert strict_order(make_policy("p", [[0, 1, 1], [0, 1, 2]])) is None
    np.testing.assert_array_equal(strict_order(make_policy("p", [[2, 0, 1]])), [[2, 0, 1]])


def test_from_priorities():
    values = [[3.0, 1.0, 3.0], [-1.0, 0.0, 5.0]]
    ordered, drawn = from_priorities(values), from_priorities(values, ties="random", name="mine")
    np.testing.assert_array_equal(strict_order(ordered), [[0, 2, 1], [2, 1, 0]])
    np.testing.assert_array_equal(drawn.tier, [[0, 1, 0], [2, 1, 0]])
    assert (drawn.rule, drawn.name) == ("race", "mine") and strict_order(drawn) is None
    with pytest.raises(InputError, match="ties is 'coin'; choose from order, random"):
        from_priorities(values, ties="coin")
    with pytest.raises(InputError, match=r"priorities\[1, 1\] is nan"):
        from_priorities([[0.0, 1.0], [2.0, np.nan]])


def test_order_by_level():
    policy = order_by_level([[[1.0, 3.0, 3.0]], [[2.0, 1.0, 5.0]]], "mine", ["a note"])
    np.testing.assert_array_equal(policy.tier, [[[2, 0, 1]], [[1, 2, 0]]])
    np.testing.assert_array_equal(strict_order(policy), policy.tier)
    assert (policy.name, policy.notes) == ("mine", ("a note",))
    with pytest.raises(InputError, match=r"priorities has shape \(1, 2\); expected a non-empty \(m, V, R\) table"):
        order_by_level([[1.0, 2.0]])
    with pytest.raises(InputError, match=r"priorities\[1, 0\] is nan"):
        order_by_level([[[1.0, 2.0]], [[np.nan, 1.0]]])


def test_shapes_that_do_not_fit_are_named():
    instance = priority()
    plain, by_level = from_priorities(np.ones((2, 8))), order_by_level(np.ones((8, 2, 8)), "mine")
    check_shape(plain, instance)
    check_shape(by_level, instance, levels=True)
    with pytest.raises(InputError, match="'mine' depends on the number of running tasks"):
        check_shape(by_level, instance)
    for levels in (False, True):
        with pytest.raises(InputError, match=r"'mine' has shape \(7, 2, 8\), instance 'priority' has \(2, 8\)"):
            check_shape(order_by_level(np.ones((7, 2, 8)), "mine"), instance, levels)


def test_tie_groups_chain_small_steps():
    np.testing.assert_array_equal(tie_groups([[1.0, 2.0, 2.0 + 1e-12, 0.5, 1.0]], 1e-9), [[1, 0, 0, 2, 1]])
    np.testing.assert_array_equal(tie_groups([[0.0, 0.6, 1.2]], 1.0), [[0, 0, 0]])
    np.testing.assert_array_equal(tie_groups([[7.0]], 1.0), [[0]])
