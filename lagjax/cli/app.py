"""Entry point: one line for an error, exit code 2, no traceback."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Annotated

import typer

from lagjax.cli import interrupts
from lagjax.cli.compat import compat
from lagjax.cli.converge import converge
from lagjax.cli.exact import exact
from lagjax.cli.fluid import fluid
from lagjax.cli.letters import settle_streams
from lagjax.cli.partial import partial
from lagjax.cli.report import report
from lagjax.cli.route import route
from lagjax.cli.solve import solve
from lagjax.cli.sweep import sweep
from lagjax.cli.terminal import note
from lagjax.errors import InputError, Interrupted, RunError, SolverError

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Online assignment of reusable, unequal resources: bounds, index policies and a batched simulator.",
)
app.command()(sweep)
app.command()(converge)
app.command()(fluid)
app.command()(solve)
app.command()(exact)
app.command()(route)
app.command()(compat)
app.command()(report)
app.command()(partial)

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
