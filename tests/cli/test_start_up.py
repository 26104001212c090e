"""What starts fast: heavy libraries are loaded where they are used, and nowhere before."""

import resource
import subprocess
import sys

import pytest

from lagjax.cli.app import COMMANDS, command

HEAVY = {
    "numpy",
    "jax",
    "scipy",
    "xarray",
    "pandas",
    "matplotlib",
    "tqdm",
    "rich",
    "optax",
    "optimistix",
    "equinox",
    "dask",
}
MUTE = """
import sys
sys.argv = ["lagjax", *{words!r}]
from lagjax.cli.entry import main
try:
    main()
except SystemExit:
    print(*({heavy!r} & set(sys.modules)), file=sys.stderr)
"""
CELL = """
import sys
import lagjax.cli.sweep, lagjax.studies.load_sweep, lagjax.studies.load_cells, lagjax.studies.dataset, lagjax.studies.tables
print(*({"matplotlib", "scipy.stats", "scipy.optimize", "optax", "optimistix"} & set(sys.modules)))
"""


def started(script):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=300, check=True)


@pytest.mark.parametrize("words", [["--help"], ["--version"], [], ["no-such-command"]])
def test_the_help_of_all_commands_loads_nothing_heavy(words):
    done = started(MUTE.format(words=words, heavy=HEAVY))
    assert done.stderr.splitlines()[-1] == ""


def test_what_a_worker_of_a_sweep_loads():
    assert started(CELL).stdout.split() == []


def test_the_help_costs_at_most_a_third_of_what_jax_does():
    def cost(*words):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], capture_output=True, timeout=300, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    assert min(cost("-m", "lagjax", "--help") for _ in range(3)) < min(cost("-c", "import jax") for _ in range(3)) / 3


@pytest.mark.parametrize("name", COMMANDS)
def test_the_line_about_a_command_is_the_first_of_its_help(name):
    assert COMMANDS[name] == " ".join(command(name).help.split("\n\n")[0].split())
