"""Which job a free worker takes: compiling costs as much as several cells, so workers stay with kinds that they know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lagjax.runs.job import Job


def choose(
    waiting: Sequence[Job], known: Sequence[str], busy: Sequence[str], spent: Mapping[str, Sequence[float]]
) -> Job | None:
    """Returns the next job of a worker, or None if it would only be in the way.

    It takes a kind that it has compiled, else the one with most work left for each worker on it; but not a kind that others
    will have finished before it has compiled it, as far as the times so far tell.

    Args:
      waiting: jobs to choose from.
      known: kinds that the worker has compiled, the latest first.
      busy: kinds of the jobs that run.
      spent: seconds of finished jobs by kind, in order; the first includes compiling.
    """
    left: dict[str, list[Job]] = {}
    for job in waiting:
        left.setdefault(job.kind, []).append(job)
    for kind in known:
        if kind in left:
            return left[kind][0]
    by_need = sorted(left, key=lambda kind: (-sum(job.work for job in left[kind]) / (1 + busy.count(kind)), kind))
    for kind in by_need:
        seconds = spent.get(kind, ())
        if busy.count(kind) and len(seconds) > 1:
            again = min(seconds[1:])
            if len(left[kind]) * again / busy.count(kind) < seconds[0] - again:
                continue
        return left[kind][0]
    return None
