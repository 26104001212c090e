"""What an argument may be, the same everywhere: instances and policies; and what is said of others, in one short line."""

import pickle

import jax
import numpy as np
import pytest

from lagjax import InputError, build_policy, gallery, make_policy, solve_kiid, solve_occ
from lagjax.errors import MAX_LENGTH
from lagjax.gallery import instances_of
from lagjax.policies.table import order_by_level
from lagjax.tune import named_policy

PRIORITY = gallery("priority", 0.6)
LINES = "several\n lines\r\nand\u2028more"
HUGE = np.zeros((300, 300)).tolist()


@pytest.mark.parametrize("build", [build_policy, named_policy])
@pytest.mark.parametrize(
    "policy",
    [
        "greedy",
        build_policy("greedy", PRIORITY),
        lambda instance: "greedy",
        lambda instance: build_policy("greedy", instance),
    ],
    ids=["name", "policy", "function to a name", "function to a policy"],
)
def test_a_policy_is_a_name_a_policy_or_a_function(build, policy):
    made = build(policy, PRIORITY)
    assert made.name == "greedy"
    np.testing.assert_array_equal(made.tier, build_policy("greedy", PRIORITY).tier)


@pytest.mark.parametrize("build", [build_policy, named_policy])
@pytest.mark.parametrize(
    "of", [lambda table: table, lambda table: table.tolist(), lambda table: lambda instance: table]
)
def test_a_policy_is_a_table_of_priorities(build, of):
    made = build(of(PRIORITY.scores), PRIORITY)
    assert made.name == "priorities" and made.tier.shape == PRIORITY.scores.shape
    assert made.tier[1, 0] == 0 and made.tier[1, 7] > 0


@pytest.mark.parametrize("build", [build_policy, named_policy])
@pytest.mark.parametrize(
    "policy",
    [
        None,
        3,
        "no such",
        LINES,
        [1, 2],
        np.zeros((3, 3)),
        HUGE,
        lambda instance: None,
        make_policy("other", [[0, 1]]),
        object(),
    ],
)
def test_what_is_no_policy_of_the_instance_is_refused_in_one_line(build, policy):
    with pytest.raises(InputError) as refused:
        build(policy, PRIORITY)
    assert len(str(refused.value)) < 200 and len(str(refused.value).splitlines()) == 1


def test_solutions_go_with_the_policies_that_are_made_from_them():
    solution = solve_occ(PRIORITY)
    assert build_policy("lag", PRIORITY, solution=solution).name == "lag"
    with pytest.raises(InputError, match="leave it out"):
        build_policy(PRIORITY.scores, PRIORITY, solution=solution)


def test_instances_are_one_or_several_made_or_named():
    assert instances_of(PRIORITY) == [PRIORITY]
    assert [i.name for i in instances_of("low-rank")] == ["low-rank"]
    assert [i.name for i in instances_of([PRIORITY, "specialist"])] == ["priority", "specialist"]
    assert [i.name for i in instances_of(iter((PRIORITY,)))] == ["priority"]


@pytest.mark.parametrize(
    "given", [None, 3, [], [None], "no such", LINES, [PRIORITY, "priority"], np.zeros((500, 500)), HUGE]
)
def test_what_is_no_instance_is_refused_in_one_line(given):
    with pytest.raises(InputError) as refused:
        instances_of(given)
    assert len(str(refused.value)) <= MAX_LENGTH and len(str(refused.value).splitlines()) == 1


def test_a_message_is_one_line_that_keeps_what_to_do():
    error = InputError(f"field is {LINES} {'x' * 10_000}; give a number")
    assert str(error).startswith("field is several lines and more xxx") and str(error).endswith("x; give a number")
    assert len(str(error).splitlines()) == 1 and len(str(error)) <= MAX_LENGTH
    assert str(pickle.loads(pickle.dumps(error))) == str(error)
    assert str(InputError("a  b\tc")) == "a  b\tc"  # names of files may have them


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (PRIORITY, "Instance('priority': V = 2 task types, R = 8 servers, k = 1, load 0.6)"),
        (build_policy("greedy", PRIORITY), "Policy('greedy': race, V = 2 task types, R = 8 servers)"),
        (
            order_by_level(np.zeros((8, 2, 8))),
            "Policy('priorities by level': capped, V = 2 task types, R = 8 servers, 8 levels)",
        ),
        (solve_occ(PRIORITY), "OccSolution(objective 0.642727881: V = 2"),
        (solve_kiid(PRIORITY), "KiidSolution(objective 0."),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_large_says_its_sizes_in_a_line(value, said):
    assert repr(value).startswith(said) and len(repr(value)) < 160


def test_an_instance_in_a_traced_function_has_a_name():
    said = []
    jax.jit(lambda instance: said.append(repr(instance)))(PRIORITY)
    assert said == ["Instance('priority')"]
