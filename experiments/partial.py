"""Figures 1, 2 and 3 of the paper on partial queue information, the loss of its index policy, and what lies beyond its models.

    python experiments/partial.py [FOLDER]    (about twelve minutes of processor time; writes partial.md and three pictures)

Load Balancing with Partial Queue Information: Threshold Optimality and Indexability (Chadaga and Modiano), section VI. The
text gives no state to start from: servers just filled are taken, and empty ones beside them.
"""

from __future__ import annotations

import dataclasses
import itertools
import sys
from pathlib import Path

import numpy as np

from lagjax.partial_information import (
    POLICIES,
    adaptive_greedy,
    arms_of,
    build_policies,
    evaluate,
    indexability,
    make_system,
    optimum,
    seen_optimum,
    seen_states,
    shortest_queue,
    thresholds,
)
from lagjax.plots.partial import plot_horizon, plot_thresholds
from lagjax.studies.dispatching import dispatch


@dataclasses.dataclass(frozen=True)
class Setting:
    """The published settings, and those of the tables beside them."""

    finite: tuple = (0.05,) * 4 + (0.1,) * 4 + (0.5,) * 2
    blocking: tuple = (0.05,) * 5 + (0.1,) * 4 + (0.5,)
    capacity: int = 6
    discount: float = 0.99
    horizon: int = 1000
    replicas: int = 8192
    seed: int = 0
    seen_tolerance: float = 1e-5
    threshold_rate: float = 0.5
    threshold_capacities: tuple = (4, 6, 10)
    subsidies: int = 201
    pairs: tuple = ((0.3, 0.1), (0.5, 0.5), (0.6, 0.2), (1.0, 0.05))
    pair_capacities: tuple = (2, 4)
    grid_rates: tuple = (0.3, 1.0, 3.0)
    grid_exogenous: tuple = (0.0, 0.1, 0.3, 1.0)
    grid_arrivals: tuple = (None, 2.0)
    grid_capacities: tuple = (2, 4)
    grid_discounts: tuple = (0.5, 0.99)


def figure(s: Setting, model: str, start: str):
    system = make_system(getattr(s, model), s.capacity, model=model, discount=s.discount)
    return dispatch(system, policies=POLICIES, horizon=s.horizon, start=start, replicas=s.replicas, seed=s.seed)


def leads(data) -> str:
    """From which horizon on Whittle's lead over the myopic policy is above 0 with its interval."""
    one = data.sel(policy="myopic")
    sure = (one.lead - one.lead_ci95 > 0).values
    behind = (one.lead + one.lead_ci95 < 0).values
    first = int(np.flatnonzero(~sure)[-1]) + 1 if not sure.all() else 0
    if first == len(sure):
        return "never with certainty"
    text = f"at every horizon drawn from {int(one.horizon[first])} slots on"
    if behind.any():
        worst = int(np.argmin(one.lead.values))
        text += (
            f" (before, it is behind by up to {-float(one.lead[worst]):.2g} ± {float(one.lead_ci95[worst]):.1g} of "
            f"{float(one.reward[worst]):.4g}, at {int(one.horizon[worst])})"
        )
    return text


def rewards(data) -> str:
    lines = [f"| policy | discounted reward | below {data.attrs['oracle']}, % | average reward |", "|---|--:|--:|--:|"]
    for policy in data.policy.values:
        one, end = data.sel(policy=policy), data.sel(policy=policy).isel(horizon=-1)
        lines.append(
            f"| {policy} | {float(one.discounted_reward):.2f} ± {float(one.discounted_ci95):.2f} | "
            f"{float(end.below_oracle):.2f} ± "
            f"{float(end.below_oracle_ci95):.2f} | {float(one.average_reward):.4f} ± {float(one.average_ci95):.4f} |"
        )
    return "\n".join(lines)


def full_information(s: Setting, model: str, data) -> str:
    """The optimum with all backlogs seen, and how far Whittle is below it: simulated up to the oracle, exact from there."""
    system, oracle = make_system(getattr(s, model), s.capacity, model=model, discount=s.discount), data.attrs["oracle"]
    best = seen_optimum(system, tolerance=s.seen_tolerance)
    own = shortest_queue(system, build_policies([oracle], system)[0].ties, tolerance=s.seen_tolerance)
    end, share = data.sel(policy="whittle").isel(horizon=-1), own.value / best.value
    return (
        f"With all backlogs seen no policy earns more than {best.value:.3f} for ever (value iteration over "
        f"{seen_states(system):,} states, equal servers counted together; brackets of {best.upper - best.lower:.0e}); `{oracle}` "
        f"earns {own.value:.3f}. Whittle is therefore {100 - (100 - float(end.below_oracle)) * share:.2f} ± "
        f"{float(end.below_oracle_ci95) * share:.2f}% below what full information can do."
    )


def curves(s: Setting):
    grids, out, checks = {}, {}, []
    for capacity in s.threshold_capacities:
        arms = arms_of(make_system([s.threshold_rate], capacity, model="blocking", discount=s.discount))
        subsidies = np.linspace(0, capacity, s.subsidies)
        (report,), (table,) = indexability(arms, subsidies), adaptive_greedy(arms)
        ages = thresholds(table.index, subsidies)
        steps = ages[1:, 1:] >= ages[:-1, 1:]
        across = ages[:, 2:] >= ages[:, 1:-1]
        checks.append(
            f"| {capacity} | {report.verdict} | {report.residual:.0e} | {table.index.shape[1]} | {table.truncation:.0e} | "
            f"{'yes' if steps.all() else 'NO'} | {'yes' if across.all() else 'NO'} |"
        )
        grids[capacity], out[capacity] = subsidies, np.where(np.isinf(ages), np.nan, ages)
    head = [
        "| K | verdict | residual | ages | truncation error | monotone in subsidy | monotone in q |",
        "|--:|---|--:|--:|--:|---|---|",
    ]
    return grids, out, "\n".join(head + checks)


def pairs(s: Setting) -> str:
    lines = [
        f"| model | K | rates | optimum | {' | '.join(POLICIES)} | backlogs seen |",
        "|---|--:|---|" + "--:|" * (len(POLICIES) + 2),
    ]
    for model, capacity, rates in itertools.product(("finite", "blocking"), s.pair_capacities, s.pairs):
        system = make_system(rates, capacity, model=model, discount=s.discount)
        best = optimum(system)
        below = [100 * (1 - evaluate(system, p).value / best.value) for p in build_policies(POLICIES, system)]
        cells = " | ".join(
            f"{round(x, 3) + 0.0:.3f}" for x in [*below, 100 * (1 - seen_optimum(system).value / best.value)]
        )
        lines.append(f"| {model} | {capacity} | {rates[0]:g}, {rates[1]:g} | {best.value:.5f} | {cells} |")
    return "\n".join(lines)


def beyond(s: Setting):
    """Verdicts over the grid, and the cells that are not indexable."""
    kinds = list(itertools.product(s.grid_rates, s.grid_exogenous))
    lines = [
        "| model | offered per slot | indexable | undecided | not indexable | thresholds not monotone in q | largest residual |"
    ]
    lines.append("|---|---|--:|--:|--:|--:|--:|")
    examples = []
    for model, offered in itertools.product(("finite", "blocking"), s.grid_arrivals):
        reports, where = [], []
        for capacity, discount in itertools.product(s.grid_capacities, s.grid_discounts):
            system = make_system(
                [k[0] for k in kinds],
                capacity,
                model=model,
                discount=discount,
                arrivals=offered,
                exogenous=[k[1] for k in kinds],
            )
            reports += indexability(arms_of(system), np.linspace(0, capacity, 33))
            where += [(capacity, discount, *kind) for kind in system.kinds[0]]
        count = {v: sum(r.verdict == v for r in reports) for v in ("indexable", "undecided", "not indexable")}
        tangled = sum(not r.monotone for r in reports)
        residual = max(r.residual for r in reports if r.verdict == "indexable")
        lines.append(
            f"| {model} | {'K' if offered is None else f'{offered:g}'} | "
            + " | ".join(map(str, count.values()))
            + f" | {tangled} | {residual:.0e} |"
        )
        examples += [(model, offered, *w, r) for w, r in zip(where, reports, strict=True) if r.verdict != "indexable"]
    return "\n".join(lines), examples


def simulated_beyond(s: Setting) -> str:
    parts = []
    for model, offered, come in (
        ("finite", 3.0, 0.0),
        ("finite", None, 0.02),
        ("blocking", 3.0, 0.0),
        ("blocking", None, 0.02),
        ("blocking", 3.0, 0.02),
    ):
        system = make_system(
            getattr(s, model), s.capacity, model=model, discount=s.discount, arrivals=offered, exogenous=come
        )
        data = dispatch(system, horizon=s.horizon, replicas=s.replicas, seed=s.seed)
        below = data.below_oracle.isel(horizon=-1)
        half = data.below_oracle_ci95.isel(horizon=-1)
        cells = " | ".join(f"{float(a):.2f} ± {float(b):.2f}" for a, b in zip(below, half, strict=True))
        oracle = data.attrs["oracle"]
        parts.append(
            f"| {model} | {'K' if offered is None else f'{offered:g}'} | {come:g} | "
            f"{float(data.discounted_reward.sel(policy=oracle)):.2f}, {oracle} | {cells} |"
        )
    head = "| model | offered per slot | exogenous per server and slot | oracle | " + " | ".join(POLICIES) + " |"
    return "\n".join([head, "|---|---|--:|" + "--:|" * (len(POLICIES) + 1), *parts])


def page(s: Setting, one, three, empty, full, table, loss, verdicts, examples, more) -> str:
    listed = [
        f"- {model}, offered {'K' if offered is None else offered}, K {k}, beta {b:g}, rate {rate:g}, exogenous {come:g}: "
        f"{r.verdict}; "
        + (
            f"state (q, tau) = {r.counter_example[:2]} is passive at subsidy {r.counter_example[2]:.4g} and active at "
            f"{r.counter_example[3]:.4g}"
            if r.counter_example
            else f"residual {r.residual:.1g}, least slope {r.slope:.1g}"
        )
        for model, offered, k, b, rate, come, r in examples[:12]
    ]
    verdict = "Every one is indexable."
    if listed:
        verdict = "\n".join([f"The first {len(listed)} of {len(examples)} that are not certified:", "", *listed])
    return f"""# Dispatching with partial queue information

Made by `python experiments/partial.py`: N = 10 servers, K = {s.capacity}, discount {s.discount:g}, {s.replicas:,} replicas on
the same departures, 95% intervals. All
servers start just filled, unless it says empty. The long-run average saturates near what the servers can serve together
({sum(s.finite):g} and
{sum(s.blocking):g} jobs per slot): Model 1's policies hardly differ in it, so the discounted curves carry the comparison.
Averages are over the second half of {s.horizon} slots. Three policies see all backlogs: they join the shortest queue and break
ties at random (`jsq`), towards the slower server or towards the faster one. Distances are to the one of them that earns most.

## Figure 1: finite queues

![Discounted reward against the horizon, finite queues](pictures/partial_finite.png)

{rewards(one)}

{full[0]}

Whittle is above myopic {leads(one)}. From empty servers:

{rewards(empty[0])}

Whittle is above myopic {leads(empty[0])}.

## Figure 2: thresholds of the blocking model

![Thresholds against the subsidy](pictures/partial_thresholds.png)

{table}

Rate {s.threshold_rate:g}; {s.subsidies} subsidies from 0 to K. The verdict is a certificate over all subsidies, not only
those drawn.

## Figure 3: blocking queues

![Discounted reward against the horizon, blocking queues](pictures/partial_blocking.png)

{rewards(three)}

{full[1]}

Whittle is above myopic {leads(three)}. From empty servers:

{rewards(empty[1])}

Whittle is above myopic {leads(empty[1])}.

## Two servers: % below the optimum

The optimum of all policies that see what the dispatcher sees, for ever, by value iteration on joint beliefs; all values exact
to 1e-8. Negative: above it, by seeing backlogs.

{loss}

## Beyond the paper: random arrivals to the dispatcher, exogenous arrivals to the servers

Each cell of the table is {len(s.grid_rates) * len(s.grid_exogenous) * len(s.grid_capacities) * len(s.grid_discounts)} arms:
rates {_list(s.grid_rates)}, exogenous arrivals {_list(s.grid_exogenous)}, K {_list(s.grid_capacities)},
discounts {_list(s.grid_discounts)}. Offered: Poisson jobs per
slot at the dispatcher, lost if not taken; K: always enough.

{verdicts}

{verdict}

Discounted reward of the oracle, and how far the others are below it, in %, with the published rates:

{more}
"""


def _list(values):
    return ", ".join(f"{v:g}" for v in values)


def main(folder: Path) -> None:
    s = Setting()
    (folder / "pictures").mkdir(parents=True, exist_ok=True)
    one, three = figure(s, "finite", "full"), figure(s, "blocking", "full")
    empty = figure(s, "finite", "empty"), figure(s, "blocking", "empty")
    grids, ages, table = curves(s)
    plot_horizon(one).savefig(folder / "pictures" / "partial_finite.png", dpi=110)
    plot_horizon(three).savefig(folder / "pictures" / "partial_blocking.png", dpi=110)
    plot_thresholds(grids, ages).savefig(folder / "pictures" / "partial_thresholds.png", dpi=110)
    verdicts, examples = beyond(s)
    full = full_information(s, "finite", one), full_information(s, "blocking", three)
    text = page(s, one, three, empty, full, table, pairs(s), verdicts, examples, simulated_beyond(s))
    (folder / "partial.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
