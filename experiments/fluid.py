"""The fluid limit of the gallery: verdicts, rates of convergence, and why Priority is slow in n. Writes fluid.md and pictures.

python experiments/fluid.py        about five minutes on two cores
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from lagjax import GALLERY, build_policy, deterministic, gallery, make_instance, solve_occ
from lagjax.cli.terminal import use_all_cores
from lagjax.engine.scaled_run import simulate_scaled, trace_scaled
from lagjax.fluid import fluid_system, lp_fixed_point
from lagjax.fluid.spectrum import rate_slopes
from lagjax.fluid.verify import FluidReport, verify
from lagjax.plots.fluid import plot_fluid
from lagjax.runs.files import write_whole


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What is run."""

    loads: tuple[float, ...] = (0.2, 0.4, 0.6, 0.8)
    starts: int = 64
    policies: tuple[str, ...] = ("greedy", "random", "alg-sc-lp", "whittle", "whittle-rate")
    policy_load: float = 0.8
    pictures: tuple[str, ...] = ("priority", "unfriendly", "low-rank")
    copies: int = 65536
    steps: int = 200
    replicas: int = 64
    seed: int = 0


COLUMNS = (
    "instance", "load", "policy", "residual", "% of OPT(0)", "radius", "measured", "steps to a tenth", "sides", "kink",
    "T", "farthest", "slowest start", "attractor",
)  # fmt: skip


def row(report: FluidReport) -> list[str]:
    found, radius = report.trajectories, report.spectrum.radius
    tenth = f"{math.log(0.1) / math.log(radius):.0f}" if 0 < radius < 1 else "-"
    measured = "-" if report.measured_rate is None else f"{report.measured_rate:.5f}"
    return [
        report.instance, f"{report.load:g}", report.policy, f"{report.residual:.0e}",
        f"{100 * report.reward / report.occ_ub_0:.2f}", f"{radius:.5f}", measured, tenth, str(report.sides),
        f"{report.kink.distance:.2g}" if report.kink.distance > 1e-12 else "0", str(found.times[-1]),
        f"{found.max_final_distance:.0e}", found.kind[found.slowest],
        {"True": "yes", "False": f"no: cycle of {found.cycle_length}"}.get(str(report.attractor), "undecided"),
    ]  # fmt: skip


def planted() -> list[FluidReport]:
    """One task a step, one step of service, three servers in a fixed order: phi_0 becomes 1 - phi_0, so 2-cycles everywhere."""
    reports = []
    for rate in (1.0, 0.9):
        instance = make_instance(
            [[1.0, 0.5, 0.2]], deterministic(1), arrival_rate=[rate], name=f"planted, {rate:g} tasks a step"
        )
        reports.append(verify(instance, "lag", starts=64))
    return reports


WHY = ("instance", "reward, %", "lost, L > 0", "lost, L < 0", "task type", "room to the kink", "spread", "stake, %")


def why(name: str, config: Configuration) -> list[str]:
    """Where LAG loses at the largest size: Lemma B.1 (ii) prices every departure from u*, in % of OPT(OCC-LP(0))."""
    instance = gallery(name, config.policy_load)
    solution = solve_occ(instance)
    start, m = lp_fixed_point(instance, solution), math.isqrt(config.copies)
    policy = build_policy("lag", instance)
    size = {"copies": config.copies, "dispatchers": m, "replicas": config.replicas, "seed": config.seed, "start": start}
    settled = math.ceil(3 * instance.mean_duration.max())
    windows = simulate_scaled(instance, policy, steps=config.steps, warmup=settled, **size)
    given = sum(w.served.sum(axis=2) for w in windows) / (config.steps * config.replicas * config.copies * m)
    rate, index = instance.arrival_rate[:, None], solution.index
    free = 1 - instance.mean_duration @ given
    unused = np.maximum(index, 0) * (rate * free - given)
    misused = np.maximum(-index, 0) * given
    v = int(unused.sum(axis=1).argmax())
    wanted = index[v] > 0
    room = instance.servers_per_task - solution.free_fraction[wanted].sum()
    trace = trace_scaled(instance, policy, steps=settled + config.steps, every=5, **size)
    spread = np.std([x[:, wanted, 0].sum(axis=1) for t, x in enumerate(trace) if 5 * t > settled])
    percent = 100 / solution.objective
    return [
        name, f"{percent * (instance.scores * given).sum():.2f}", f"{percent * unused.sum():.2f}",
        f"{percent * misused.sum():.2f}", instance.tasks[v], f"{room:.3f}", f"{spread:.3f}",
        f"{percent * instance.arrival_rate[v] * index[v].max() * spread:.1f}",
    ]  # fmt: skip


def largest_mu(name: str, config: Configuration) -> float:
    """Largest modulus of the eigenvalues of the derivative of LAG's rates, a little aside of the kink that x_hat may be on."""
    instance = gallery(name, config.policy_load)
    aside = lp_fixed_point(instance, solve_occ(instance))
    aside[:, 0] += 1e-6 * np.random.default_rng(config.seed).standard_normal(len(aside))
    (slopes,) = rate_slopes(fluid_system(instance, build_policy("lag", instance)), aside)
    return float(np.abs(np.linalg.eigvals(slopes)).max())


def markdown(columns, rows) -> str:
    head = "| " + " | ".join(columns) + " |\n|" + "---|" * len(columns)
    return "\n".join([head, *("| " + " | ".join(r) + " |" for r in rows)])


def feasible(name, loads):
    instance = gallery(name)
    most = min(instance.max_load, instance.load / instance.total_rate)
    return [load for load in loads if load <= most]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    use_all_cores()
    config = Configuration()
    plan = [(name, load, "lag") for name in GALLERY for load in feasible(name, config.loads)]
    plan += [(name, config.policy_load, policy) for name in GALLERY for policy in config.policies]
    reports = []
    for name, load, policy in tqdm(plan, disable=not sys.stderr.isatty()):
        report = verify(gallery(name, load), policy, starts=config.starts, seed=config.seed)
        reports.append(report)
        if policy == "lag" and load == config.policy_load and name in config.pictures:
            picture = out / "pictures" / f"fluid-{name}.png"
            write_whole(picture, lambda path, report=report: plot_fluid(report).savefig(path, dpi=120))
    lag = [row(r) for r in reports if r.policy == "lag"]
    others = [row(r) for r in reports if r.policy != "lag"]
    causes = [why(name, config) for name in GALLERY if name != "journal"]
    page = PAGE.format(
        lag=markdown(COLUMNS, lag), others=markdown(COLUMNS, others), planted=markdown(COLUMNS, map(row, planted())),
        why=markdown(WHY, causes), settled=sum(r.attractor is True for r in reports if r.policy == "lag"), cells=len(lag),
        config=config, mu={name: largest_mu(name, config) for name in ("unfriendly", "low-rank")}, jax=jax.__version__,
    )  # fmt: skip
    write_whole(out / "fluid.md", lambda path: Path(path).write_text(page, encoding="utf-8"))
    print(page)


PAGE = """\
# The fluid limit of the gallery

Made by `python experiments/fluid.py` (JAX {jax}; {config}).

x*: the fixed point, x_hat of the LP for LAG. Residual: max |G(x*) - x*|. % of OPT(0): reward at x* as a share of
OPT(OCC-LP(0)). Radius: largest modulus of the eigenvalues of G's derivative on its tangent space; steps to a tenth:
in which it leaves a tenth of a distance. Measured: the factor per step by which the farthest trajectory approached,
fitted from 1e-3 to 1e-11. Sides: derivatives found at x* (more than 1: it lies on a kink, and the radius is the
largest of six). Kink: distance of x* to the nearest kink of G, in the l1 norm of the free fractions. T: steps
followed. Farthest: largest distance at the end (share of a server type's copies that are elsewhere).

## LAG

{lag}

Every trajectory settles in {settled} of {cells} cells.

**Deterministic durations** (Unfriendly, Low-rank; 43 steps). G^t converges, from all starts tried, but slowly: copies
that were taken together come back together, 44 steps later, and only what the policy spreads over different steps
mixes them. An eigenvalue mu of the derivative of the rates gives eigenvalues z with z^43 (z - 1 + mu) = mu, just
inside the unit circle near its 44th roots of unity; the larger mu, the likelier that a free copy is taken at once,
the nearer they are. Low-rank, where every server is wanted and mu is largest ({mu[low-rank]:.2f} at load
{config.policy_load}; on Unfriendly {mu[unfriendly]:.2f}), is the slowest. With geometric durations nothing comes back
together: what is left is the truncated end of the law (P(D > d) < 1e-9), a ring of
radius about 1 - 1 / E[D]. Where the radius is 0 no server has a positive index, so nothing comes back at all, and what
is measured is how the start's own copies finish.

![Unfriendly](pictures/fluid-unfriendly.png)

![Low-rank](pictures/fluid-low-rank.png)

## Other policies

{others}

## Why Priority converges slowest in n

LAG at load {config.policy_load}, n = {config.copies}, m = 256, {config.replicas} replicas, {config.steps} steps.
Lemma B.1 (ii) prices every departure from u*: a server of positive index that is free and not used, or one of
negative index that is. Both in % of OPT(OCC-LP(0)). Task type: the one that loses most by the first. Room to the
kink: what is left of k, for that type, after the free copies of its positive-index servers at x*. Spread: standard
deviation of those free copies in the simulation, over replicas and time. Stake: reward lost per step if a spread's
worth of such copies goes unused, lambda_v max L spread, in % of OPT(OCC-LP(0)).

{why}

A dispatcher's task takes k. While the free copies of positive index fit into k, nothing is lost, to first order;
beyond it the excess goes unused. So the loss is the stake times the part of the fluctuation that passes the kink.
Fluctuations of the free copies come from m tasks a step, are of order 1 / sqrt(m), and m = sqrt(n) makes that
n^(-1/4). On Priority standard calls have the six standard handlers above the kink: its room is less than one spread,
even at m = 256, and the stake is ten times Unfriendly's or more. Unfriendly and Low-rank lie on kinks too, with little
at stake; Specialist has as much room as a dozen spreads.

![Priority](pictures/fluid-priority.png)

## A planted cycle

One task type, three servers, one step of service, k = 1, LAG. With a task at every step, phi_0 becomes 1 - phi_0:
every start but the fixed point is on a cycle of two steps, with the same average reward. With 0.9 tasks a step it
becomes 1 - 0.9 phi_0, and settles at that rate. Both satisfy the paper's assumptions but the attractor property,
which the first lacks.

{planted}
"""

if __name__ == "__main__":
    main()
