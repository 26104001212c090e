"""Sister studies as jobs: stopped anywhere, in pieces, with a budget that shrinks and by several processes: the same record."""

import functools
import itertools

import pytest
from stopping import stopped_again_and_again

from lagjax.compatibility import complete, jsq, queues, ring
from lagjax.loss_routing import build_routing
from lagjax.loss_routing import make_system as make_queues
from lagjax.loss_routing import simulate as routing_engine
from lagjax.partial_information import build_policies
from lagjax.partial_information import make_system as make_servers
from lagjax.partial_information import simulate as dispatching_engine
from lagjax.runs.job import Watch, share
from lagjax.runs.record import pack
from lagjax.studies import compatibility, dispatching, routing
from lagjax.studies.compatibility import CaseSpec, run_case
from lagjax.studies.dispatching import DispatchSpec, run_dispatch
from lagjax.studies.routing import RouteSpec, run_route

QUEUES = make_queues([1, 2], [3, 4], [1.0, 0.8], 2.0)
SERVERS = make_servers([0.1, 0.3, 0.2], 3)
CASE = CaseSpec(ring(6, 6, 3), jsq(2), 0.7, 12, 4, 256, 1, 0.0, 0.2, False)
JOBS = {
    "route": functools.partial(
        run_route, RouteSpec(QUEUES, tuple(build_routing(["rb", "sq", "random"], QUEUES)), 400, 100, 6, 3, 0)
    ),
    "partial": functools.partial(
        run_dispatch, DispatchSpec(SERVERS, tuple(build_policies(["round-robin", "random", "jsq"], SERVERS)), 100, "full", 6, 2)
    ),
    "compat": functools.partial(run_case, CASE),
}  # fmt: skip
BYTES = {  # of the smallest piece: a replica, or a bundle
    "route": routing_engine.replica_bytes(QUEUES, JOBS["route"].args[0].policies),
    "partial": dispatching_engine.replica_bytes(SERVERS, JOBS["partial"].args[0].policies, range(1, 50)),
    "compat": 64 * queues.replica_bytes(CASE.graph),
}


@pytest.fixture
def small_chunks(monkeypatch):
    """Two blocks a call, or two mean service times."""
    monkeypatch.setattr(compatibility, "CHUNK", 2)
    for module, name in ((routing, "simulate_routing"), (dispatching, "simulate_dispatching")):
        monkeypatch.setattr(module, name, functools.partial(getattr(module, name), chunk=2))


@pytest.mark.parametrize("study", JOBS)
def test_stopped_after_every_checkpoint(study, small_chunks):
    wanted, each = pack(JOBS[study](Watch())), BYTES[study]
    for budgets in ((None,), (4 * each,) * 3 + (2 * each,) * 3 + (each,)):
        found, saves, starts = stopped_again_and_again(JOBS[study], budgets)
        assert pack(found) == wanted
        assert saves >= 4 and max(starts) > 0


@pytest.mark.parametrize("study", JOBS)
def test_two_processes_are_one(study, small_chunks):
    """Each does its share, and both come to the same record."""
    asked, records = [], {}

    class NeedsOtherError(Exception):
        pass

    def part(process):
        turn = iter(range(99))

        def gather(work):
            number = next(turn)
            records.setdefault((number, process), work())
            if (number, 1 - process) not in records:
                raise NeedsOtherError
            asked.append(number)
            return [records[number, p] for p in (0, 1)]

        return Watch(process=process, processes=2, gather=gather)

    wanted = pack(JOBS[study](Watch()))
    for _ in range(4):  # each goes as far as what the other one has done
        for process in (0, 1):
            try:
                found = JOBS[study](part(process))
            except NeedsOtherError:
                continue
            assert pack(found) == wanted
    assert asked and share(6, 0, 2) == (0, 3)


def test_a_case_that_runs_on_goes_on_from_its_queues(small_chunks, monkeypatch):
    """Twice and more as long, never from the start again; stopped anywhere it comes to the same."""
    monkeypatch.setattr(compatibility, "relaxation", lambda graph, load: 0.0)
    for name, value in (("CHUNK", 40), ("WARMUP", 0), ("TIME", 20), ("MOST_TIMES", 16)):
        monkeypatch.setattr(compatibility, name, value)
    spec = CASE._replace(graph=complete(2, 2), load=0.95, time=None, warmup=None)
    original, spans = compatibility._batch, []
    monkeypatch.setattr(compatibility, "_batch", lambda *a: spans.append(a[1]) or original(*a))
    wanted = run_case(spec, Watch())
    assert len(spans) > 1 and all(after.begin == before.end for before, after in itertools.pairwise(spans))
    whole = CASE._replace(graph=spec.graph, load=0.95, time=spans[-1].counted, warmup=spans[-1].dropped)
    assert run_case(whole, Watch()).arrays["occupancy"].tobytes() == wanted.arrays["occupancy"].tobytes()
    found, _, starts = stopped_again_and_again(functools.partial(run_case, spec), (None, None, BYTES["compat"]))
    assert pack(found) == pack(wanted) and len(starts) > 4
