"""`lagjax solve`: upper bound, prices and the index that LAG uses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.naming import named_as_options
from lagjax.cli.outputs import give, places
from lagjax.cli.running import start
from lagjax.cli.solving import solving_line
from lagjax.cli.terminal import note
from lagjax.errors import InputError

DEFAULT_FOLDER = Path("lagjax-solution")
DEFAULT_GAP = 1e-4
SMALL = 300  # pairs of task type and server whose index is printed unasked,
NARROW = 12  # servers beside each other
MOST_JSON = 10_000_000  # pairs that JSON holds,
MOST_UNASKED = 1_000_000  # and that are written without --out: some 30 MB


@options.takes("how", options.StartOptions)
@options.takes("files", options.FileOptions)
def solve(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help=f"One of {inputs.GALLERY_NAMES}."),
    ] = None,
    load: Annotated[float, typer.Option(help="Load rho, in (0, 1 - k/R].")] = 0.7,
    blocking: Annotated[float, typer.Option(help="B of OCC-LP(B); 0 is the fluid limit that makes LAG's index.")] = 0.0,
    files: options.FileOptions = options.NO_FILES,
    seed: options.Seed = 0,
    selection: options.Selection = "canonical",
    method: Annotated[
        str,
        typer.Option(help="auto, interior, highs (slow, for comparison) or dual (within --gap, for large systems)."),
    ] = "auto",
    gap: Annotated[float, typer.Option(help="Relative duality gap at which the dual method stops.")] = DEFAULT_GAP,
    kiid: Annotated[bool, typer.Option("--kiid", help="Solve the KIID LP too, a looser bound for reference.")] = False,
    table: Annotated[
        bool | None,
        typer.Option("--table/--no-table", help="Print the index of all pairs. [default: where it is small]"),
    ] = None,
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "index, shares and prices as csv and npz")] = None,
    json_file: options.Json = None,
    how: options.StartOptions = options.AT_ONCE,
) -> None:
    """Solve OCC-LP: the upper bound, the prices, and the index of LAG.

    Example: lagjax solve priority --load 0.7

    Example: lagjax solve --scores scores.csv --durations days.csv --per-task 3 --out prices
    """
    from lagjax.cli.summary import payload, summary
    from lagjax.lp import solve_kiid, solve_occ
    from lagjax.prices import FILES, save_solution

    start(how, cores=False)
    folder, json_file = places(out, json_file, default=DEFAULT_FOLDER, writes=FILES, reads=inputs.files_of(files))
    instance = inputs.one_instance(name, files, seed, "solve")
    instance = instance.with_load(load)
    if json_file and instance.scores.size > MOST_JSON:
        raise InputError(
            f"--json would hold {instance.scores.size:,} pairs; use --out DIR, whose solution.npz is for programs"
        )
    with solving_line(how.progress), named_as_options("blocking", "selection", "method", "gap"):
        occ = solve_occ(instance, blocking, selection, method=method, gap=gap)
        bound = solve_kiid(instance).objective if kiid else None
    small = instance.scores.size <= SMALL and instance.num_servers <= NARROW
    shown = small if table is None else table
    text = summary(instance, occ, asked=method, kiid=bound, table=shown)
    if out is None and instance.scores.size > MOST_UNASKED:
        folder = None
    if folder is not None:
        save_solution(folder, instance, occ)
    give("solve", text, json_file, lambda: {"seed": seed, **payload(instance, occ, bound)})
    if folder is not None:
        note(f"written: {folder}/ ({', '.join(FILES)})")
