"""Compiled programs are kept from one process to the next, with the same results, and nothing fails where they cannot be."""

import json
import os
import subprocess
import sys

import jax
import pytest

from lagjax.cli import options, running
from lagjax.engine import compiled

SCRIPT = """
import json, sys
import jax
seen = []
jax.monitoring.register_event_listener(lambda name, **about: seen.append(name.rpartition("/")[2]))
from lagjax.engine.compiled import keep_compiled
said = []
place = keep_compiled(warn=said.append)
from lagjax import build_policy, gallery, simulate
instance = gallery("priority", 0.5)
counts = simulate(instance, [build_policy("greedy", instance)], arrivals=300, warmup=20, replicas=16, seed=1)
print(json.dumps({
    "place": str(place), "said": said, "hits": seen.count("cache_hits"), "misses": seen.count("cache_misses"),
    "counts": str([leaf.tolist() for leaf in jax.tree.leaves(counts) if hasattr(leaf, "tolist")]),
}))
"""


def ran(**environment):
    names = (compiled.FOLDER, compiled.ENABLED, compiled.EVERYTHING)
    given = {name: value for name, value in os.environ.items() if name not in names}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=given | environment, capture_output=True, text=True, timeout=300, check=True
    )
    assert done.stderr == ""
    return json.loads(done.stdout)


def test_a_second_process_compiles_nothing_and_damaged_programs_are_compiled_again(tmp_path):
    first = ran(XDG_CACHE_HOME=str(tmp_path))
    assert first["misses"] > 0 and first["hits"] == 0 and first["place"].startswith(str(tmp_path / "lagjax"))
    second = ran(XDG_CACHE_HOME=str(tmp_path))
    assert second["misses"] == 0 and second["hits"] == first["misses"]
    for file in (tmp_path / "lagjax").rglob("*-cache"):
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    third = ran(XDG_CACHE_HOME=str(tmp_path))
    assert first["counts"] == second["counts"] == third["counts"]
    assert first["said"] == second["said"] == third["said"] == []


def test_what_is_kept_nowhere_is_said_and_computed_all_the_same(tmp_path):
    (tmp_path / "file").write_text("no folder")
    kept = ran(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert kept["place"] == "None" and kept["said"] == ["compiled programs are not kept: Not a directory"]
    assert kept["counts"].startswith("[")


@pytest.fixture
def settings(monkeypatch):
    """JAX's settings and the variables, put back afterwards."""
    names = ("jax_enable_compilation_cache", "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    for name in (compiled.FOLDER, compiled.EVERYTHING):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    jax.config.update("jax_enable_compilation_cache", True)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


def test_the_users_own_settings_go_before(settings, tmp_path):
    jax.config.update("jax_compilation_cache_dir", str(tmp_path / "own"))
    assert compiled.keep_compiled(tmp_path / "ours") == tmp_path / "own"
    jax.config.update("jax_enable_compilation_cache", False)
    assert compiled.keep_compiled(tmp_path / "ours") is None
    assert not (tmp_path / "ours").exists() and compiled.FOLDER not in os.environ


def test_a_full_disk_and_too_many_programs(settings, monkeypatch, tmp_path):
    said = []
    monkeypatch.setattr(compiled, "ROOM", 2**80)
    assert compiled.keep_compiled(tmp_path, said.append) is None
    assert said == ["compiled programs are not kept: the disk is full"]
    monkeypatch.setattr(compiled, "ROOM", 0)
    monkeypatch.setattr(compiled, "MAX_BYTES", 25)
    for age in range(4):
        (tmp_path / str(age)).write_bytes(bytes(10))
        os.utime(tmp_path / str(age), (1e9 - age, 1e9 - age))
    assert compiled.keep_compiled(tmp_path) == tmp_path
    assert sorted(file.name for file in tmp_path.iterdir()) == ["0", "1"]
    assert os.environ[compiled.FOLDER] == str(tmp_path)  # for workers


def test_the_option(settings, monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    running.begin(options.RunOptions(cache=False))
    assert not list(tmp_path.iterdir())
    running.begin(options.RunOptions())
    assert [file.name for file in tmp_path.iterdir()] == ["lagjax"]
