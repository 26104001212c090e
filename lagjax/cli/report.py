"""`lagjax report`: one page about a finished study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import interrupts
from lagjax.cli.outputs import check_not_read
from lagjax.cli.terminal import note
from lagjax.given import expanded


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of a finished study, such as lagjax sweep leaves.")
    ],
    out: Annotated[Path | None, typer.Option(help="File to write. [default: report.html in the folder]")] = None,
) -> None:
    """Write one HTML page with tables, plots, configuration, versions and how to reproduce: no network needed to read it.

    Example: lagjax report lagjax-results
    """
    from lagjax.runs.files import write_bytes
    from lagjax.runs.folder import INSIDE, MANIFEST
    from lagjax.studies.report import report as written
    from lagjax.studies.study import NAMES

    folder = expanded(folder)
    target = folder / "report.html" if out is None else expanded(out)
    read = [folder / name for name in (*(f"{name}.nc" for name in NAMES), f"{INSIDE}/{MANIFEST}")]
    check_not_read([("--out" if out else "the report", target)], [("DIR", path) for path in read])
    page = written(folder)
    interrupts.begin_work()
    write_bytes(target, page.encode(errors="backslashreplace"))
    note(f"written: {target}")
