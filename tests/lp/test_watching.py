"""Whoever watches hears every program and every step, also of programs that are solved deep inside."""

from contextlib import contextmanager
from typing import NamedTuple

import pytest

from lagjax.gallery import gallery
from lagjax.lp.watching import solving, watching
from lagjax.policies import build_policy


class Step(NamedTuple):
    method: str = "interior"
    iteration: int = 1
    gap: float = 1e-3
    aim: float = 1e-9


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
        tell(Step())
    with solving("B") as tell:
        tell(Step(iteration=2))  # nobody watches any more
    assert heard == [("begins", "A"), ("step", Step()), ("ends", "A")]
    assert mine == [Step()]


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
        build_policy("lag", gallery("priority", 0.3))
        build_policy("alg-sc-lp", gallery("priority", 0.3))
        build_policy("greedy", gallery("priority", 0.3))
    assert [program for event, program in heard if event == "begins"] == [
        "OCC-LP(0) of 'priority' at load 0.3", "KIID LP of 'priority' at load 0.3",
    ]  # fmt: skip
