"""Batches that fit: sizes in words, pieces, and half of them when memory runs out."""

import jax
import numpy as np
import pytest

from lagjax.engine.devices import place_replicas
from lagjax.engine.program import program
from lagjax.engine.run import batch_bytes, set_up, simulate
from lagjax.errors import InputError
from lagjax.gallery import gallery
from lagjax.policies import build_policy
from lagjax.runs.job import Watch
from lagjax.runs.memory import free_bytes, out_of_memory, parse_bytes, pieces
from lagjax.runs.record import pack
from lagjax.runs.running import Running
from lagjax.studies import load_cells
from lagjax.studies.load_sweep import DEFAULT_POLICIES, sweep


def test_sizes_in_words():
    assert [parse_bytes(t) for t in ("4GiB", "500MB", "2g", "1.5 KiB", "7", "3 TB", "9b")] == [
        4 * 2**30, 500 * 10**6, 2 * 10**9, 1536, 7, 3 * 10**12, 9,
    ]  # fmt: skip
    for text in ("", "4 apples", "-1GB", "0", "GiB", "1e9", "4i"):
        with pytest.raises(InputError, match="--memory"):
            parse_bytes(text)


def test_free_memory_is_measured():
    free = free_bytes(jax.local_devices())
    assert free is None or 2**20 < free < 2**50


@pytest.mark.parametrize(("most", "group"), [(1, 1), (3, 1), (3, 2), (4, 2), (5, 4), (7, 2), (100, 2)])
def test_pieces_cover_the_range_once(most, group):
    found = list(pieces(3, 20, most, lambda start, count: (start, count), group))
    assert [x for start, count in found for x in range(start, start + count)] == list(range(3, 20))
    assert all(count <= most for _, count in found)
    if most >= group:
        assert all(count % group == 0 for _, count in found[:-1])


@pytest.mark.parametrize(
    "error", [RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating 9 bytes."), MemoryError()]
)
def test_out_of_memory_leads_to_half_the_piece(error):
    tried = []

    def run(start, count):
        tried.append(count)
        if count > 3:
            raise error
        return start, count

    assert out_of_memory(error)
    found = list(pieces(0, 20, 16, run))
    assert tried[:4] == [16, 8, 4, 2]
    assert sum(count for _, count in found) == 20
    with pytest.raises(MemoryError, match="not even one replica"):
        list(pieces(0, 2, 2, lambda start, count: (_ for _ in ()).throw(error)))
    with pytest.raises(RuntimeError, match="something else"):
        list(pieces(0, 2, 2, lambda start, count: (_ for _ in ()).throw(RuntimeError("something else"))))


@pytest.mark.parametrize("name", ["priority", "journal"])
def test_the_estimate_of_a_batch_covers_what_the_compiler_asks_for(name):
    """At least what the compiled program takes, at most three times that."""
    instance = gallery(name, 0.5)
    policies = [build_policy(p, instance) for p in DEFAULT_POLICIES]
    replicas = 512
    run, _ = set_up(instance, policies, 1000, 0, replicas, block=128)
    advance = program(run.model, place_replicas(replicas, jax.local_devices()[:1]), run.block)
    bounds = np.uint32(0), np.uint32(1)
    needs = advance.lower(run.state, run.counts, *bounds, run.tables, run.keys).compile().memory_analysis()
    taken = (needs.temp_size_in_bytes + needs.argument_size_in_bytes) / replicas
    assert taken <= batch_bytes(instance, policies, 128) <= 3 * taken


CALL = {"loads": [0.4], "policies": ["lag", "random"], "steps": 3000, "replicas": 13, "seed": 4}


def test_a_small_budget_and_an_error_change_no_result(monkeypatch):
    instance = gallery("priority")
    whole = sweep([instance], **CALL)
    policies = [build_policy(p, instance.with_load(0.4)) for p in CALL["policies"]]
    sizes = []

    def limited(*args, replicas, **kwargs):
        sizes.append(replicas)
        if replicas > room:
            raise RuntimeError("RESOURCE_EXHAUSTED: Out of memory")
        return simulate(*args, replicas=replicas, **kwargs)

    monkeypatch.setattr(load_cells, "simulate", limited)
    for room, memory, expected in (
        (99, 5 * batch_bytes(instance, policies), [4, 4, 5]),  # multiples of two devices, and the rest
        (4, None, [13, 6, 4, 4, 4, 1]),
    ):
        sizes.clear()
        found = sweep([instance], **CALL, running=Running(memory=memory))
        if memory is None:
            assert sizes[:2] == [13, 6] and sum(n for n in sizes if n <= room) == 13
        else:
            assert sizes == expected
        assert found.identical(whole)


def test_equal_records_for_equal_cells():
    spec = load_cells.LoadSpec(gallery("priority", 0.4), ("lag",), 500, 4, 0, "canonical")
    first, again = (load_cells.run_load(spec, Watch()) for _ in range(2))
    assert pack(first) == pack(again)
