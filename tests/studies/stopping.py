"""Jobs that are stopped after every checkpoint, for tests of what they keep."""

from lagjax.runs.job import Watch
from lagjax.runs.record import pack, unpack


class Kept:
    """A checkpoint in memory that keeps everything, as bytes."""

    def __init__(self):
        self.data, self.saves = None, 0

    def load(self):
        return None if self.data is None else unpack(self.data)

    def save(self, make, now=False):
        self.data = pack(make())
        self.saves += 1


class StopError(Exception):
    """What ends a process."""


def stopped_again_and_again(run, budgets=(None,), most=200):
    """Stops after every checkpoint until the job comes through, with one budget after another.

    Args:
      run: from a `Watch` to a record.
      budgets: bytes of memory of the first start, the second, and so on; the last one stays.
      most: starts.

    Returns:
      The record, the number of checkpoints, and the work that each start found done.
    """
    kept, starts = Kept(), []
    for start in range(most):
        first = True

        def progress(done, seen=kept.saves):
            nonlocal first
            if first:
                starts.append(done)
            first = False
            if kept.saves > seen:
                raise StopError

        try:
            watch = Watch(progress=progress, checkpoint=kept, memory=budgets[min(start, len(budgets) - 1)])
            return run(watch), kept.saves, starts
        except StopError:
            continue
    raise AssertionError(f"not through after {most} starts")
