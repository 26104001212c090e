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
    from lagjax.runs.files import write_whole
    from lagjax.studies.dataset import save
    from lagjax.studies.routing import compare_routing, rows

    m, n = inputs.whole_numbers("--servers", servers), inputs.whole_numbers("--room", room)
    mu = inputs.numbers("--rates", rates)
    systems = [make_system(m, n, mu, rate) for rate in inputs.numbers("--arrivals", arrivals)]
    whole_number("--jobs", jobs, 1)
    compared = inputs.policies_of(policies, tuple(POLICIES), tuple(POLICIES))
    out, json_file = places(out, (file or "-") if as_json else None)
    with progress_bar("route") as progress:
        data = compare_routing(
            systems, policies=compared, arrivals=jobs, replicas=replicas, seed=seed, exact_states=exact_states,
            progress=progress,
        )  # fmt: skip
    text = render(systems, data)
    found = rows(data)
    for line in doubts(data):
        note(f"note: {line}")
    moving = [f"loss of {r['policy']} at arrivals {r['arrival_rate']:g}" for r in found if r["stationary"] is False]
    warn_of_start(moving, "raise --jobs")
    if out is not None:
        write_whole(out / "table.txt", lambda path: Path(path).write_text(text + "\n", encoding="utf-8"))
        save(data, out / "route.nc")
        note(f"written: {out}/ (table.txt and route.nc)")
    give(text, json_file, "route", data, found)


def render(systems, data) -> str:
    """The tables, one per arrival rate."""
    return "\n\n".join([_queues(systems[0]), *(_table(system, data) for system in systems)])


def _queues(system):
    listed = [_listed(xs) for xs in (system.servers, system.room, system.service_rate)]
    return (
        f"K = {system.num_queues} queues: servers {listed[0]}; room {listed[1]}; rates {listed[2]}; together they serve "
        f"{system.capacity:.6g} jobs per unit time"
    )


def _listed(values, most=12):
    shown = [f"{value:g}" for value in values[:most]]
    return ", ".join(shown) + (", ..." if len(values) > most else "")


def _table(system, data):
    import numpy as np

    from lagjax.studies.tables import align, said

    cell = data.sel(arrival_rate=system.arrival_rate)
    first, best = str(data.policy.values[0]), cell.optimal_loss.item()
    head = f"arrivals {system.arrival_rate:g} (traffic {system.traffic:.4g}): "
    head += f"no routing loses less than {cell.loss_lower_bound.item():.6g}"
    if np.isfinite(best):
        head += f"; optimum {best:.6g} over {system.states:,} states (bracket {cell.optimal_bracket.item():.1g})"
    lines = []
    for policy in data.policy.values:
        one = cell.sel(policy=policy)
        exact, ratio = one.exact_loss.item(), one.sel(than=first)
        seen = one.seen.item() > 0
        above = 100 * (exact / best - 1) if best > 0 else np.nan
        lines.append(
            [
                str(policy),
                f"{one.loss_rate.item():.5g}" if seen else "0 (none seen)",
                _if(one.loss_ci95.item(), "±{:.2g}") + said(one),
                f"{100 * one.loss_rate.item() / system.arrival_rate:.4g}",
                _if(ratio.ratio.item(), "{:.4g}") + _if(ratio.ratio_ci95.item(), " ±{:.2g}", ""),
                _if(exact, "{:.6g}"),
                _if(above, "{:+.3f}" if abs(above) < 1000 else "{:+.3g}"),
            ]
        )
    header = ["policy", "loss rate", "95%", "% lost", f"ratio to {first}", "exact loss", "% above optimum"]
    if not np.isfinite(cell.exact_loss.values).any():
        header, lines = header[:-2], [line[:-2] for line in lines]
    elif not np.isfinite(best):
        header, lines = header[:-1], [line[:-1] for line in lines]
    return f"{head}\n{align(header, lines)}"


def _if(value, shown, otherwise="-"):
    import numpy as np

    return shown.format(value) if np.isfinite(value) else otherwise


def doubts(data) -> list[str]:
    """Where there are no intervals, and why."""
    from lagjax.studies.routing import needed

    lines, replicas = [], data.sizes["replica"]
    for rate in data.arrival_rate.values:
        cell = data.sel(arrival_rate=rate)
        rare = [str(p) for p, seen in zip(data.policy.values, cell.seen.values, strict=True) if seen < needed(replicas)]
        if rare:
            lines.append(
                f"at arrivals {rate:g} fewer than {needed(replicas)} of {replicas} replicas saw a loss of "
                f"{', '.join(rare)}: no interval; raise --jobs or --replicas"
            )
    return lines
