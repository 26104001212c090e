"""Table 3 of the paper, ours beside the published numbers, under every selection of the LP's optimum.

Writes table3.md and table3.json beside this file (or to the folder named). Takes about 3 minutes on 2 cores.

    python experiments/table3.py [FOLDER]
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from lagjax import GALLERY, gallery, sweep
from lagjax.cli.inputs import default_loads
from lagjax.cli.terminal import progress_bar, use_all_cores
from lagjax.lp import SELECTIONS
from lagjax.studies.published import TOLERANCE, published_percent
from lagjax.studies.show_sweep import rows

INSTANCES = [name for name in GALLERY if name != "journal"]  # the journal is synthetic: the paper has no number for it
POLICIES = ("lag", "whittle", "alg-sc-lp", "greedy", "random")
FROM_LP = ("lag", "alg-sc-lp")
SEED = 0
REPLICAS = 4096  # intervals of 0.07 points at most


def main(folder: Path) -> None:
    """Runs the sweeps and writes the table."""
    use_all_cores()
    cells = {}
    for selection in SELECTIONS:
        with progress_bar(selection) as progress:
            data = sweep(
                [gallery(name) for name in INSTANCES], loads=default_loads, policies=POLICIES, replicas=REPLICAS, seed=SEED,
                selection=selection, progress=progress,
            )  # fmt: skip
        for row in rows(data):
            cells[selection, row["instance"], row["load"], row["policy"]] = row
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table3.md").write_text(render(cells), encoding="utf-8")
    flat = [{"selection": key[0], **row} for key, row in cells.items()]
    (folder / "table3.json").write_text(json.dumps(flat, indent=1) + "\n", encoding="utf-8")


def render(cells) -> str:
    """Returns the page: one table per instance, then the count of cells within the tolerance."""
    lines = [
        "# Table 3, reproduced", "",
        "Made by `python experiments/table3.py`. Each cell: published / ours, reward as % of OCC-UB at the measured blocking. "
        f"**Bold**: more than {TOLERANCE:g} points apart. Policies that come from an LP (`lag`, `alg-sc-lp`) are shown under "
        "each selection of its optimum; 95% half-widths are at most "
        f"{max(row['percent_ci95'] for row in cells.values()):.2f} points.", "",
    ]  # fmt: skip
    columns = [(p, s) for p in POLICIES for s in (SELECTIONS if p in FROM_LP else ("canonical",))]
    inside, total = dict.fromkeys(columns, 0), dict.fromkeys(columns, 0)
    for name in INSTANCES:
        lines += [
            f"## {name}",
            "",
            "| load | " + " | ".join(f"{p}, {s}" if p in FROM_LP else p for p, s in columns) + " |",
        ]
        lines.append("|---" * (1 + len(columns)) + "|")
        for load in default_loads(gallery(name)):
            shown = []
            for policy, selection in columns:
                paper = published_percent(name, load, policy)
                ours = cells[selection, name, load, policy]["percent_of_occ_ub"]
                near = round(abs(ours - paper), 1) <= TOLERANCE  # print has one decimal
                inside[policy, selection] += near
                total[policy, selection] += 1
                text = f"{paper:.1f} / {ours:.1f}"
                shown.append(text if near else f"**{text}**")
            lines.append(f"| {load:g} | " + " | ".join(shown) + " |")
        lines.append("")
    lines += ["## Cells within tolerance", ""]
    lines += [f"- {p}{f', {s}' if p in FROM_LP else ''}: {inside[p, s]} of {total[p, s]}" for p, s in columns]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
