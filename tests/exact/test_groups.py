"""Which servers are counted together, and that others never are."""

import numpy as np
import pytest

from lagjax.durations import geometric
from lagjax.exact import evaluate
from lagjax.exact.groups import lump
from lagjax.instance import make_instance

EQUAL = np.ones((2, 4))
ONE = np.ones((2, 4))
# (what, scores, tiers, weights, groups)
CASES = [
    ("all alike", EQUAL, [[0] * 4] * 2, ONE, [[0, 1, 2, 3]]),
    ("other scores", [[1, 1, 2, 2]] * 2, [[0] * 4] * 2, ONE, [[0, 1], [2, 3]]),
    ("any order of equals", EQUAL, [[0, 1, 2, 3], [3, 1, 0, 2]], ONE, [[0, 1, 2, 3]]),
    ("weights do not matter alone", EQUAL, [[0, 0, 1, 1], [0] * 4], [[1, 2, 1, 3], [4, 3, 2, 1]], [[0, 1, 2, 3]]),
    ("separated by another", [[1, 1, 1, 2]] * 2, [[0, 2, 3, 1], [0, 1, 2, 3]], ONE, [[0], [1, 2], [3]]),
    ("two orders across types", [[1, 1, 1, 2]] * 2, [[0, 1, 3, 2], [0, 3, 2, 1]], ONE, [[0], [1], [2], [3]]),
    ("a shared tier", [[1, 1, 1, 2]] * 2, [[0] * 4, [1, 0, 0, 1]], ONE, [[0], [1, 2], [3]]),
    ("unequal weights among others", [[1, 1, 1, 2]] * 2, [[0] * 4] * 2, [[1, 1, 2, 1]] * 2, [[0, 1], [2], [3]]),
]


@pytest.mark.parametrize(("scores", "tier", "weight", "groups"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_groups(scores, tier, weight, groups):
    found = lump(np.array(scores, float), np.array(tier), np.array(weight, float))
    assert [list(members) for members in found] == groups


def test_orders_that_differ_across_types_matter():
    """Two equal servers, taken in opposite orders around another: counting them together would give another reward."""
    from lagjax.policies import make_policy

    instance = make_instance([[1, 1, 0.5], [3, 3, 0]], geometric(8), load=0.5, mix=[2, 1])
    apart = make_policy("apart", [[0, 2, 1], [1, 0, 2]])
    together = make_policy("together", [[0, 1, 2], [0, 1, 2]])
    one, other = evaluate(instance, apart), evaluate(instance, together)
    assert (one.states, other.states) == (8, 6)
    assert abs(one.reward - other.reward) > 1e-3
