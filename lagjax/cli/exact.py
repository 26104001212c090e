"""`lagjax exact`: stationary values without simulation, beside the optimum."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.outputs import places, show
from lagjax.cli.running import begin, running

DEFAULT_FOLDER = Path("lagjax-exact")


@options.takes("files", options.FileOptions)
@options.takes("how", options.RunOptions)
def exact(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help=f"One of {inputs.GALLERY_NAMES}, if it is small enough."),
    ] = None,
    load: Annotated[float, typer.Option(help="Load rho, in (0, 1 - k/R].")] = 0.7,
    policies: Annotated[
        str | None,
        typer.Option(help="Policies, as in lag,tuned,improved. [default: all; tuned and improved only if small]"),
    ] = None,
    files: options.FileOptions = options.NO_FILES,
    seed: options.Seed = 0,
    selection: options.Selection = "canonical",
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table and exact.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Solve a small system exactly: policies, their upper bound, and the best that any policy can do.

    Example: lagjax exact priority --load 0.2
    """
    begin(how)
    from lagjax.studies.exact_values import KNOWN
    from lagjax.studies.exact_values import exact as run
    from lagjax.studies.show_exact import STUDY

    chosen = None if policies is None else inputs.policies_of(policies, KNOWN, KNOWN)
    instance = inputs.one_instance(name, files, seed, "exact")
    folder, json_file = places(
        out, json_file, default=DEFAULT_FOLDER, writes=["table.txt", "exact.nc"], reads=inputs.files_of(files)
    )
    with running(how, folder, "exact", "cells") as runs:
        data = run([instance.with_load(load)], policies=chosen, selection=selection, seed=seed, running=runs)
    if runs.team.process == 0:
        show(STUDY, data, folder, json_file, "")
