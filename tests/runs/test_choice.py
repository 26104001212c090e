"""Which job a free worker takes."""

from lagjax.runs.choice import choose
from lagjax.runs.job import Job


def job(name, kind, work=1.0):
    return Job(name, kind, work, None)


WAITING = [job("a1", "a"), job("b1", "b"), job("b2", "b"), job("c1", "c", 5.0)]


def test_a_worker_stays_with_what_it_knows():
    assert choose(WAITING, ["b", "a"], [], {}).name == "b1"
    assert choose(WAITING, ["x", "a"], [], {}).name == "a1"


def test_else_it_goes_where_most_work_is_left_for_each():
    assert choose(WAITING, [], [], {}).name == "c1"
    assert choose(WAITING, [], ["c", "c"], {}).name == "b1"
    assert choose([], [], [], {}) is None


def test_it_does_not_compile_what_others_will_have_finished():
    waiting = [job("a1", "a"), job("a2", "a")]
    assert choose(waiting, [], ["a"], {"a": [5.0, 1.0]}) is None  # 2 s of work against 4 s of compiling
    assert choose(waiting, [], ["a"], {"a": [5.0, 4.0]}).name == "a1"
    assert choose(waiting, [], ["a"], {"a": [5.0]}).name == "a1"  # nothing known of those that follow
    assert choose(waiting, [], [], {"a": [5.0, 1.0]}).name == "a1"  # nobody else is at it
