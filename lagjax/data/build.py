"""From files to an instance: papers are the task types, reviewers the servers."""

from __future__ import annotations

import os
from collections.abc import Callable

from lagjax.data.scores import read_scores
from lagjax.data.service import FORMS, from_sample_file, parse_service
from lagjax.data.table import ScoreTable
from lagjax.errors import InputError
from lagjax.instance import Instance, make_instance


def instance_from_files(
    scores: ScoreTable | str | os.PathLike[str], durations: str | os.PathLike[str] | None = None, *,
    servers_per_task: int, load: float, service: str | None = None, column: str | None = None,
    shortest: int | None = None, name: str | None = None, note: Callable[[str], None] | None = None,
) -> Instance:  # fmt: skip
    """Builds the instance of a file of scores and a service law; all papers arrive equally often.

    Args:
      scores: a table, prepared as wished, or a file for `read_scores` with its defaults (gaps, conflicts and
        bare matrices refused). Scores are not rescaled.
      durations: text file of observed times, in steps; each is rounded to the nearest whole step, at least 1.
      servers_per_task: k, reviews per paper.
      load: rho in (0, 1 - k/R].
      service: a law for `parse_service`, instead of `durations`; exactly one of the two is needed.
      column: which column of `durations` holds the times, by name or number from 1.
      shortest: take observed times from 0 up to below this many steps as this many; by default 0 is refused.
      name: what tables and files call the instance; by default the scores file without its ending.
      note: called with each line on how the times were read that users should see; the table has its own.

    Returns:
      An `Instance` with scores (V papers, R reviewers), named as in the file.

    Raises:
      InputError: a file that cannot be used, no law or two laws, or k or load out of range.
    """
    if (durations is None) == (service is None):
        found = "neither is given" if durations is None else "both are given"
        raise InputError(f"service times need a durations file or a service law, and {found}; give one ({FORMS})")
    if column is not None and durations is None:
        raise InputError(f"column is {column!r} but durations is not given; write sample:FILE:COLUMN in service")
    table = scores if isinstance(scores, ScoreTable) else read_scores(scores)
    if service is not None:
        law = parse_service(service, shortest=shortest, note=note)
    else:
        law = from_sample_file(durations, column, shortest=shortest, note=note)
    return make_instance(
        table.scores, law, servers_per_task=servers_per_task, load=load, name=name or table.source.stem,
        tasks=table.papers, servers=table.reviewers,
    )  # fmt: skip
