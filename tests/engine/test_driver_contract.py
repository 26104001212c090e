"""The compiled program: one trace per shape, stable dtypes, no callbacks, lowers for a GPU. Its paths: test_lockstep."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from systems import every_kind, system

from lagjax.engine import run
from lagjax.engine.run import simulate
from lagjax.errors import InputError
from lagjax.models import loss, streams
from lagjax.models.policy_tables import policy_tables
from lagjax.policies import make_policy


def program_arguments(instance, policies, replicas=4, warmup=5, arrivals=27):
    tables, _ = policy_tables(policies)
    laws = loss.arrival_tables(instance)
    keys, ties = (streams.replica_keys(1, s, np.arange(replicas)) for s in (streams.EXOGENOUS, streams.TIES))
    window = np.array([warmup, warmup + arrivals], np.uint32)
    carry = run._empty(laws, tables, replicas)
    tables, laws = jax.tree.map(jnp.asarray, (tables, laws))
    return carry, laws, tables, keys, ties, window, np.uint32(0), np.uint32(1)


@pytest.fixture(scope="module")
def instance():
    return system(2, 5, 2, 6)


@pytest.fixture(scope="module")
def arguments(instance):
    return program_arguments(instance, every_kind(instance))


def test_carry_keeps_its_shapes_and_dtypes(arguments):
    for more in (arguments, program_arguments(system(2, 260, 2, 300), every_kind(system(2, 260, 2, 300)))):
        out = jax.eval_shape(functools.partial(run.advance, k=2, block=32), *more)
        assert jax.tree.structure(out) == jax.tree.structure(more[0])
        for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(more[0]), strict=True):
            assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)


def test_one_trace_per_shape(monkeypatch):
    """Loads, policies, windows, seeds and lengths are data; only shapes compile anew."""
    traces = []

    def counted(*args, **static):
        traces.append(static)
        return advance(*args, **static)

    advance = run.advance
    run._program.cache_clear()
    monkeypatch.setattr(run, "advance", counted)
    try:
        instance = system(3, 7, 2, 6)
        for load, seed, arrivals, warmup in ((0.4, 0, 300, 0), (0.2, 1, 700, 50), (0.31, 2**50, 31, 7)):
            simulate(
                instance.with_load(load), every_kind(instance, seed % 7),
                arrivals=arrivals, warmup=warmup, seed=seed, replicas=4, block=64, chunk=3,
            )  # fmt: skip
        assert len(traces) == 1
        options = tuple(run.compiler_options("cpu").items())
        assert run._program(2, 64, options)._cache_size() == 1
        simulate(instance, every_kind(instance), arrivals=64, replicas=6, block=64)
        assert len(traces) == 2
    finally:
        run._program.cache_clear()


def test_no_host_callback(arguments):
    text = jax.jit(functools.partial(run.advance, k=2, block=32)).lower(*arguments).as_text()
    assert "stablehlo.while" in text
    assert "callback" not in text
    assert "custom_call" not in text
    assert "f64" not in text


@pytest.mark.parametrize("shape", [(2, 5, 2, 6), (60, 260, 3, 300)], ids=str)
def test_lowers_for_a_gpu(shape):
    """Strict, even and weighted policies together, with bytes and compares, and with 16 bits and gathers."""
    instance = system(*shape)
    args = program_arguments(instance, every_kind(instance), replicas=8)
    advance = jax.jit(functools.partial(run.advance, k=shape[2], block=64))
    exported = jax.export.export(advance, platforms=["cuda"])(*args)
    assert exported.platforms == ("cuda",)
    assert "callback" not in exported.mlir_module()


GOOD = {"arrivals": 32, "warmup": 0, "replicas": 2, "seed": 0, "block": 32, "chunk": 1}
BAD = [
    ("arrivals", 0), ("arrivals", 1.5), ("arrivals", True), ("warmup", -1), ("replicas", 0), ("block", 0),
    ("block", 48), ("chunk", 0), ("seed", -1), ("seed", "a"), ("arrivals", 2**31),
]  # fmt: skip


@pytest.mark.parametrize(("field", "value"), BAD, ids=lambda x: str(x))
def test_bad_arguments_are_named(field, value, instance, monkeypatch):
    monkeypatch.setattr(run, "_program", None)  # nothing runs
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
    monkeypatch.setattr(run, "_program", None)  # nothing runs
    with pytest.raises(InputError, match="use more replicas"):
        simulate(instance, every_kind(instance), **{**GOOD, "arrivals": run.MAX_ARRIVALS, "warmup": 1})
