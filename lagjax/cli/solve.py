"""`lagjax solve`: upper bound, prices and the index that LAG uses."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lagjax.cli import inputs
from lagjax.cli.terminal import say


@inputs.takes_files
def solve(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[INSTANCE]", help=f"One of {inputs.GALLERY_NAMES}."),
    ] = None,
    load: Annotated[float, typer.Option(help="Load rho, in (0, 1 - k/R].")] = 0.7,
    blocking: Annotated[float, typer.Option(help="B of OCC-LP(B); 0 is the fluid limit that makes LAG's index.")] = 0.0,
    files: inputs.FileOptions = inputs.NO_FILES,
    seed: Annotated[int, typer.Option(help="Seed of the sampling.")] = 0,
    selection: inputs.Selection = "canonical",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Solve OCC-LP: the upper bound, the prices, and the index table of LAG.

    Example: lagjax solve priority --load 0.7
    """
    from lagjax.lp import solve_kiid, solve_occ

    instance = inputs.one_instance(name, files, seed, "solve")
    instance = instance.with_load(load)
    occ, kiid = solve_occ(instance, blocking, selection), solve_kiid(instance)
    say(json.dumps(_payload(instance, occ, kiid), indent=1) if as_json else _render(instance, occ, kiid))


def _payload(instance, occ, kiid):
    return {
        "command": "solve",
        "instance": instance.name,
        "load": round(instance.load, 9),
        "blocking": occ.blocking,
        "selection": occ.selection,
        "occ_ub": occ.objective,
        "kiid_ub": kiid.objective,
        "status": occ.status,
        "primal_residual": occ.primal_residual,
        "dual_residual": occ.dual_residual,
        "duality_gap": occ.duality_gap,
        "tasks": list(instance.tasks),
        "servers": list(instance.servers),
        "task_price": occ.task_price.tolist(),
        "server_price": occ.server_price.tolist(),
        "free_fraction": occ.free_fraction.tolist(),
        "index": occ.index.tolist(),
        "tie_weight": occ.tie_weight.tolist(),
        "assignment_rate": occ.assignment_rate.tolist(),
    }


def _render(instance, occ, kiid):
    from lagjax.tables import align

    def number(value):
        return f"{value:.4f}" if value else "0"

    prices = [["price q per step", *map(number, occ.server_price)], ["free fraction", *map(number, occ.free_fraction)]]
    index = [
        [
            task,
            number(price),
            *(number(x) + (f" ({w:.3f})" if x == 0 and w > 0 else "") for x, w in zip(row, weight, strict=True)),
        ]
        for task, price, row, weight in zip(instance.tasks, occ.task_price, occ.index, occ.tie_weight, strict=True)
    ]
    return "\n".join(
        [
            f"{instance.name}: R = {instance.num_servers} servers, V = {instance.num_types} task types, k = "
            f"{instance.servers_per_task}, load {instance.load:.4g} (feasible up to {instance.max_load:.4g})",
            f"OPT(OCC-LP({occ.blocking:g})) = {occ.objective:.9g} reward per step    OPT(KIID) = {kiid.objective:.9g}",
            f"selection {occ.selection}, status {occ.status}, residuals {occ.primal_residual:.1e} (primal) "
            f"{occ.dual_residual:.1e} (dual), duality gap {occ.duality_gap:.1e}",
            "",
            "Servers",
            align(["", *instance.servers], prices),
            "",
            "Index L(v, r) = s_vr - ell_v - E[D_v] q_r: LAG takes positive ones first, then zeros by weight (in brackets), "
            "then negative ones, each from the top",
            align(["task", "price ell", *instance.servers], index),
        ]
    )
