"""Where a command's results go: stdout, a JSON file, a folder."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from pathlib import Path

import typer

from lagjax.errors import InputError


def give(text: str, json_file: str | None, command: str, data, rows: list[dict]) -> None:
    """Prints the tables and writes the rows as JSON if asked; with "-" only the JSON is printed."""
    head = {"command": command, "seed": int(data.attrs["seed"]), "selection": data.attrs["selection"]}
    head |= {"versions": json.loads(data.attrs["versions"]), "device": data.attrs["device"]}
    give_page(text, json_file, lambda: {**head, "rows": rows})


def give_page(text: str, json_file: str | None, content: Callable[[], dict]) -> None:
    """Prints a text and writes what `content` makes as JSON if asked; with "-" only the JSON is printed."""
    from lagjax.runs.files import write_whole

    if json_file:
        page = json.dumps(content(), indent=1)
        if json_file == "-":
            typer.echo(page)
            return
        write_whole(json_file, lambda path: Path(path).write_text(page + "\n", encoding="utf-8"))
    typer.echo(text)


def check_writable(folder, json_file):
    """Refuses, before any work, places that cannot be written, and leaves nothing behind."""
    if json_file == "":
        raise InputError("--json has no name; give a file, or - for stdout")
    if json_file and json_file != "-" and Path(json_file).is_dir():
        raise InputError(f"--json {json_file} is a folder; name a file in it")
    targets = {"--out": folder, "--json": Path(json_file).absolute().parent if json_file and json_file != "-" else None}
    for option, target in targets.items():
        if target is None:
            continue
        existing = target.absolute()
        try:
            while not existing.exists():
                existing = existing.parent
            tempfile.TemporaryFile(dir=existing).close()
        except OSError as error:
            raise InputError(
                f"{option}: cannot write in '{existing}' ({error.strerror}); choose another place"
            ) from None
