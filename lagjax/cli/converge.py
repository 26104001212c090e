"""`lagjax converge`: reward per copy as the system is scaled up."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.outputs import places, show
from lagjax.cli.running import begin, running
from lagjax.studies.convergence import DEFAULT_COPIES, DEFAULT_REPLICAS
from lagjax.studies.size_cells import TARGET

DEFAULT_FOLDER = Path("lagjax-convergence")
DEFAULT_INSTANCES = (
    "specialist",
    "priority",
    "unfriendly",
    "low-rank",
)  # those of the paper's figure that are fully specified

_ALL_COPIES = ",".join(map(str, DEFAULT_COPIES))
Copies = Annotated[str, typer.Option(help="Copies n of each server per dispatcher, comma-separated.")]
Dispatchers = Annotated[
    str, typer.Option(help="m: sqrt for floor(sqrt(n)), a number for every n, or a list as long as --copies.")
]


@options.takes("files", options.FileOptions)
@options.takes("how", options.RunOptions)
def converge(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[INSTANCE]...",
            help=f"Of {inputs.GALLERY_NAMES}. [default: all but journal]",
        ),
    ] = None,
    load: Annotated[
        float | None, typer.Option(help="Load rho, in (0, 1 - k/R]. [default: 0.8, or less if need be]")
    ] = None,
    copies: Copies = _ALL_COPIES,
    dispatchers: Dispatchers = "sqrt",
    policies: Annotated[str, typer.Option(help="Comma-separated.")] = "lag",
    files: options.FileOptions = options.NO_FILES,
    replicas: options.Replicas = DEFAULT_REPLICAS,
    steps: Annotated[
        int | None,
        typer.Option(
            help=f"Steps per replica. [default: as many as bring the half-width of the interval to {TARGET:g} points]"
        ),
    ] = None,
    seed: options.Seed = 0,
    selection: options.Selection = "canonical",
    kiid: options.Kiid = "auto",
    start: Annotated[str, typer.Option(help="warm (the fluid fixed point) or empty.")] = "warm",
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table, plot and converge.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Scale the system up: m n copies of every server, m dispatchers a step.

    Example: lagjax converge priority --load 0.8 --copies 1,16,256,4096

    Example: lagjax converge priority --copies 1,16,256 --dispatchers 1
    """
    begin(how)
    from lagjax.studies.convergence import converge as run
    from lagjax.studies.convergence import sizes_of
    from lagjax.studies.show_converge import STUDY

    given = names or ([] if files.scores is not None else list(DEFAULT_INSTANCES))
    chosen = [
        instance.with_load(min(0.8, inputs.default_loads(instance)[-1]) if load is None else load)
        for instance in inputs.instances(given, files, seed)
    ]
    listed = dispatchers if dispatchers == "sqrt" else inputs.whole_numbers("--dispatchers", dispatchers)
    sizes = sizes_of(inputs.whole_numbers("--copies", copies), listed)
    compared = inputs.policies_of(policies, ("lag",))
    folder, json_file = places(
        out, json_file, default=DEFAULT_FOLDER, writes=["converge.png", "table.txt", "converge.nc"], reads=inputs.files_of(files),
    )  # fmt: skip
    with running(how, folder, "converge", "cells") as runs:
        data = run(
            chosen, sizes=sizes, policies=compared, steps=steps, replicas=replicas, seed=seed, selection=selection,
            start=start, kiid=kiid, running=runs,
        )  # fmt: skip
    if runs.team.process == 0:
        more = "" if steps is None else ", or none: the warm-up then grows as need be"
        show(STUDY, data, folder, json_file, "use more --steps" + more)
