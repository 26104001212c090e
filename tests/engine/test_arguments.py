"""What `simulate` refuses, in one line that names it."""

import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine import run
from lagjax.engine.run import simulate
from lagjax.errors import InputError
from lagjax.policies import make_policy


@pytest.fixture(scope="module")
def instance():
    return system(2, 5, 2, 6)


GOOD = {"arrivals": 32, "warmup": 0, "replicas": 2, "seed": 0, "block": 32, "chunk": 1}
BAD = [
    ("arrivals", 0), ("arrivals", 1.5), ("arrivals", True), ("warmup", -1), ("replicas", 0), ("block", 0),
    ("block", 48), ("chunk", 0), ("seed", -1), ("seed", "a"), ("arrivals", 2**31),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda x: str(x))
def test_bad_arguments_are_named(field, value, instance, monkeypatch):
    monkeypatch.setattr(run, "Loop", None)  # nothing runs
    named = f"{field} is {value!r}|{value} arrivals per replica"
    with pytest.raises(InputError, match=named):
        simulate(instance, every_kind(instance), **{**GOOD, field: value})


def test_policies_of_another_system(instance):
    with pytest.raises(InputError, match="no policies"):
        simulate(instance, [], **GOOD)
    stray = make_policy("stray", np.zeros((2, 4)))
    with pytest.raises(InputError, match=r"'stray' has shape \(2, 4\).*\(2, 5\)"):
        simulate(instance, [*every_kind(instance), stray], **GOOD)


def test_longest_run_is_checked_with_its_warmup(instance, monkeypatch):
    monkeypatch.setattr(run, "Loop", None)  # nothing runs
    with pytest.raises(InputError, match="use more replicas"):
        simulate(instance, every_kind(instance), **{**GOOD, "arrivals": run.MAX_ARRIVALS, "warmup": 1})
