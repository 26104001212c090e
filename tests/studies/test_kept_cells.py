"""Cells as jobs: stopped anywhere and gone on with, in pieces, by several processes, they give the same record."""

import functools
import itertools

import pytest
from stopping import Kept, stopped_again_and_again

from lagjax.durations import geometric
from lagjax.engine.run import batch_bytes
from lagjax.engine.scaled_run import replica_bytes, simulate_scaled
from lagjax.exact import known_optimum
from lagjax.gallery import priority
from lagjax.instance import make_instance
from lagjax.policies import build_policy
from lagjax.runs.batched import stage_of
from lagjax.runs.job import Watch, share
from lagjax.runs.record import pack
from lagjax.studies import load_cells, size_cells
from lagjax.studies.load_cells import LoadSpec, load_job, run_load
from lagjax.studies.size_cells import Plan, Size, SizeSpec, run_size


@pytest.fixture
def small_chunks(monkeypatch):
    monkeypatch.setattr(load_cells, "CHUNK", 1)  # 128 arrivals a call


SPEC = LoadSpec(priority(0.5), ("lag", "random"), 3000, 6, 2, "canonical")


def test_a_cell_stopped_after_every_checkpoint(small_chunks):
    """Whole, in pieces, and in pieces that become smaller: what is behind a start stays behind it."""
    wanted = pack(run_load(SPEC, Watch()))
    each = batch_bytes(SPEC.instance, [build_policy(p, SPEC.instance) for p in SPEC.policies])
    for budgets, least in (((None,), 4), ((2 * each,), 12), ((4 * each,) * 4 + (each,), 12)):
        found, saves, starts = stopped_again_and_again(functools.partial(run_load, SPEC), budgets)
        assert pack(found) == wanted
        assert saves >= least
        assert sum(start == 0 for start in starts) <= 3
        assert sum(later < before for before, later in itertools.pairwise(starts)) == (len(budgets) > 1)
        assert load_job(SPEC).work * 0.9 < starts[-1] <= load_job(SPEC).work


SMALL = make_instance([[1.0, 0.4, 0.2], [0.3, 1.0, 0.1]], geometric(4), load=0.4, name="small")


def counted_calls(monkeypatch, module):
    calls, original = [], module.named_policy
    monkeypatch.setattr(module, "named_policy", lambda *a, **k: calls.append(a[0]) or original(*a, **k))
    return calls


def test_tuned_is_not_tuned_again(small_chunks, monkeypatch):
    """The policy that was found is part of what is kept."""
    spec = LoadSpec(SMALL, ("lag", "tuned"), 2000, 4, 0, "canonical")
    wanted = pack(run_load(spec, Watch()))
    calls = counted_calls(monkeypatch, load_cells)
    found, _, _ = stopped_again_and_again(functools.partial(run_load, spec))
    assert pack(found) == wanted
    assert calls == ["lag", "tuned"]


def test_a_checkpoint_of_other_shares_is_no_start(small_chunks):
    kept = Kept()
    run_load(SPEC, Watch(checkpoint=kept))
    assert kept.load() is not None
    found = {}

    def part(process):
        def gather(work):
            found[process] = work()
            return [found[p] for p in sorted(found)]

        return Watch(checkpoint=kept, process=process, processes=2, gather=gather)

    assert share(6, 0, 2) == (0, 3)
    run_load(SPEC, part(0))
    assert pack(run_load(SPEC, part(1))) == pack(run_load(SPEC, Watch()))


SIZE = SizeSpec(priority(0.7), build_policy("lag", priority(0.7)), Size(2, 1), 0, None, 6, 1, "canonical", "warm", 1)


@pytest.fixture
def resizing(monkeypatch):
    """Short pilots and wide intervals, so that a cell is sized anew."""
    monkeypatch.setattr(size_cells, "PILOT_TASKS", 500)
    monkeypatch.setattr(size_cells, "TARGET", 4.0)


def test_a_size_stopped_after_every_checkpoint(resizing):
    """A cell that is sized anew, whole and with a budget that shrinks; its steps and warm-up are what they would have been."""
    wanted = run_size(SIZE, Watch())
    assert wanted.arrays["steps"].item() > 200  # it was sized anew
    each = replica_bytes(SIZE.instance, SIZE.policy, *SIZE.size)
    for budgets in ((None,), (6 * each, 4 * each, 4 * each, 2 * each, each)):
        found, saves, starts = stopped_again_and_again(functools.partial(run_size, SIZE), budgets)
        assert saves > 2 and pack(found) == pack(wanted)
        assert 0 < starts[-1] < 1


def test_a_size_tunes_once_however_often_it_is_stopped_and_sized_anew(resizing, monkeypatch):
    spec = SIZE._replace(instance=SMALL, policy="tuned", size=Size(1, 1))
    wanted = pack(run_size(spec, Watch()))
    calls = counted_calls(monkeypatch, size_cells)
    found, _, starts = stopped_again_and_again(functools.partial(run_size, spec))
    assert pack(found) == wanted
    assert calls == ["tuned"] and len(starts) > 2


def test_finished_pieces_outlive_a_smaller_budget(monkeypatch):
    """Only the pause of a piece that is too large now is dropped; memory that runs out in a resumed piece halves it."""
    spec, each = SIZE._replace(steps=2000), replica_bytes(SIZE.instance, SIZE.policy, *SIZE.size)
    wanted, kept = pack(run_size(spec, Watch())), Kept()
    original, tried = size_cells.simulate_scaled, []

    def simulate(*args, **kwargs):
        tried.append((kwargs["first_replica"], kwargs["replicas"], kwargs["resume"] is not None))
        if tried[-1][0] == last:
            raise KeyboardInterrupt
        if tried[-1][1] > room:
            raise MemoryError
        return original(*args, **kwargs)

    last, room = 4, 6
    monkeypatch.setattr(size_cells, "simulate_scaled", simulate)
    with pytest.raises(KeyboardInterrupt):
        run_size(spec, Watch(checkpoint=kept, memory=2 * each))
    assert tried == [(0, 2, False), (2, 2, False), (4, 2, False)]
    tried.clear()
    last = None
    assert pack(run_size(spec, Watch(checkpoint=kept, memory=each))) == wanted
    assert tried == [(4, 1, False), (5, 1, False)]

    class InTheMiddle(Kept):
        """Ends the process once a piece has paused."""

        def save(self, make, now=False):
            super().save(make, now)
            if self.load().head["events"] is not None:
                raise KeyboardInterrupt

    kept = InTheMiddle()
    with pytest.raises(KeyboardInterrupt):
        run_size(spec, Watch(checkpoint=kept))
    kept.save = lambda make, now=False: Kept.save(kept, make, now)
    room = 3
    tried.clear()
    assert pack(run_size(spec, Watch(checkpoint=kept))) == wanted
    assert tried[:2] == [(0, 6, True), (0, 2, False)] and sum(count for _, count, _ in tried[1:]) == 6


def test_a_pause_of_another_kind_begins_its_piece_again(small_chunks):
    """As on another kind of device, whose blocks are of another length."""
    wanted = pack(run_load(SPEC, Watch()))

    class Altered(Kept):
        def load(self):
            kept = super().load()
            if kept is None or kept.head["events"] is None:
                return kept
            return kept._replace(head=kept.head | {"events": kept.head["events"] + 1})

        def save(self, make, now=False):
            super().save(make, now)
            if interrupted and self.saves == 4:
                raise KeyboardInterrupt

    kept, interrupted = Altered(), True
    with pytest.raises(KeyboardInterrupt):
        run_load(SPEC, Watch(checkpoint=kept))
    interrupted = False
    assert kept.load().head["events"] is not None
    assert pack(run_load(SPEC, Watch(checkpoint=kept))) == wanted


def test_processes_that_came_to_different_runs_begin_with_the_first_one():
    """One was killed after it had kept its place in a second run, the other one before."""
    first, ahead, behind = Plan(30, 20, 5), Plan(900, 20, 3, 60), Plan(40, 20, 4)

    class Place:
        def __init__(self, plan):
            self.plan = plan

        def load(self):
            head = {"about": {}, "stage": list(self.plan)}
            return size_cells.Record(head, {})

    for mine, other, common in ((ahead, behind, first), (behind, ahead, first), (ahead, ahead, ahead)):
        record = size_cells.Record({"stage": list(other)}, {})
        both = Watch(checkpoint=Place(mine), gather=lambda work, other=record: [work(), other])
        assert Plan(*stage_of(both, first)) == common


def test_a_size_loses_tasks_lost_over_tasks_that_came():
    """Replicas that see few tasks see different numbers of them; at one copy the optimum stands beside, free of noise."""
    instance = priority(0.8)
    lag = build_policy("lag", instance)
    found = run_size(SizeSpec(instance, lag, Size(1, 1), 0, 40, 24, 1, "canonical", "empty", 1), Watch())
    values, best = {name: a.item() for name, a in found.arrays.items() if a.size == 1}, known_optimum(instance)
    given = {"steps": 40, "warmup": int(values["warmup"]), "replicas": 24, "seed": 1, "most_dispatchers": 1}
    halves = simulate_scaled(instance, lag, copies=1, dispatchers=1, **given)
    lost, came = (sum(getattr(half, key).sum(axis=0) for half in halves) for key in ("blocked", "arrived"))
    assert values["blocking"] == pytest.approx(lost.sum() / came.sum()) != pytest.approx((lost / came).mean())
    assert values["optimal_percent_of_occ_ub"] == pytest.approx(100 * best.reward / best.occ_ub)
    assert values["percent_of_optimum"] == pytest.approx(100 * values["reward_per_step"] / best.reward)
    assert values["percent_of_optimum_ci95"] == pytest.approx(100 * values["reward_ci95"] / best.reward)
