"""Cells as jobs: stopped anywhere and gone on with, in pieces, by several processes, they give the same record."""

import pytest

from lagjax import cells, scaled_cells
from lagjax.cells import Task, run_cell
from lagjax.durations import geometric
from lagjax.engine.run import batch_bytes
from lagjax.engine.scaled_run import simulate_scaled
from lagjax.exact import known_optimum
from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.policies import build_policy
from lagjax.runs.job import Watch, share
from lagjax.runs.record import pack, unpack
from lagjax.scaled_cells import Size, SizeTask, run_size


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


def stopped_again_and_again(run, task, **limits):
    """Stops after every checkpoint until the job comes through; also how often, and the work that each start found done."""
    kept, starts = Kept(), []
    while True:
        seen = kept.saves

        def progress(done, seen=seen):
            starts.append(done)
            if kept.saves > seen:
                raise StopError

        try:
            return run(task, Watch(progress=progress, checkpoint=kept, **limits)), kept.saves, starts
        except StopError:
            assert kept.saves < 100


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(cells, "CHUNK", 1)  # 128 arrivals a call


TASK = Task(priority(0.5), ("lag", "random"), 3000, 6, 2, "canonical")


def test_a_cell_stopped_after_every_checkpoint(small_chunks):
    wanted = pack(run_cell(TASK, Watch()))
    instance = TASK.instance
    each = batch_bytes(instance, [build_policy(p, instance) for p in TASK.policies])
    for limits, least in (({}, 4), ({"memory": 2 * each}, 12)):  # whole, and in three pieces
        found, saves, starts = stopped_again_and_again(run_cell, TASK, **limits)
        assert pack(found) == wanted
        assert saves >= least
        assert starts[-1] == cells.cell_job(TASK).work and sum(start == 0 for start in starts) <= 2


def test_tuned_is_not_tuned_again(small_chunks, monkeypatch):
    """The policy that was found is part of what is kept."""
    instance = make_instance([[1.0, 0.4, 0.2], [0.3, 1.0, 0.1]], geometric(4), load=0.4, name="small")
    task = Task(instance, ("lag", "tuned"), 2000, 4, 0, "canonical")
    wanted = pack(run_cell(task, Watch()))
    calls = []
    original = cells.named_policy
    monkeypatch.setattr(cells, "named_policy", lambda *a, **k: calls.append(a[0]) or original(*a, **k))
    found, _, _ = stopped_again_and_again(run_cell, task)
    assert pack(found) == wanted
    assert calls == ["lag", "tuned"]


def test_a_checkpoint_of_other_shares_is_no_start(small_chunks):
    kept = Kept()
    run_cell(TASK, Watch(checkpoint=kept))
    assert kept.load() is not None
    found = {}

    def part(process):
        def gather(work):
            found[process] = work()
            return [found[p] for p in sorted(found)]

        return Watch(checkpoint=kept, process=process, processes=2, gather=gather)

    assert share(6, 0, 2) == (0, 3)
    run_cell(TASK, part(0))
    assert pack(run_cell(TASK, part(1))) == pack(run_cell(TASK, Watch()))


def test_a_size_stopped_after_every_checkpoint(monkeypatch):
    """A convergence cell that resizes itself, stopped between chunks; its steps and warm-up are what they would have been."""
    monkeypatch.setattr(scaled_cells, "PILOT_TASKS", 500)
    monkeypatch.setattr(scaled_cells, "TARGET", 4.0)
    instance = priority(0.7)
    lag = build_policy("lag", instance)
    task = SizeTask(instance, lag, Size(2, 1), 0, None, 6, 1, "canonical", "warm", 1)
    wanted = run_size(task, Watch())
    assert wanted.head["values"]["steps"] > 200  # it did resize
    kept = Kept()
    for _ in range(200):
        seen = kept.saves

        class Once:
            """Stops at the second save, so that every start makes one step."""

            def load(self):
                return kept.load()

            def save(self, make, now=False, seen=seen):
                if kept.saves > seen:
                    raise StopError
                kept.save(make)

        try:
            found = run_size(task, Watch(checkpoint=Once()))
            break
        except StopError:
            continue
    assert kept.saves > 2
    assert pack(found) == pack(wanted)


def test_a_size_loses_tasks_lost_over_tasks_that_came():
    """Replicas that see few tasks see different numbers of them; at one copy the optimum stands beside, free of noise."""
    instance = priority(0.8)
    lag = build_policy("lag", instance)
    found = run_size(SizeTask(instance, lag, Size(1, 1), 0, 40, 24, 1, "canonical", "empty", 1), Watch())
    values, best = found.head["values"], known_optimum(instance)
    given = {"steps": 40, "warmup": int(values["warmup"]), "replicas": 24, "seed": 1, "most_dispatchers": 1}
    halves = simulate_scaled(instance, lag, copies=1, dispatchers=1, **given)
    lost, came = (sum(getattr(half, key).sum(axis=0) for half in halves) for key in ("blocked", "arrived"))
    assert values["blocking"] == pytest.approx(lost.sum() / came.sum()) != pytest.approx((lost / came).mean())
    assert values["optimal_percent_of_occ_ub"] == pytest.approx(100 * best.reward / best.occ_ub)
    assert values["percent_of_optimum"] == pytest.approx(100 * values["reward_per_step"] / best.reward)
    assert values["percent_of_optimum_ci95"] == pytest.approx(100 * values["reward_ci95"] / best.reward)
