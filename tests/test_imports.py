"""Imports point one way, have no side effects, and come from declared dependencies."""

import ast
import graphlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import lagjax

PACKAGE = Path(lagjax.__file__).parent

# A part of the package may import what stands before it here, and itself. A new part needs a place in this order.
ORDER = (
    "errors", "given", "text", "durations", "instance", "gallery", "data", "lp", "policies", "exact", "allocate", "models",
    "engine", "stats", "fluid", "tune", "runs", "prices", "loss_routing", "partial_information", "compatibility", "plots",
    "studies", "cli", "__main__",
)  # fmt: skip
ONLY = {  # parts that may import less than what stands before them
    "text": {"errors", "given"},
    "data": {"errors", "given", "text", "durations", "instance"},
    "loss_routing": {"errors", "given", "models", "engine", "stats"},  # sister models, each on its own
    "partial_information": {"errors", "given", "models", "engine", "stats"},
    "compatibility": {"errors", "given", "text", "models", "engine", "stats"},
}
LEAVES = {
    "gallery": {"studies", "cli"},
    "data": {"cli"},
    "text": {"data", "compatibility"},
}  # parts that only these may import


def module_name(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}


def imported(path):
    """Full names of the modules that a file imports, at its top or inside functions."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} imports relatively"
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if inside in FILES else node.module


OURS = {name: {m for m in imported(path) if m.split(".")[0] == "lagjax"} for name, path in FILES.items()}


def part(module):
    return module.split(".")[1]


def test_the_graph_is_read():
    assert "lagjax.models.streams" in OURS["lagjax.models.loss"]
    assert "lagjax.models.tally" in OURS["lagjax.models.loss"]
    assert len(FILES) > 30


@pytest.mark.parametrize("module", [name for name in FILES if name != "lagjax"])
def test_imports_point_one_way(module):
    here = part(module)
    assert here in ORDER, f"give lagjax.{here} a place in ORDER"
    for other in OURS[module]:
        assert other in FILES, f"{module} imports {other}, which is no module"
        assert other != "lagjax", f"{module} imports the flat entry points; import the module that defines the name"
        there = part(other)
        if there == here:
            continue
        assert ORDER.index(there) < ORDER.index(here), f"{module} imports {other} against the order"
        assert there in ONLY.get(here, ORDER), f"{module} may not import {other}"
        assert here in LEAVES.get(there, ORDER), f"{module} may not import {other}"


def test_no_module_imports_itself_in_a_circle():
    graphlib.TopologicalSorter(OURS).prepare()


def test_third_party_modules_are_declared():
    project = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {re.split(r"[^\w.-]", d)[0].lower().replace("_", "-") for d in project["dependencies"]}
    extras = {"lagjax.runs.cluster": project["optional-dependencies"]["cluster"]}
    distributions = packages_distributions()
    for name, path in FILES.items():
        for top in {module.split(".")[0] for module in imported(path)} - {"lagjax"} - sys.stdlib_module_names:
            owners = {d.lower().replace("_", "-") for d in distributions.get(top, [top])}
            optional = {re.split(r"[^\w.-]", d)[0].lower() for d in extras.get(name, [])}
            assert owners & (declared | optional), f"{name} imports {top}, which pyproject.toml does not declare"


SCRIPT = """
import importlib, sys
import jax
before = dict(jax.config.values)
for name in sys.argv[1:]:
    importlib.import_module(name)
after = dict(jax.config.values)  # a library may add settings of its own
assert {name: after[name] for name in before} == before, "importing changed jax.config"
assert "matplotlib.pyplot" not in sys.modules, "importing chose a drawing backend"
jax.config.update("jax_num_cpu_devices", 3)  # raises once a backend has started
assert len(jax.devices()) == 3
"""


def test_importing_starts_nothing_and_configures_nothing():
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, *FILES],
        capture_output=True, text=True, timeout=1200, cwd=PACKAGE.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout == done.stderr == ""
