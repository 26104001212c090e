"""`lagjax route`: which of several parallel queues with finite room should a job join, so that fewest are lost?"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.naming import named_as_options
from lagjax.cli.outputs import places, show
from lagjax.cli.running import begin, running

DEFAULT_FOLDER = Path("lagjax-routing")
EXAMPLE = {"servers": "1,2", "room": "3,4", "rates": "1.0,0.8", "arrivals": "0.5:4:0.5"}


@options.takes("how", options.RunOptions)
@named_as_options("servers", "room", "rates", "arrivals", "replicas", "seed")
def route(
    servers: Annotated[str | None, typer.Option(help="m, servers of each queue, comma-separated.")] = None,
    room: Annotated[str | None, typer.Option(help="n, jobs each queue holds in all, m or more.")] = None,
    rates: Annotated[str | None, typer.Option(help="mu, jobs per unit time of one server of each queue.")] = None,
    arrivals: Annotated[
        str | None, typer.Option(help="lambda, jobs arriving per unit time: 1.5, a list, or 0.5:3:0.5.")
    ] = None,
    policies: Annotated[
        str, typer.Option(help="Comma-separated; the first is compared with.")
    ] = "rb,pi,obs,sq,sed,fas,random",
    jobs: Annotated[int, typer.Option(help="Jobs per replica.")] = 20_000,
    replicas: options.Replicas = 1024,
    seed: options.Seed = 0,
    exact_states: Annotated[
        int, typer.Option(help="Joint states up to which exact losses and the optimum are computed; 0: never.")
    ] = 20_000,
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table, plot and route.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Route jobs to parallel finite queues: loss of index policies, simulated and exact, against the optimum.

    Without queues, an example of two runs.

    Example: lagjax route --servers 1,2 --room 3,4 --rates 1.0,0.8 --arrivals 1.5

    Example: lagjax route --servers 1,2 --room 3,4 --rates 1.0,0.8 --arrivals 0.5:4:0.5 --policies rb,sq --json -
    """
    begin(how)
    from lagjax.engine.checks import whole_number
    from lagjax.loss_routing import POLICIES, make_system
    from lagjax.studies.routing import route as run
    from lagjax.studies.show_route import STUDY

    given = inputs.all_or_example({"servers": servers, "room": room, "rates": rates, "arrivals": arrivals}, EXAMPLE)
    m, n = (inputs.whole_numbers(f"--{name}", given[name]) for name in ("servers", "room"))
    mu, at = (inputs.numbers(f"--{name}", given[name]) for name in ("rates", "arrivals"))
    systems = [make_system(m, n, mu, rate) for rate in at]
    whole_number("--jobs", jobs, 1)
    compared = inputs.policies_of(policies, tuple(POLICIES), tuple(POLICIES))
    folder, json_file = places(out, json_file, default=DEFAULT_FOLDER)
    with running(how, folder, "route", "jobs") as runs:
        data = run(
            systems,
            policies=compared,
            arrivals=jobs,
            replicas=replicas,
            seed=seed,
            exact_states=exact_states,
            running=runs,
        )
    if runs.team.process == 0:
        show(STUDY, data, folder, json_file, "raise --jobs")
