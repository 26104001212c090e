"""Whoever watches hears every program and every step, also of programs that are solved deep inside."""

from contextlib import contextmanager

import pytest

from lagjax.gallery import gallery
from lagjax.lp.watching import Step, solving, watching
from lagjax.policies import build_policy

FIRST, SECOND = Step("interior", 1, 1e-3, 1e-9), Step("interior", 2, 1e-5, 1e-9)


def watcher(heard):
    @contextmanager
    def watch(program):
        heard.append(("begins", program))
        try:
            yield lambda step: heard.append(("step", step))
        finally:
            heard.append(("ends", program))

    return watch


def test_steps_reach_the_watcher_and_the_caller():
    heard, mine = [], []
    with watching(watcher(heard)), solving("A", mine.append) as tell:
        tell(FIRST)
    with solving("B") as tell:
        tell(SECOND)  # nobody watches any more
    assert heard == [("begins", "A"), ("step", FIRST), ("ends", "A")]
    assert mine == [FIRST]


def test_the_inner_watcher_hears_and_the_outer_one_after_it_even_if_a_program_fails():
    outer, inner = [], []
    with watching(watcher(outer)):
        with pytest.raises(ArithmeticError), watching(watcher(inner)), solving("A"):
            raise ArithmeticError
        with solving("B"):
            pass
    assert inner == [("begins", "A"), ("ends", "A")]
    assert outer == [("begins", "B"), ("ends", "B")]


def test_the_programs_of_policies_are_heard():
    heard = []
    with watching(watcher(heard)):
        build_policy("lag", gallery("low-rank", 0.123))  # a load that no other test has solved
        build_policy("alg-sc-lp", gallery("low-rank", 0.123))
        build_policy("greedy", gallery("low-rank", 0.123))
    assert [program for event, program in heard if event == "begins"] == [
        "OCC-LP(0) of 'low-rank' at load 0.123", "KIID LP of 'low-rank' at load 0.123",
    ]  # fmt: skip
    steps = [step.iteration for event, step in heard if event == "step"]
    assert steps.count(1) == 2 and len(steps) > 10
