"""`lagjax partial`: which of several servers should the next jobs go to, when only the one chosen tells its queue?"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.naming import named_as_options
from lagjax.cli.outputs import give, places, show
from lagjax.cli.running import begin, running
from lagjax.cli.terminal import note
from lagjax.errors import InputError

DEFAULT_FOLDER = Path("lagjax-dispatching")
EXAMPLE = {"model": "finite", "rates": "0.05x4,0.1x4,0.5x2", "capacity": "6"}


@options.takes("how", options.RunOptions)
@named_as_options("capacity", "discount", "horizon", "arrivals", "ages", "precision", "replicas", "seed")
def partial(
    model: Annotated[
        str | None, typer.Option(help="finite (servers take jobs until full) or blocking (only empty ones do).")
    ] = None,
    rates: Annotated[
        str | None, typer.Option(help="mu, jobs per slot that each server can serve: 0.05,0.1 or 0.05x4,0.1x2.")
    ] = None,
    capacity: Annotated[int | None, typer.Option(help="K, most jobs at a server.")] = None,
    discount: Annotated[float, typer.Option(help="beta per slot, in (0, 1]; 1: the long-run average.")] = 0.99,
    policies: Annotated[
        str, typer.Option(help="Comma-separated.")
    ] = "whittle,myopic,round-robin,random,jsq,jsq-slower,jsq-faster",
    start: Annotated[str, typer.Option(help="full (every server just filled) or empty.")] = "full",
    horizon: Annotated[int, typer.Option(help="Slots.")] = 1000,
    arrivals: Annotated[
        float | None, typer.Option(help="Jobs per slot at the dispatcher, Poisson. [default: always K]")
    ] = None,
    exogenous: Annotated[
        str, typer.Option(help="Jobs per slot that come to the servers by themselves: one or a list.")
    ] = "0",
    index: Annotated[bool, typer.Option("--index", help="Print the Whittle indices instead of simulating.")] = False,
    ages: Annotated[
        int | None, typer.Option(help="Ages of an observation that are told apart. [default: enough]")
    ] = None,
    precision: Annotated[float, typer.Option(help="Largest error of an index, in jobs, that ages may cause.")] = 1e-5,
    replicas: options.Replicas = 1024,
    seed: options.Seed = 0,
    out: Annotated[Path | None, options.out_option(DEFAULT_FOLDER, "table, plot and partial.nc")] = None,
    json_file: options.Json = None,
    how: options.RunOptions = options.AS_USUAL,
) -> None:
    """Dispatch with partial queue information: rewards of index policies against those that see every queue.

    Without servers, those of the paper's first figure.

    Example: lagjax partial --model finite --rates 0.05x4,0.1x4,0.5x2 --capacity 6

    Example: lagjax partial --model blocking --rates 0.5 --capacity 4 --index
    """
    if index and out is not None:
        raise InputError("--out keeps simulations; with --index use --json FILE")
    begin(how)
    from lagjax.partial_information import POLICIES, arms_of, make_system, whittle_indices
    from lagjax.partial_information.simulate import STARTS
    from lagjax.partial_information.system import MODELS
    from lagjax.studies.dispatching import dispatch as run
    from lagjax.studies.show_partial import STUDY

    given = inputs.all_or_example({"model": model, "rates": rates, "capacity": capacity}, EXAMPLE)
    for option, value, known in (("--model", given["model"], MODELS), ("--start", start, STARTS)):
        if value not in known:
            raise InputError(f"{option} is '{value}'; choose from {', '.join(known)}")
    system = make_system(
        _repeated("--rates", given["rates"]), int(given["capacity"]), model=given["model"], discount=discount,
        arrivals=arrivals, exogenous=_repeated("--exogenous", exogenous),
    )  # fmt: skip
    compared = inputs.policies_of(policies, POLICIES, POLICIES)
    folder, json_file = places(out, json_file, default=None if index else DEFAULT_FOLDER)
    if index:
        tables = whittle_indices(arms_of(system, ages), precision)
        for line in _uncertain(system, tables):
            note(f"note: {line}")
        give("partial", index_text(system, tables), json_file, lambda: {"rows": index_rows(system, tables)})
        return
    with running(how, folder, "partial", "slots") as runs:
        data = run(
            system, policies=compared, horizon=horizon, start=start, replicas=replicas, seed=seed, ages=ages,
            precision=precision, running=runs,
        )  # fmt: skip
    if runs.team.process == 0:
        show(STUDY, data, folder, json_file, "use a longer --horizon")


def index_text(system, tables) -> str:
    """One table of indices for each kind of server: ages down, backlogs across."""
    import numpy as np

    from lagjax.studies.tables import align

    parts = []
    for (rate, come), table in zip(system.kinds[0], tables, strict=True):
        count = table.index.shape[1]
        shown = np.unique(np.geomspace(1, count, 24).round().astype(int)) - 1
        reached = np.flatnonzero(np.isfinite(table.index).any(axis=1))
        lines = [[str(age + 1), *(f"{table.index[q, age]:.6g}" for q in reached)] for age in shown]
        extra = f", exogenous {come:g}" if come else ""
        how = (
            "closed form"
            if np.isinf(table.slope)
            else f"adaptive greedy; {'' if table.indexable else 'NOT certified '}indexable, residual {table.residual:.1g}"
        )
        parts.append(
            f"rate {rate:g}{extra}: Whittle index by age and by the backlog q after the last choice ({how}; error of "
            f"{count} ages at most {table.truncation:.1g})\n{align(['age', *(f'q={q}' for q in reached)], lines)}"
        )
    return "\n\n".join(parts)


def index_rows(system, tables) -> list[dict]:
    """One dict per kind of server, backlog and age."""
    import numpy as np

    return [
        {"rate": float(rate), "exogenous": float(come), "backlog": q, "age": age + 1, "index": float(table.index[q, age]),
         "indexable": table.indexable, "truncation": table.truncation}
        for (rate, come), table in zip(system.kinds[0], tables, strict=True)
        for q in np.flatnonzero(np.isfinite(table.index).any(axis=1)).tolist()
        for age in range(table.index.shape[1])
    ]  # fmt: skip


def _uncertain(system, tables):
    for (rate, come), table in zip(system.kinds[0], tables, strict=True):
        if not table.indexable:
            yield (
                f"servers of rate {rate:g} and exogenous arrivals {come:g} are not certified indexable (residual "
                f"{table.residual:.1g}); the table is the order in which states became passive"
            )


def _repeated(option, text):
    """Parses "0.05x4,0.1" to (0.05, 0.05, 0.05, 0.05, 0.1)."""
    values: list[float] = []
    for part in text.split(","):
        number, times, count = part.partition("x")
        if times and not re.fullmatch(r"\s*0*[1-9][0-9]{0,17}\s*", count):
            raise InputError(f"{option} '{text}': '{part}' is no rate and number of servers; write 0.05x4")
        values += inputs.numbers(option, number) * (inputs.whole_numbers(option, count)[0] if times else 1)
        if len(values) > 10_000:
            raise InputError(f"{option} '{text}' stands for too many servers; give at most 256")
    return values
