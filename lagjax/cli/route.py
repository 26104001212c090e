"""`lagjax route`: which of several parallel queues with finite room should a job join, so that fewest are lost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs
from lagjax.cli.naming import named_as_options
from lagjax.cli.outputs import give, places, warn_of_start
from lagjax.cli.terminal import note, progress_bar, use_all_cores
from lagjax.errors import InputError


@named_as_options("servers", "room", "rates", "arrivals", "replicas", "seed")
def route(
    servers: Annotated[str, typer.Option(help="m, servers of each queue, comma-separated.")],
    room: Annotated[str, typer.Option(help="n, jobs each queue holds in all, m or more.")],
    rates: Annotated[str, typer.Option(help="mu, jobs per unit time of one server of each queue.")],
    arrivals: Annotated[str, typer.Option(help="lambda, jobs arriving per unit time: 1.5, a list, or 0.5:3:0.5.")],
    file: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="With --json: where the rows go. [default: stdout]")
    ] = None,
    policies: Annotated[
        str, typer.Option(help="Comma-separated; the first is compared with.")
    ] = "rb,pi,obs,sq,sed,fas,random",
    jobs: Annotated[int, typer.Option(help="Jobs per replica.")] = 20_000,
    replicas: Annotated[int, typer.Option(help="Independent replicas.")] = 1024,
    seed: Annotated[int, typer.Option(help="Seed of all randomness.")] = 0,
    exact_states: Annotated[
        int, typer.Option(help="Joint states up to which exact losses and the optimum are computed; 0: never.")
    ] = 20_000,
    out: Annotated[Path | None, typer.Option(help="Folder for table.txt and route.nc.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Give JSON rows: printed alone, or written to FILE.")] = False,
) -> None:
    """Route jobs to parallel finite queues: loss of index policies, simulated and exact, against the optimum.

    Example: lagjax route --servers 1,2 --room 3,4 --rates 1.0,0.8 --arrivals 1.5

    Example: lagjax route --servers 1,2 --room 3,4 --rates 1.0,0.8 --arrivals 0.5:4:0.5 --policies rb,sq --json
    """
    if file is not None and not as_json:
        raise InputError(f"'{file}' is given without --json; queues are described by --servers, --room and --rates")
    use_all_cores()
    from lagjax.engine.checks import whole_number
    from lagjax.loss_routing import POLICIES, make_system
    from lagjax.studies.routing import compare_routing
    from lagjax.studies.show_route import STUDY

    m, n = inputs.whole_numbers("--servers", servers), inputs.whole_numbers("--room", room)
    mu = inputs.numbers("--rates", rates)
    systems = [make_system(m, n, mu, rate) for rate in inputs.numbers("--arrivals", arrivals)]
    whole_number("--jobs", jobs, 1)
    compared = inputs.policies_of(policies, tuple(POLICIES), tuple(POLICIES))
    out, json_file = places(out, (file or "-") if as_json else None)
    with progress_bar("route") as progress:
        data = compare_routing(
            systems, policies=compared, arrivals=jobs, replicas=replicas, seed=seed, exact_states=exact_states,
            progress=progress, out=out,
        )  # fmt: skip
    found = STUDY.rows(data)
    for line in STUDY.notes(data):
        note(f"note: {line}")
    warn_of_start(STUDY.moving(found), "raise --jobs")
    if out is not None:
        note(f"written: {out}/ (route.nc, table.txt and route.png)")
    give(STUDY.table(data), json_file, "route", data, found)
