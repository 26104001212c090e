"""JSQ(2) on sparse compatibility graphs as they grow: the mean field holds where graphs are proportionally sparse, and not on
rings and blocks. Writes compatibility.md and pictures/compatibility.png.

python experiments/compatibility.py        five minutes of processor time; about three minutes on two free cores
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

import jax
import numpy as np
from tqdm import tqdm

from lagjax.cli.terminal import use_all_cores
from lagjax.compatibility import FAMILIES, certify, jsq
from lagjax.compatibility.families import default_degree
from lagjax.plots.compatibility import plot_compatibility
from lagjax.runs.files import write_whole
from lagjax.stats import estimate, ratio_of_means
from lagjax.studies.compatibility import measure
from lagjax.studies.show_compat import comparison, describe, legend


@dataclasses.dataclass(frozen=True)
class Configuration:
    """What is run."""

    sizes: tuple[int, ...] = (100, 1000, 10000)
    families: tuple[str, ...] = ("complete", "regular", "random", "ring", "blocks")
    load: float = 0.95
    choices: int = 2
    time: int = 200
    warmup: int = 200
    horizon: float = 10
    replicas: int = 512
    degrees: tuple[int, ...] = (2, 4, 8, 16, 32, 64)
    degree_servers: int = 1000
    degree_warmup: int = 400  # regular graphs of degree 2 fall into cycles, of which short ones are slow
    seed: int = 0


def run(config, family, servers, degree, horizon, warmup):
    """One case; random graphs have servers that random routing would overload, which JSQ does not."""
    graph = FAMILIES[family](servers, servers, degree, config.seed)
    return measure(
        graph, jsq(config.choices), config.load, time=config.time, warmup=warmup, replicas=config.replicas,
        seed=config.seed, horizon=horizon, certificate=certify(graph), allow_overloaded=True,
    )  # fmt: skip


def beside(case, flexible):
    """The largest difference of an occupancy from the flexible system's, in points, and of the queue length, in %, each ± its
    paired interval."""
    gap = estimate(100 * (case.occupancy - flexible.occupancy))  # bundle by bundle: of equal numbers, from one seed
    level = int(np.argmax(np.abs(gap.mean)))
    queue = estimate(100 * ratio_of_means(case.queue_length, flexible.queue_length))
    return [
        case.graph.name, str(case.graph.num_servers), f"{case.graph.server_degree().mean():.0f}", f"{case.certificate.sigma:.3f}",
        f"{gap.mean[level]:+.2f} ±{gap.ci95[level]:.2f} (q_{level + 1})", f"{queue.mean - 100:+.2f} ±{queue.ci95:.2f}",
    ]  # fmt: skip


COLUMNS = (
    "graph",
    "servers",
    "server degree",
    "sigma",
    "largest difference of an occupancy, points",
    "mean queue length, %",
)


def markdown(rows) -> str:
    head = "| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS)
    return "\n".join([head, *("| " + " | ".join(r) + " |" for r in rows)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    out = parser.parse_args().out
    use_all_cores()
    config = Configuration()
    quiet = not sys.stderr.isatty()
    plan = [(family, n) for family in config.families for n in config.sizes]
    cases = {
        (family, n): run(config, family, n, default_degree(family, n, n), config.horizon, config.warmup)
        for family, n in tqdm(plan, disable=quiet)
    }
    rows = [beside(cases[family, n], cases["complete", n]) for family, n in plan if family != "complete"]
    few = [(family, degree) for degree in config.degrees for family in ("regular", "ring")]
    flexible = cases["complete", config.degree_servers]
    by_degree = [
        beside(run(config, family, config.degree_servers, degree, 0, config.degree_warmup), flexible)
        for family, degree in tqdm(few, disable=quiet)
    ]
    described = [describe(case) for case in cases.values()]
    write_whole(
        out / "pictures" / "compatibility.png", lambda path: plot_compatibility(described).savefig(path, dpi=110)
    )
    page = PAGE.format(
        config=config, jax=jax.__version__, legend=legend(described), table=comparison(described), beside=markdown(rows),
        degrees=markdown(by_degree),
    )  # fmt: skip
    write_whole(out / "compatibility.md", lambda path: Path(path).write_text(page, encoding="utf-8"))
    print(page)


PAGE = """\
# JSQ(d) on sparse compatibility graphs

Made by `python experiments/compatibility.py` (JAX {jax}; {config}).

Graphs of as many task types as servers; degree about ln(N)^2, blocks the next size that divides N. `random` has servers that
random routing would overload (the paper's condition excludes that only as N grows); JSQ(2) carries them all the same.

```
{table}
```

{legend}

![Occupancy, mean queue length and sup-distance](pictures/compatibility.png)

## Beside the fully flexible system of the same size

{beside}

Regular graphs of degree ln(N)^2 differ from the flexible system by less than their intervals in every occupancy, at every size:
within 0.3% at N = 1,000 and 0.15% at N = 10,000. Rings of the same degree are 1 to 2% off and blocks 2.3 to 7.6%; both come
nearer as N grows only because their degree grows too. Random graphs are off because some of their servers have more types than
others, and come nearer faster than blocks.

What the mean field of the *process* needs is more, and rings and blocks never have it: when half of the servers, side by side,
are loaded, their sup-distance to the ODE stays at 0.13 to 0.14 from N = 1,000 on; that of the others falls like 1 / sqrt(N).
So says the certificate: sigma falls like 2 / sqrt(degree) for them, and is near 1 for rings and blocks.

## How large a degree does it take?

{config.degree_servers} servers.

{degrees}
"""

if __name__ == "__main__":
    main()
