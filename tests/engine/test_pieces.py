"""What a GPU runs, on the CPU: the loop over pieces of a block, and every other branch, changes no count."""

import functools

import numpy as np

from lagjax.engine import program, run
from lagjax.engine.devices import default_block
from lagjax.gallery import gallery
from lagjax.models.tally import WORD
from lagjax.policies.registry import build_policy


def test_other_platforms_count_the_same(monkeypatch):
    instance = gallery("journal")
    policies = [build_policy(name, instance) for name in ("lag", "random")]
    simulate = functools.partial(run.simulate, instance, policies, arrivals=100, warmup=10, replicas=8)
    on_cpu = simulate()
    taken = []

    def elsewhere(*args, cpu, default):
        taken.append(default)
        return default(*args)

    program._program.cache_clear()
    monkeypatch.setattr(program.lax, "platform_dependent", elsewhere)
    try:
        other = simulate(block=default_block("gpu"))
    finally:
        program._program.cache_clear()
    assert len(taken) >= 2
    for field in ("served", "arrived", "blocked"):
        np.testing.assert_array_equal(getattr(other, field), getattr(on_cpu, field))
    for a, b in zip(other.state, on_cpu.state, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


def test_loops_divide_every_block():
    assert WORD % program.PIECE == 0
    assert all(default_block(platform) % WORD == 0 for platform in ("cpu", "gpu"))
