"""Entry point: one line for an error, exit code 2, no traceback."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Annotated

import typer

from lagjax.cli.compat import compat
from lagjax.cli.converge import converge
from lagjax.cli.exact import exact
from lagjax.cli.fluid import fluid
from lagjax.cli.partial import partial
from lagjax.cli.report import report
from lagjax.cli.route import route
from lagjax.cli.solve import solve
from lagjax.cli.sweep import sweep
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
    """Runs the command line."""
    try:
        _refuse_no_folder(sys.argv[1:])
        code = app(standalone_mode=False)
        sys.stdout.flush()
    except (InputError, SolverError) as error:
        code = _fail(str(error))
    except _CommandError as error:
        code = _fail(getattr(error, "format_message", error.__str__)() or "see lagjax --help")
    except Interrupted as stop:
        print(f"lagjax: {stop}", file=sys.stderr)
        sys.exit(130)
    except RunError as error:
        code = _fail(str(error), 1)
    except (KeyboardInterrupt, typer.Abort):
        code = 130
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = _fail(f"output cannot be written ({error.strerror or error}); choose another place")
    if code == 130:
        print("lagjax: interrupted; run the same command again", file=sys.stderr)
    sys.exit(code if isinstance(code, int) else 0)


def _refuse_no_folder(words):
    """An empty --out, such as an unset variable leaves, would be the current folder once it is a path."""
    for word, after in itertools.pairwise([*words, "-"]):
        if (word == "--out" and not after.strip()) or word == "--out=":
            raise InputError("--out is empty; name a folder, or . for the current one")


def _fail(message, code=2):
    print("lagjax: error: " + " ".join(message.split()), file=sys.stderr)
    return code
