"""What every model promises: one parametrised test of the contract (lagjax.engine.model) for all of them."""

import functools
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from models_in_small import SMALL

from lagjax.engine.devices import place_replicas
from lagjax.engine.pause import Pause
from lagjax.engine.program import program
from lagjax.errors import InputError


@pytest.fixture(params=SMALL)
def small(request):
    return SMALL[request.param]


def found(small, **how):
    """The arrays of a run whose last axis are the replicas, in order."""
    replicas = how["replicas"]
    result = small.simulate(**how)
    fields = []
    for part in result if type(result) is tuple else (result,):
        values = part._asdict() if hasattr(part, "_asdict") else vars(part)
        fields += [
            np.asarray(x) for x in jax.tree.leaves(list(values.values())) if np.ndim(x) and x.shape[-1] == replicas
        ]
    assert len(fields) >= 2
    return fields


def same(these, those, replicas=slice(None)):
    for a, b in zip(these, those, strict=True):
        np.testing.assert_array_equal(a, b[..., replicas])


@functools.cache
def whole(name):
    small = SMALL[name]
    return found(small, replicas=6 * small.unit, seed=3, chunk=small.chunks[0])


@pytest.fixture
def reference(request, small):
    return whole(next(name for name, case in SMALL.items() if case is small))


def given(small, replicas=6, seed=1):
    """A run, its compiled program and the arguments of the first two blocks."""
    run = small.set_up(replicas * small.unit, seed)
    placed = place_replicas(replicas)
    with jax.enable_x64(run.wide):
        tables = placed.everywhere(run.tables)
    state, counts, keys = placed.by_replica((run.state, run.counts, run.keys))
    advance = program(run.model, placed, run.block, donate=run.wider is None)  # as simulations do: compiled once
    return run, advance, (state, counts, np.uint32(0), np.uint32(2), tables, keys)


def test_the_loop_does_what_the_functions_say(small):
    """Called in turn, each compiled by itself; and one step without compilation, where steps have no long loops of their own."""
    run, advance, arguments = given(small)
    last = arguments[3]
    whole = advance(*arguments)
    with jax.enable_x64(run.wide):
        tables = jax.device_put(run.tables)
    state, counts, keys = jax.device_put((run.state, run.counts, run.keys))
    draw, step, count = map(jax.jit, (run.model.draw, run.model.step, run.model.count))
    for block in range(last):
        numbers = jnp.uint32(block * run.block) + jnp.arange(run.block, dtype=jnp.uint32)
        events, seen = draw(tables, keys, numbers), []
        for place in range(run.block):
            event = jax.tree.map(lambda x, place=place: x[place], events)
            if block == place == 0 and run.block > 1:
                with jax.disable_jit():
                    eager = run.model.step(state, event, tables)
                equal(eager, step(state, event, tables))
            state, shown = step(state, event, tables)
            seen.append(shown)
        counts = count(counts, numbers, events, jax.tree.map(lambda *parts: jnp.stack(parts), *seen), tables)
    equal((state, counts), whole)


def equal(this, that):
    for a, b in zip(jax.tree.leaves(this), jax.tree.leaves(that), strict=True):
        np.testing.assert_array_equal(a, b)


def test_shapes_and_dtypes_stay(small):
    _, advance, arguments = given(small)
    out = jax.eval_shape(advance, *arguments)
    assert jax.tree.structure(out) == jax.tree.structure(arguments[:2])
    for a, b in zip(jax.tree.leaves(out), jax.tree.leaves(arguments[:2]), strict=True):
        assert (a.shape, a.dtype, a.weak_type) == (b.shape, b.dtype, b.weak_type)


def test_lowers_for_a_gpu(small):
    """The very program that runs here: nobody is called back, and only where it is meant are there 64-bit floats."""
    _, advance, arguments = given(small)
    exported = jax.export.export(advance, platforms=["cuda"])(*arguments)
    assert exported.platforms == ("cuda",)
    text = exported.mlir_module()
    assert not {name for name in re.findall(r"custom_call @(\w+)", text) if "callback" in name}
    assert ("f64" in text) == small.doubles


def test_one_program_for_all_data(small):
    run = small.set_up(6 * small.unit, 0)
    simulate = functools.partial(small.simulate, replicas=6 * small.unit)
    simulate(seed=0)
    kept = program(run.model, place_replicas(6), run.block, donate=run.wider is None)
    known = kept._cache_size()
    simulate(seed=1, chunk=2)
    assert known >= 1 and kept._cache_size() == known


@pytest.mark.parametrize("cut", ["shorter chunks", "single blocks", "a piece of the middle on one device"])
def test_however_it_is_cut(small, reference, cut):
    unit, how, part = small.unit, {"replicas": 6 * small.unit, "seed": 3, "chunk": small.chunks[0]}, slice(None)
    if cut == "shorter chunks":
        how["chunk"] = small.chunks[1]
    elif cut == "single blocks":
        how["chunk"] = small.chunks[2]
    else:
        how |= {"replicas": 3 * unit, "first_replica": 2 * unit, "devices": jax.local_devices()[:1]}
        part = slice(2 * unit, 5 * unit)
    same(found(small, **how), reference, part)


def test_replicas_and_seeds_differ(small, reference):
    other = found(small, replicas=6 * small.unit, seed=4, chunk=small.chunks[0])
    assert any((a != b).any() for a, b in zip(other, reference, strict=True))
    assert any(len(np.unique(x.reshape(-1, x.shape[-1]), axis=1).T) > 1 for x in reference)


def test_resumed_as_if_it_had_not_stopped(small, reference):
    how = {"replicas": 6 * small.unit, "seed": 3}
    pauses: list = []
    result = found(small, **how, chunk=small.chunks[1], save=lambda done, fetch: pauses.append(Pause(done, fetch())))
    same(result, reference)
    assert len(pauses) >= 5
    for pause in pauses[:: len(pauses) // 5]:
        same(found(small, **how, chunk=small.chunks[0], resume=pause), reference)
    with pytest.raises(InputError, match="another size or kind"):
        small.simulate(**(how | {"replicas": 4 * small.unit}), resume=pauses[0])
    with pytest.raises(InputError, match="another size or kind"):
        small.simulate(**how, resume=Pause(pauses[0].done, pauses[0].arrays[:-1]))
