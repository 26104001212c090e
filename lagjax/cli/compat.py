"""`lagjax compat`: JSQ(d) when servers can only do some types of task."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.naming import named_as_options
from lagjax.cli.outputs import places, show
from lagjax.cli.running import begin, running
from lagjax.cli.terminal import note
from lagjax.errors import InputError
from lagjax.given import expanded

DEFAULT_FOLDER = Path("lagjax-compatibility")
DEFAULT_SERVERS = "1000"


@options.takes("how", options.RunOptions)
@named_as_options(
    "servers", "types", "degree", "choices", "load", "time", "warmup", "horizon", "replicas", "epsilon", "seed"
)
def compat(
    servers: Annotated[
        str | None,
        typer.Option(
            help="Servers N; several, comma-separated, to see convergence. "
            f"[default: {DEFAULT_SERVERS}, or as many as a FILE has]"
        ),
    ] = None,
    types: Annotated[
        int | None, typer.Option(help="Task types M. [default: as many as servers, or as a FILE has]")
    ] = None,
    graph: Annotated[
        str,
        typer.Option(
            help="random, complete, ring, blocks, regular, or FILE of type,server lines; several, comma-separated."
        ),
    ] = "regular",
    degree: Annotated[
        float | None, typer.Option(help="Mean task types per server, c. [default: about ln(N) squared]")
    ] = None,
    choices: Annotated[int, typer.Option(help="Servers d that a task of policy jsq-d looks at.")] = 2,
    load: Annotated[
        str, typer.Option(help="Arrivals per server and mean service time, lambda; several: 0.5,0.9.")
    ] = "0.9",
    policy: Annotated[str, typer.Option(help="jsq-d, jsq (all compatible), random, jiq (join idle queue).")] = "jsq-d",
    time: Annotated[
        int | None,
        typer.Option(
            help="Mean service times counted. [default: 100, more near load 1 and while the start still shows]"
        ),
    ] = None,
    warmup: Annotated[
        int | None,
        typer.Option(
            help="Mean service times dropped, after a start from the fixed point. [default: 50, more near load 1]"
        ),
    ] = None,
    horizon: Annotated[
        float, typer.Option(help="Compare trajectories from an uneven start with the ODE this long; 0: no.")
    ] = 10,
    replicas: Annotated[int, typer.Option(help="Independent replicas, a multiple of 64; 64 are one sample.")] = 512,
    epsilon: Annotated[
        float, typer.Option(help="Deviation that makes a type badly connected, in the certificate.")
    ] = 0.2,
    allow_overloaded: Annotated[
        bool,
        typer.Option(
            "--allow-overloaded", help="Allow single servers that random routing would overload; --load stays below 1."
        ),
    ] = False,
    seed: options.Seed = 0,
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table, plot and compat.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Load balancing under compatibility constraints: occupancy beside the mean field, delay, and the graph's certificate.

    Example: lagjax compat --servers 1000 --graph regular --degree 48 --load 0.9

    Example: lagjax compat --servers 100,1000,10000 --graph complete,regular,ring,blocks
    """
    begin(how)
    from lagjax.compatibility import named_policy
    from lagjax.compatibility.certificate import check_epsilon
    from lagjax.compatibility.graph import check_load
    from lagjax.compatibility.queues import bundles_of
    from lagjax.studies.compatibility import check_times
    from lagjax.studies.compatibility import compat as run
    from lagjax.studies.show_compat import STUDY

    chosen = named_policy(policy, choices)
    loads = inputs.numbers("--load", load)
    graphs = _graphs(graph, servers, types, degree, seed)
    folder, json_file = places(
        out, json_file, default=DEFAULT_FOLDER, writes=["compat.png", "table.txt", "compat.nc"],
        reads=[("--graph", path) for path in _files(graph)],
    )  # fmt: skip
    check_epsilon(epsilon)
    check_times(time, warmup, horizon)
    bundles_of(replicas)
    for each in graphs:
        for value in loads:
            check_load(each, value, allow_overloaded)
    if allow_overloaded and chosen.choices == 1:
        raise InputError(
            "--allow-overloaded does not go with policies that look at one server: an overloaded one fills up"
        )
    with running(how, folder, "compat", "cases") as runs:
        data = run(
            graphs, chosen, loads, time=time, warmup=warmup, replicas=replicas, seed=seed, horizon=horizon, epsilon=epsilon,
            allow_overloaded=allow_overloaded, running=runs,
        )  # fmt: skip
    if runs.team.process == 0:
        show(STUDY, data, folder, json_file, "use more --time and --warmup")


def _graphs(names, servers, types, degree, seed):
    """Every family at every size; a file has its own."""
    from lagjax.compatibility import FAMILIES
    from lagjax.compatibility.families import default_degree

    sizes = inputs.whole_numbers("--servers", DEFAULT_SERVERS if servers is None else servers)
    out = []
    for name in (part.strip() for part in names.split(",")):
        if name in FAMILIES:
            for n in sizes:
                m = n if types is None else types
                out.append(FAMILIES[name](n, m, default_degree(name, n, m) if degree is None else degree, seed))
        elif expanded(name).is_file():
            out.append(_of_file(name, None if servers is None else sizes, types))
        else:
            raise InputError(
                f"--graph: no graph '{name}' and no such file; choose from {', '.join(FAMILIES)} or name a file"
            )
    return out


def _files(names):
    """Those of the graphs that are files."""
    from lagjax.compatibility import FAMILIES

    return [expanded(part.strip()) for part in names.split(",") if part.strip() not in FAMILIES]


def _of_file(name, sizes, types):
    """The graph of a file, which must have the numbers asked for; among several sizes its own is used, with a note."""
    from lagjax.compatibility import read_graph

    graph = read_graph(name, note=lambda line: note(f"note: {line}"))
    asked = None if sizes is None or len(sizes) > 1 else sizes[0]
    for option, wanted, has in (("--servers", asked, graph.num_servers), ("--types", types, graph.num_types)):
        if wanted is not None and wanted != has:
            raise InputError(f"{option} is {wanted}, but {name} has {has}; leave {option} out, or give {has}")
    if sizes is not None and len(sizes) > 1:
        note(f"note: {name} has {graph.num_servers} servers of its own; --servers is for the other graphs")
    return graph
