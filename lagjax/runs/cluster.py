"""Jobs over Dask: each worker gets one at a time, of a kind that it has compiled where it can; killed workers' jobs run again.

The scheduler is Dask's; what is decided here is only which job a free worker takes, since compiling costs as much as several
cells. Workers return bytes; the only files they write are checkpoints, where they see the run's folder.
"""

from __future__ import annotations

import itertools
import logging
import os
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue

from lagjax.errors import InputError, RunError
from lagjax.runs.choice import choose
from lagjax.runs.folder import find_folder
from lagjax.runs.guard import check_guarded
from lagjax.runs.job import NOWHERE, Job, Watch
from lagjax.runs.record import pack, unpack
from lagjax.runs.running import ATTEMPTS, HOPELESS, Failure
from lagjax.runs.solving import saying

TOPIC = "lagjax-progress"
SOLVING = "lagjax-solving"
STARTS = 5  # times that local workers are started before it is given up
SELDOM = 0.5  # seconds between two words of one worker about how far it is
DEATHS = 10  # workers that may die under one job before it is given up: pre-emption is no fault of the job


def over_dask(jobs: Sequence[Job], folder, running, meter) -> Iterator[tuple]:
    """Yields (job, result or failure) as jobs end; see `lagjax.runs.execute`.

    Raises:
      InputError: Dask distributed is not installed, or the scheduler is not found.
      RunError: the scheduler was lost.
    """
    where = None if folder is None else (str(folder.path.resolve()), folder.run)
    waiting = list(jobs)
    attempts: Counter = Counter()
    deaths: Counter = Counter()
    taken: dict = {}  # future -> (job, worker, when)
    ended: SimpleQueue = SimpleQueue()
    numbers = itertools.count(int.from_bytes(os.urandom(6)))  # keys that no other run has
    known: dict[str, list[str]] = {}  # worker -> kinds that it has compiled, the last one first
    spent: dict[str, list[float]] = {}  # kind -> seconds of its jobs so far
    with _client(running, folder) as (client, replace_dead):
        from distributed import CancelledError

        _warm_up(client, jobs[0])
        client.subscribe_topic(TOPIC, lambda event: meter.moved(*event[1]))
        client.subscribe_topic(SOLVING, lambda event: meter.solving(*event[1]))
        while waiting or taken:
            try:
                threads = client.nthreads()
            except Exception as error:
                raise RunError(_lost(error, running)) from None
            replace_dead()
            for future in [future for future, (_, worker, _) in taken.items() if worker not in threads]:
                job, _, _ = taken.pop(future)  # its worker died
                future.cancel()
                deaths[job.name] += 1
                if deaths[job.name] < DEATHS:
                    waiting.insert(0, job)
                else:
                    yield job, Failure(f"{DEATHS} workers died under it")
            load = Counter(worker for _, worker, _ in taken.values())
            for worker in sorted(threads):
                while load[worker] < threads[worker]:
                    kinds = known.setdefault(worker, [])
                    job = choose(waiting, kinds, [job.kind for job, _, _ in taken.values()], spent)
                    if job is None:
                        break
                    waiting.remove(job)
                    kinds[:] = [job.kind, *(kind for kind in kinds if kind != job.kind)]
                    load[worker] += 1
                    meter.started(job.name)
                    future = client.submit(
                        work, job, where, running.memory, attempts[job.name] + deaths[job.name],
                        key=f"{job.name}-{next(numbers)}", pure=False, workers=[worker],
                    )  # fmt: skip
                    taken[future] = job, worker, time.monotonic()
                    future.add_done_callback(ended.put)
            if not taken:
                time.sleep(0.2)  # no worker yet
                continue
            try:
                future = ended.get(timeout=1.0)
            except Empty:
                continue
            if future not in taken:
                continue
            job, _, begun = taken.pop(future)
            try:
                result = unpack(future.result())
            except CancelledError as error:
                raise RunError(_lost(error, running)) from None
            except Exception as error:
                attempts[job.name] += 1
                if attempts[job.name] < ATTEMPTS and not isinstance(error, HOPELESS):
                    waiting.insert(0, job)
                else:
                    yield job, Failure(" ".join(f"{type(error).__name__}: {error}".split())[:500])
            else:
                spent.setdefault(job.kind, []).append(time.monotonic() - begun)
                yield job, result


def work(job: Job, where, memory: int | None, attempt: int) -> bytes:
    """Runs a job on a worker."""
    from distributed import get_worker

    worker = get_worker()
    settle(worker.name)
    said = 0.0

    def progress(done):
        nonlocal said
        now = time.monotonic()
        if now - said > SELDOM:
            said = now
            worker.log_event(TOPIC, (job.name, float(done)))

    folder = None if where is None else find_folder(Path(where[0]), where[1])
    checkpoint = NOWHERE if folder is None else folder.checkpoint(job)
    if memory is not None:
        memory //= 2**attempt  # it may have been memory
    with saying(lambda said: worker.log_event(SOLVING, (job.name, said))):
        return pack(job.run(Watch(progress=progress, checkpoint=checkpoint, memory=memory)))


def _warm_up(client, job, patience=60.0):
    """Lets the workers that are there import what they need; those that come later do it with their first job."""
    begun = time.monotonic()
    started = [client.submit(warm, job, workers=[w], key=f"warm-{w}", pure=False) for w in client.nthreads()]
    while not all(future.done() for future in started) and time.monotonic() - begun < patience:
        time.sleep(0.02)


def warm(job: Job) -> None:
    """Starts JAX on a worker, which has imported what the job needs by now."""
    import jax
    from distributed import get_worker

    settle(get_worker().name)
    jax.local_devices()


_settled: list = []


def settle(name) -> None:
    """Gives a local worker, which has a number for a name, its own core or GPU, before JAX starts there."""
    if _settled or not isinstance(name, int) or "LAGJAX_LOCAL_WORKER" not in os.environ:
        return
    _settled.append(name)
    visible = gpus()
    if visible:
        os.environ["CUDA_VISIBLE_DEVICES"] = visible[name % len(visible)]
    elif hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[name % len(cores)]})


def gpus() -> list[str]:
    """The GPUs that this process may use, as CUDA_VISIBLE_DEVICES names them, found without starting CUDA."""
    if os.environ.get("JAX_PLATFORMS", "").startswith("cpu"):
        return []
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed is not None:
        return [name for name in listed.split(",") if name.strip()]
    return [str(i) for i, _ in enumerate(Path("/proc/driver/nvidia/gpus").glob("*"))]


def check_installed() -> None:
    """Raises InputError where Dask distributed is not installed."""
    try:
        import distributed  # noqa: F401
    except ImportError:
        raise InputError("workers need Dask distributed; install it with: pip install 'lagjax[cluster]'") from None


def local_workers() -> int:
    """As many workers as this machine has GPUs, or else cores."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return len(gpus()) or cores


@contextmanager
def _client(running, folder):
    """Yields a client, and a function that replaces local workers which died while they started."""
    check_installed()
    from distributed import Client

    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    if running.scheduler is not None:
        try:
            client = Client(running.scheduler, timeout=running.patience, set_as_default=False)
        except (OSError, ValueError, TimeoutError) as error:
            said = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise InputError(
                f"--scheduler {running.scheduler}: no Dask scheduler answers ({said}); check the address"
            ) from None
        with client:
            yield client, lambda: None
        return
    check_guarded()
    with (
        tempfile.TemporaryDirectory(prefix="workers-", dir=None if folder is None else folder.path) as scratch,
        _local_cluster(running.workers, scratch) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield client, lambda: _replace_dead(cluster, running.workers)


@contextmanager
def _local_cluster(workers, scratch):
    import dask
    from distributed import LocalCluster

    settings = {
        "distributed.scheduler.allowed-failures": DEATHS,
        "distributed.worker.memory.target": False, "distributed.worker.memory.spill": False,
        "distributed.worker.memory.pause": False, "distributed.worker.memory.terminate": False,
        "distributed.deploy.lost-worker-timeout": "1 h",  # else a worker that is slow to start again is given up
    }  # fmt: skip
    environment = {"LAGJAX_LOCAL_WORKER": "1", "JAX_NUM_CPU_DEVICES": "1", "OMP_NUM_THREADS": "1"}
    with dask.config.set(settings):
        for attempt in range(STARTS):
            try:
                cluster = LocalCluster(
                    n_workers=workers, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=":0",
                    local_directory=scratch, env=environment, silence_logs=logging.CRITICAL,
                )  # fmt: skip
                break
            except RuntimeError as error:  # a worker was killed while it started
                if attempt == STARTS - 1:
                    raise RunError(f"{workers} Dask workers do not start here ({error}); run without workers") from None
        with cluster:
            yield cluster


def _replace_dead(cluster, workers):
    """Dask restarts a worker that dies, but not one that dies while it starts."""
    from distributed import Status

    over = (Status.closed, Status.failed)
    dead = [name for name, nanny in cluster.workers.items() if nanny.status in over]
    for name in dead:
        cluster.workers.pop(name, None)
        cluster.worker_spec.pop(name, None)
    if len(cluster.worker_spec) < workers:
        cluster.scale(workers)


def _lost(error, running):
    kept = "" if running.out is None else f"; what is finished is kept in {running.out}, and the same command goes on"
    return f"the Dask scheduler was lost ({type(error).__name__}: {error}){kept}"
