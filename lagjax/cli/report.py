"""`lagjax report`: one page about a finished study."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from lagjax.cli import interrupts, options
from lagjax.cli.outputs import check_not_read, check_writable, give
from lagjax.cli.terminal import note
from lagjax.given import expanded

DEFAULT_FOLDER = Path("lagjax-results")  # of lagjax sweep
PAGE = "report.html"


def report(
    folder: Annotated[
        Path, typer.Argument(metavar="[DIR]", help="Folder of a finished study, such as lagjax sweep leaves.")
    ] = DEFAULT_FOLDER,
    out: Annotated[Path | None, typer.Option(help="Folder for report.html. [default: DIR]")] = None,
    json_file: options.Json = None,
) -> None:
    """Write one HTML page with tables, plots, configuration, versions and how to reproduce: no network needed to read it.

    Example: lagjax report lagjax-results
    """
    from lagjax.runs.files import write_bytes
    from lagjax.runs.folder import INSIDE, MANIFEST
    from lagjax.studies.dataset import load
    from lagjax.studies.report import report as written
    from lagjax.studies.study import NAMES, study_in

    folder = expanded(folder)
    target = (folder if out is None else expanded(out)) / PAGE
    check_writable(None if out is None else target.parent, json_file)
    writes = [("--out" if out else "the report", target)]
    if json_file and json_file != "-":
        json_file = str(expanded(json_file))
        writes.append(("--json", Path(json_file)))
    read = [("DIR", folder / name) for name in (*(f"{name}.nc" for name in NAMES), f"{INSIDE}/{MANIFEST}")]
    check_not_read(writes, read)
    page = written(folder)
    interrupts.begin_work()
    write_bytes(target, page.encode(errors="backslashreplace"))
    study = study_in(folder)
    if json_file and study is not None:
        data = load(folder / study.file)
        give(
            "report", "", json_file, lambda: {"study": study.name, "page": str(target), "rows": study.rows(data)}, data
        )
    note(f"written: {target}")
