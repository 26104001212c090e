"""What a command works on: gallery names or a score file, and lists of loads and policies."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping
from pathlib import Path

from lagjax import data
from lagjax.cli.options import FileOptions
from lagjax.cli.terminal import note
from lagjax.errors import InputError
from lagjax.gallery import GALLERY, gallery
from lagjax.given import expanded
from lagjax.instance import Instance
from lagjax.tune import NAMES

DEFAULT_LOADS = tuple(i / 10 for i in range(1, 10))
_LOWEST_LOAD = 1e-3
_SAMPLE = "sample:"
EXAMPLE = "priority"
GALLERY_NAMES = ", ".join(GALLERY)


def files_of(files: FileOptions) -> list[tuple[str, Path]]:
    """The files that the options read, each with its option."""
    files = _at_home(files)
    named = {"--scores": files.scores, "--durations": files.durations}
    if files.service is not None and files.service.startswith(_SAMPLE):
        path = files.service.removeprefix(_SAMPLE)
        named["--service"] = Path(path if Path(path).is_file() else path.rpartition(":")[0])
    return [(option, path) for option, path in named.items() if path is not None]


def _at_home(files):
    """The options with homes in the place of ~."""
    paths: dict = {
        name: expanded(path) for name in ("scores", "durations") if (path := getattr(files, name)) is not None
    }
    form, _, path = (files.service or "").strip().partition(":")
    if f"{form}:" == _SAMPLE and path.strip():
        paths["service"] = _SAMPLE + str(expanded(path.strip()))
    return dataclasses.replace(files, **paths)


def one_instance(name: str | None, files: FileOptions, seed: int, command: str) -> Instance:
    """Returns the instance meant by a command that takes one."""
    if name is None and files.scores is None:
        name = EXAMPLE
        note(
            f"note: the example {name}; lagjax {command} NAME is for another of {GALLERY_NAMES}, --scores FILE for your own"
        )
    (instance,) = instances([name] if name else [], files, seed)
    return instance


def instances(names: list[str], files: FileOptions, seed: int) -> list[Instance]:
    """Returns the instances meant: of the files if scores are given, else of the gallery (all of it without names)."""
    if files.scores is None:
        given = [f.name for f in dataclasses.fields(files) if getattr(files, f.name) not in (None, False)]
        if given:
            raise InputError(f"--{given[0].replace('_', '-')} describes a score file; give --scores FILE with it")
        twice = [name for i, name in enumerate(names) if name in names[:i]]
        if twice:
            raise InputError(f"instance '{twice[0]}' is named twice; name it once")
        return [gallery(name) for name in names or GALLERY]
    if names:
        raise InputError(f"'{names[0]}' and --scores are both given; choose gallery instances or a score file")
    return [_from_files(files, seed)]


def _from_files(files, seed):
    files = _at_home(files)
    table = data.read_scores(
        files.scores,
        orientation=files.orientation,
        missing="refuse" if files.missing is None else files.missing,
        conflicts="refuse" if files.conflicts is None else files.conflicts,
        normalise=files.normalise,
    )
    if files.sample_papers is not None or files.sample_reviewers is not None:
        table = data.subsample(table, files.sample_papers, files.sample_reviewers, seed)
    for line in table.notes:
        note(f"note: {line}")
    if files.durations is None and files.service is None:
        raise InputError("--scores needs service times: give --durations FILE or --service LAW (such as geometric:20)")
    return data.instance_from_files(
        table, files.durations, servers_per_task=1 if files.per_task is None else files.per_task, load=_LOWEST_LOAD,
        service=files.service, column=files.column, shortest=files.shortest, note=lambda line: note(f"note: {line}"),
    )  # fmt: skip


def all_or_example(given: Mapping[str, object], example: dict[str, str]) -> dict[str, str]:
    """Returns options that describe a system together, or without any of them those of an example, which is said."""
    missing = [name for name, value in given.items() if value is None]
    if len(missing) == len(given):
        note("note: the example of " + " ".join(f"--{name} {value}" for name, value in example.items()))
        return example
    if missing:
        raise InputError(
            f"--{missing[0]} is missing; give all of {', '.join(f'--{name}' for name in given)}, or none for an example"
        )
    return {name: str(value) for name, value in given.items()}


def loads_of(text: str | None):
    """Parses --loads to a tuple; without text, 0.1 to 0.9 as far as each instance goes."""
    return default_loads if text is None else numbers("--loads", text)


def numbers(option: str, text: str) -> tuple[float, ...]:
    """Parses "0.1,0.2" or "0.1:0.9:0.1" (ends included)."""
    values: list[float] = []
    for part in text.split(","):
        found = [_number(piece, option, text) for piece in part.split(":")]
        if len(found) == 1:
            values += found
        elif len(found) == 3 and found[2] > 0 and found[1] >= found[0]:
            first, last, stride = found
            if (last - first) / stride > 1000:
                raise InputError(f"{option} '{text}': '{part}' has more than 1000 numbers; use a longer step")
            values += [round(first + i * stride, 12) for i in range(int((last - first) / stride + 1e-9) + 1)]
        else:
            raise InputError(f"{option} '{text}': '{part}' is no range; write FIRST:LAST:STEP, as in 0.1:0.9:0.1")
    return tuple(values)


def default_loads(instance: Instance) -> tuple[float, ...]:
    """0.1, 0.2, ..., 0.9 up to what the instance can carry: load 1 - k/R and one arrival per step."""
    busiest = min(instance.max_load, instance.load / instance.total_rate)
    loads = tuple(load for load in DEFAULT_LOADS if load <= busiest + 1e-9)
    if not loads:
        raise InputError(f"instance '{instance.name}' carries loads up to {busiest:.4g} only; name some with --loads")
    return loads


def policies_of(text: str | None, default: tuple[str, ...], known: tuple[str, ...] = NAMES) -> tuple[str, ...]:
    """Parses "lag,greedy" and checks that every name is known."""
    if text is None:
        return default
    names = tuple(name.strip() for name in text.split(","))
    for i, name in enumerate(names):
        if name not in known:
            raise InputError(f"--policies: no policy '{name}'; choose from {', '.join(known)}")
        if name in names[:i]:
            raise InputError(f"--policies names '{name}' twice; name it once")
    return names


def whole_numbers(option: str, text: str) -> tuple[int, ...]:
    """Parses "1,4,16"."""
    out = []
    for piece in text.split(","):
        if not re.fullmatch(r"\s*[0-9]{1,18}\s*", piece):
            raise InputError(
                f"{option} '{text}': '{piece}' is not a whole number, 0 or more, of at most 18 digits; write 1,4,16"
            )
        out.append(int(piece))
    return tuple(out)


def _number(piece, option, text):
    if not re.fullmatch(r"\s*[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?\s*", piece):
        raise InputError(f"{option} '{text}': '{piece}' is not a number; write 0.1,0.2 or 0.1:0.9:0.1")
    return float(piece)
