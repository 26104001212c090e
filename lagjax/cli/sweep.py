"""`lagjax sweep`: policies against load and their upper bound."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.outputs import places, show
from lagjax.cli.running import begin, running
from lagjax.studies.load_sweep import DEFAULT_POLICIES, DEFAULT_REPLICAS
from lagjax.studies.measure import DEFAULT_ARRIVALS
from lagjax.tune import SINGLE_NAMES

DEFAULT_FOLDER = Path("lagjax-results")


@options.takes("files", options.FileOptions)
@options.takes("how", options.RunOptions)
def sweep(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INSTANCE]...",
            help=f"Gallery instances: {inputs.GALLERY_NAMES}. [default: all]",
        ),
    ] = None,
    files: options.FileOptions = options.NO_FILES,
    loads: Annotated[
        str | None, typer.Option(help="0.1,0.2 or 0.1:0.9:0.1. [default: 0.1 to 0.9 as far as feasible]")
    ] = None,
    policies: Annotated[
        str | None, typer.Option(help=f"Comma-separated. [default: {','.join(DEFAULT_POLICIES)}]")
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help=f"Steps per replica. [default: as many as bring {DEFAULT_ARRIVALS} tasks]")
    ] = None,
    replicas: options.Replicas = DEFAULT_REPLICAS,
    seed: options.Seed = 0,
    selection: options.Selection = "canonical",
    kiid: options.Kiid = "auto",
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table, plots and sweep.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Compare policies over loads, each with its share of the upper bound.

    Every finished cell is kept in the folder: after Ctrl-C, a crash or a lost machine the same command goes on from there.

    Example: lagjax sweep priority --loads 0.1:0.8:0.1 --policies lag,greedy --out results

    Example: lagjax sweep --scores scores.csv --durations days.csv --per-task 3 --sample-papers 10 --sample-reviewers 30
    """
    begin(how)
    from lagjax.studies.load_sweep import sweep as run
    from lagjax.studies.show_sweep import STUDY

    chosen = inputs.instances(names or [], files, seed)
    at, compared = inputs.loads_of(loads), inputs.policies_of(policies, DEFAULT_POLICIES, SINGLE_NAMES)
    written = [*(f"{instance.name}.png" for instance in chosen), "table.txt", "sweep.nc"]
    folder, json_file = places(out, json_file, default=DEFAULT_FOLDER, writes=written, reads=inputs.files_of(files))
    with running(how, folder, "sweep", "arrivals") as runs:
        data = run(
            chosen,
            loads=at,
            policies=compared,
            steps=steps,
            replicas=replicas,
            seed=seed,
            selection=selection,
            kiid=kiid,
            running=runs,
        )
    if runs.team.process == 0:
        show(STUDY, data, folder, json_file, "use more --steps")
