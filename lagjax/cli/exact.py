"""`lagjax exact`: stationary values without simulation, beside the optimum."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from lagjax.cli import inputs, options
from lagjax.cli.solving import solving_line
from lagjax.cli.terminal import say

IMPROVED = "improved"  # one step of policy improvement on `tuned`: depends on the state, so it has no table


@options.takes("files", options.FileOptions)
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
    seed: Annotated[int, typer.Option(help="Seed of the sampling of --scores, and of tuned.")] = 0,
    selection: options.Selection = "canonical",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON rows instead of a table.")] = False,
) -> None:
    """Solve a small system exactly: policies, their upper bound, and the best that any policy can do.

    Example: lagjax exact priority --load 0.2
    """
    from lagjax.errors import InputError
    from lagjax.exact import exact_blocking, level_bound, optimum
    from lagjax.exact.many import is_small
    from lagjax.lp import check_selection, occ_upper_bound
    from lagjax.policies import POLICIES
    from lagjax.tune import SINGLE_NAMES

    check_selection(selection)
    known = (*SINGLE_NAMES, IMPROVED)
    chosen = inputs.policies_of(policies, known, known)
    instance = inputs.one_instance(name, files, seed, "exact")
    instance = instance.with_load(load)
    if policies is None and not is_small(instance):  # their chains may have to tell every server apart
        chosen = tuple(POLICIES)
    with solving_line():
        best = optimum(instance)
        blocking = exact_blocking(instance)
        bound = occ_upper_bound(instance, blocking)
        try:
            levels = level_bound(instance).reward
        except InputError:  # not geometric with one mean
            levels = None
        rows = []
        for policy in chosen:
            value, states = _value(policy, instance, selection, seed)
            rows.append(
                {
                    "instance": instance.name,
                    "load": round(instance.load, 9),
                    "policy": policy,
                    "reward_per_step": value.reward,
                    "blocking": value.blocking,
                    "percent_of_occ_ub": 100 * value.reward / bound,
                    "percent_of_optimum": 100 * value.reward / best.reward,
                    "optimal_reward": best.reward,
                    "states": states,
                    "level_bound": levels,
                }
            )
    if as_json:
        say(json.dumps(rows, indent=1))
        return
    say(_render(instance, rows, best, blocking, bound, levels))


def _value(policy, instance, selection, seed):
    from lagjax.exact import evaluate, improve
    from lagjax.tune import TUNED, named_policy

    if policy == IMPROVED:
        better = improve(instance, named_policy(TUNED, instance, seed=seed))
        return better, better.chain.num_states
    value = evaluate(instance, named_policy(policy, instance, selection, seed=seed))
    return value, value.states


def _render(instance, rows, best, blocking, bound, levels):
    from lagjax.studies.tables import align

    lines = [
        [
            row["policy"],
            f"{row['reward_per_step']:.6g}",
            f"{row['percent_of_occ_ub']:.2f}",
            f"{row['percent_of_optimum']:.2f}",
            f"{100 * row['blocking']:.3f}",
            f"{row['states']:,}",
        ]
        for row in rows
    ]
    tighter = [] if levels is None else [f"bound by running tasks {levels:.9g}, {100 * levels / bound:.2f}% of OCC-UB"]
    return "\n".join(
        [
            f"{instance.name}: R = {instance.num_servers} servers, V = {instance.num_types} task types, k = "
            f"{instance.servers_per_task}, load {instance.load:.4g} (feasible up to {instance.max_load:.4g})",
            f"optimum {best.reward:.9g} reward per step, {100 * best.reward / bound:.2f}% of OCC-UB, over "
            f"{best.chain.num_states:,} states with equal servers counted together",
            f"OCC-UB = OPT(OCC-LP(B)) = {bound:.9g} at the exact blocking B = {blocking:.6g}",
            *tighter,
            "",
            align(["policy", "reward per step", "% of OCC-UB", "% of optimum", "blocked %", "states"], lines),
        ]
    )
