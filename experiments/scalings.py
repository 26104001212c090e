"""The three ways of scaling up: n and m together as in Figure 6, n alone (m = 1), and m alone (n = 1).

Writes scalings.md and scalings.png, scalings-n.png, scalings-m.png beside this file (or to the folder named).

    python experiments/scalings.py [FOLDER]
"""

from __future__ import annotations

import sys
from pathlib import Path

from lagjax import gallery
from lagjax.cli.converge import DEFAULT_INSTANCES
from lagjax.cli.terminal import progress_bar, use_all_cores
from lagjax.plots import plot_convergence
from lagjax.studies.convergence import DEFAULT_COPIES, converge, sizes_of
from lagjax.studies.show_converge import LEGEND, convergence_table

LOAD = 0.8
SEED = 0
STUDIES = {
    "scalings": ("n and m together, m = floor(sqrt(n))", sizes_of(DEFAULT_COPIES)),
    "scalings-n": ("n alone, one dispatcher", sizes_of((1, 16, 256, 4096, 65536), [1])),
    "scalings-m": ("m alone, one copy per dispatcher", sizes_of([1], (1, 4, 16, 64, 256))),
}


def main(folder: Path) -> None:
    """Runs the studies and writes the page."""
    use_all_cores()
    folder.mkdir(parents=True, exist_ok=True)
    page = [
        "# Scaling up, together and apart",
        f"Made by `python experiments/scalings.py`. LAG at load {LOAD:g}. {LEGEND}",
    ]
    for name, (title, sizes) in STUDIES.items():
        with progress_bar(name, unit="cells") as progress:
            data = converge([gallery(i, LOAD) for i in DEFAULT_INSTANCES], sizes=sizes, seed=SEED, progress=progress)
        plot_convergence(data).savefig(folder / f"{name}.png", dpi=110)
        page.append(f"## Scaling {title}")
        page.append(f"![{title}]({name}.png)")
        page += [f"### {i}\n\n```\n{convergence_table(data, i)}\n```" for i in DEFAULT_INSTANCES]
    (folder / "scalings.md").write_text("\n\n".join(page) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
