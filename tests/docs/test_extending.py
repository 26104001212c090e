"""Every recipe of the contributor's page runs as it stands."""

import pkgutil
import re
from pathlib import Path

import pytest

from lagjax.data import scores
from lagjax.policies import registry

PAGE = (Path(__file__).parents[2] / "docs" / "extending.md").read_text(encoding="utf-8")
RECIPES = dict(re.findall(r"^## (A .*?)\n(.*?)(?=^## |\Z)", PAGE, re.DOTALL | re.MULTILINE))


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_runs(recipe, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(registry, "POLICIES", dict(registry.POLICIES))
    monkeypatch.setattr(scores, "READERS", dict(scores.READERS))
    blocks = re.findall(r"```python\n(.*?)```", RECIPES[recipe], re.DOTALL)
    assert blocks and all("assert" in block for block in blocks)
    for block in blocks:
        exec(compile(block, f"docs/extending.md, {recipe}", "exec"), {"__name__": "recipe"})


def test_the_way_of_a_sweep_is_short_and_there():
    way = PAGE[PAGE.index("## The way of a sweep") :]
    assert len(re.findall(r"^\d+\. `", way, re.MULTILINE)) <= 12
    named = re.findall(r"`(lagjax\.[\w.]+)`", way)
    assert len(named) > 12
    for name in named:
        pkgutil.resolve_name(name)


def test_the_files_that_recipes_name_exist():
    named = set(re.findall(r"`((?:lagjax|tests)/[\w/]+(?:\.py|/))`", PAGE))
    assert len(named) > 6
    for name in named:
        assert (Path(__file__).parents[2] / name).exists(), name
