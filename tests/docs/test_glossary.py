"""The glossary names nothing that does not exist."""

import importlib
import re
from pathlib import Path

import pytest

import lagjax

TEXT = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")
ROWS = [line.strip("|").split("|") for line in TEXT.splitlines() if line.startswith("|")]
NAMES = sorted({name for row in ROWS for name in re.findall(r"`([a-z_]+(?:\.\w+)+)`", row[-1])})


def found(name):
    """What a dotted name below lagjax stands for: a file, and what is defined in it, or a field of a class."""
    parts, path = name.split("."), Path(lagjax.__file__).parent
    while parts and (path / parts[0]).is_dir():
        path /= parts.pop(0)
    module = [*path.relative_to(Path(lagjax.__file__).parent).parts, parts.pop(0)]
    here = importlib.import_module(".".join(["lagjax", *module]))
    for part in parts:
        here = here.__annotations__[part] if part in getattr(here, "__annotations__", {}) else getattr(here, part)
    return here


def test_every_row_of_a_table_names_where_it_is_defined():
    assert len(NAMES) > 60
    for row in ROWS:
        assert (
            re.search(r"`[a-z_]+\.", row[-1]) or row[-1].strip() in ("name", "defined by") or set(row[-1]) == {"-"}
        ), row


@pytest.mark.parametrize("name", NAMES)
def test_every_name_exists(name):
    found(name)


def test_a_name_that_does_not_exist_is_noticed():
    for name in ("lp.occ.OccSolution.objectives", "lp.ock.OccSolution", "fluid.map.fluid_maps"):
        with pytest.raises((AttributeError, ImportError)):
            found(name)
