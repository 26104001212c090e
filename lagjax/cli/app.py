"""Entry point: one line for an error, exit code 2, no traceback."""

from __future__ import annotations

import functools
import importlib
import itertools
import os
import sys
from typing import Annotated

import typer
from typer.core import TyperGroup

from lagjax.cli import interrupts
from lagjax.cli.letters import settle_streams
from lagjax.cli.terminal import note
from lagjax.errors import InputError, Interrupted, RunError, SolverError

COMMANDS = {  # in the order of the help; each is the function of that name in the module of that name here
    "sweep": "Compare policies over loads, each with its share of the upper bound.",
    "converge": "Scale the system up: m n copies of every server, m dispatchers a step.",
    "fluid": "Verify the fluid limit: fixed point, spectrum, and a search for trajectories that do not settle there.",
    "solve": "Solve OCC-LP: the upper bound, the prices, and the index of LAG.",
    "exact": "Solve a small system exactly: policies, their upper bound, and the best that any policy can do.",
    "route": "Route jobs to parallel finite queues: loss of index policies, simulated and exact, against the optimum.",
    "compat": "Load balancing under compatibility constraints: occupancy beside the mean field, delay, and the graph's "
    "certificate.",
    "partial": "Dispatch with partial queue information: rewards of index policies against those that see every queue.",
    "report": "Write one HTML page with tables, plots, configuration, versions and how to reproduce: no network needed to "
    "read it.",
}


class _Commands(TyperGroup):
    """The commands, each imported when it is called: the help of all needs none of them."""

    def __init__(self, **settings):
        super().__init__(**(settings | {"commands": dict.fromkeys(COMMANDS)}))

    def get_command(self, ctx, cmd_name):
        return command(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx, formatter):
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


def command(name: str):
    """Returns the command of a name as typer has it."""
    from lagjax.cli.outputs import remember

    alone = typer.Typer(add_completion=False, rich_markup_mode=None)
    run = getattr(importlib.import_module(f"lagjax.cli.{name}"), name)

    @alone.command(name)
    @functools.wraps(run)
    def remembered(**arguments):
        remember(arguments)
        run(**arguments)

    return typer.main.get_command(alone)


app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    rich_markup_mode=None,
    help="Online assignment of reusable, unequal resources: bounds, index policies and a batched simulator.",
)

# click's base class of command-line faults, which newer typers bring along under a name of their own
_CommandError: type[Exception] = typer.BadParameter.__mro__[2]


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"lagjax {version('lagjax')}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Runs the command line and ends the process."""
    settle_streams()
    try:
        code, line = _run(sys.argv[1:])
    except Exception:
        if not interrupts.asked():
            raise
        code, line = 0, ""
    if interrupts.asked() and code != interrupts.CODE:  # library code has swallowed it, or made another exception of it
        code, line = interrupts.CODE, interrupts.LINE
    interrupts.finish()
    if line:
        note(line)
    sys.exit(code)


def _run(words) -> tuple[int, str]:
    """Runs a command; returns the exit code and the one line that there is to say."""
    try:
        _refuse_no_folder(words)
        with typer.main.get_command(app).make_context("lagjax", words) as context:
            context.command.invoke(context)
        sys.stdout.flush()
    except typer.Exit as leave:
        return leave.exit_code, ""
    except (InputError, SolverError) as error:
        return _refused(str(error))
    except _CommandError as error:
        return _refused(getattr(error, "format_message", error.__str__)() or "see lagjax --help")
    except Interrupted as stop:
        return interrupts.CODE, f"lagjax: {stop}"
    except RunError as error:
        return _refused(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        return interrupts.CODE, interrupts.LINE
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _refused(f"output cannot be written ({error.strerror or error}); choose another place")
    return 0, ""


def _refuse_no_folder(words):
    """An empty --out, such as an unset variable leaves, would be the current folder once it is a path."""
    for word, after in itertools.pairwise([*words, "-"]):
        if (word == "--out" and not after.strip()) or word == "--out=":
            raise InputError("--out is empty; name a folder, or . for the current one")


def _refused(message, code=2):
    return code, "lagjax: error: " + " ".join(message.split())
