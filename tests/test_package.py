"""The flat entry points: imported when first used, and never hidden by a module of the same name."""

import ast
import subprocess
import sys
from pathlib import Path

import lagjax

LATE = """
import sys
import lagjax
heavy = {"jax", "numpy", "scipy", "xarray", "matplotlib", "typer"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
import lagjax.gallery, lagjax.studies.measure
from lagjax import studies
found = [type(x).__name__ for x in (lagjax.gallery, lagjax.measure, lagjax.sweep, studies)]
assert found == 3 * ["function"] + ["module"]
namespace = {}
exec("from lagjax import *", namespace)
assert set(lagjax.__all__) <= set(namespace) and set(lagjax.__all__) <= set(dir(lagjax))
"""


def test_nothing_heavy_is_imported_before_it_is_used_and_functions_win_over_modules():
    done = subprocess.run([sys.executable, "-W", "error", "-c", LATE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_type_checkers_read_what_runs():
    """The imports under TYPE_CHECKING name every entry point, and each is the object of that module."""
    tree = ast.parse(Path(lagjax.__file__).read_text(encoding="utf-8"))
    read = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module.startswith("lagjax.")
        for alias in node.names
    }
    assert sorted(read) == sorted(lagjax.__all__)
    for name, module in read.items():
        assert getattr(lagjax, name) is getattr(sys.modules[module], name), name


def test_the_version_is_the_installed_one_and_other_names_are_refused():
    assert lagjax.__version__[0].isdigit()
    assert not hasattr(lagjax, "no_such_name")
