"""`lagjax report`: one page about a finished study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli.terminal import note


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a finished lagjax sweep or converge.")],
    out: Annotated[Path | None, typer.Option(help="File to write. [default: report.html in the folder]")] = None,
) -> None:
    """Write one HTML page with tables, plots, configuration, versions and how to reproduce: no network needed to read it.

    Example: lagjax report lagjax-results
    """
    from lagjax.report.study import report as written
    from lagjax.runs.files import write_bytes

    target = folder / "report.html" if out is None else out
    page = written(folder)
    write_bytes(target, page.encode(errors="backslashreplace"))
    note(f"written: {target}")
