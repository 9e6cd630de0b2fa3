"""Runs the parts of an exploration on a `concurrent.futures.Executor`, or on a cluster of `dask.distributed`.

Rules.  `ExecutorPool` answers as `WorkerPool` does, so a divided exploration does not know where its parts run.  An
order is one task of the executor.  A worker process makes its bench at its first order and keeps it; a bench does one
order at a time, also where the process has several threads.

A part whose worker was lost is run again, so that it is begun three times at most: the pool keeps every order until its
answer is here, and a part that was half done left nothing behind.  When a `ProcessPoolExecutor` lost a process, it
takes no more work, so the pool goes on with a new one like it, and shuts that down at its end.

Programs reach a worker by their import path (pickle); for a cluster, and for what has no import path, by value
(cloudpickle, which dask brings).  A worker refuses a program that it cannot load, and one from another version of
toolrt, Trio or Python: the same choices must lead to the same schedule there.

No word reaches a remote worker while it works.  So an order says how long to work, in wall seconds: little while
workers are idle, more when all have something to do, and the more workers there are the more, because each part costs
the master time.

Limits.  A `ThreadPoolExecutor` gains nothing but tests: one thread of a process simulates at a time.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import (
    FIRST_COMPLETED,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
    wait,
)
from importlib.metadata import version
from typing import Any, Protocol, TypeAlias, runtime_checkable

import attrs
import trio

from toolrt._plain import counted
from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.sim.exploring._workers import (
    KEEP_ON,
    OTHERS_WAIT,
    TRIES,
    BenchMaker,
    ExplorationBench,
    OrderRunner,
    WorkerPool,
)

# Wall seconds that an order takes: at first and while workers are idle; at most, with few workers; for each worker
# there is, where that is more (a part costs the master up to 0.016 s); and with any number of workers.
_SHORT, _LONG, _EACH, _LONGEST = 0.02, 0.5, 0.02, 5.0

# Wall seconds between two looks at how many workers a cluster has.
_COUNT_EVERY = 2.0

# A program of at most so many bytes goes along with each order; a larger one is sent to a worker that asks for it.
_SMALL = 16_384

# A worker process keeps the benches of so many campaigns.
_BENCHES_KEPT = 4


@runtime_checkable
class ClusterClient(Protocol):
    """What is used of a `dask.distributed.Client`."""

    def get_executor(self, **options: Any) -> Executor:
        """Give an executor whose tasks run on the cluster."""

    def ncores(self) -> Mapping[str, int]:
        """Give each worker's address, and how many threads it has."""

    def close(self) -> object:
        """End the connection."""


#: A number of processes, an executor, or a client of a cluster.
JobsArgument: TypeAlias = "int | Executor | ClusterClient"


def checked_workers(jobs: object) -> JobsArgument:
    """Give `jobs` as it is.

    Raises:
        DefinitionRefused: it is neither a number, an executor, nor a synchronous client of a cluster.
    """
    if isinstance(jobs, int) and not isinstance(jobs, bool) and jobs >= 1:
        return jobs
    is_client = isinstance(jobs, ClusterClient) and not isinstance(jobs, type)
    if isinstance(jobs, Executor) or (is_client and not getattr(jobs, "asynchronous", False)):
        return jobs  # type: ignore[return-value]
    expected = "a number of processes, 1 or more, an Executor, or a dask.distributed Client that is not asynchronous"
    raise DefinitionRefused("jobs", expected, jobs)


def cluster_at(address: str, seconds: float = 10.0) -> ClusterClient:
    """Connect to the scheduler of a cluster, such as ``tcp://10.0.0.1:8786``; the caller closes the client.

    Args:
        address: of the scheduler.
        seconds: how long to wait for it, in wall seconds.

    Raises:
        MissingExtra: the extra ``cluster`` is not installed.
        DefinitionRefused: no scheduler answers there.
    """
    try:
        from distributed import Client
    except ImportError:
        raise MissingExtra("a cluster", "cluster") from None
    try:
        client: ClusterClient = Client(address, timeout=seconds, set_as_default=False)
    except (OSError, ValueError, RuntimeError) as error:
        raise DefinitionRefused(
            "cluster", "the address of a dask scheduler, such as tcp://10.0.0.1:8786", error
        ) from None
    return client


def workers_of(
    jobs: JobsArgument, task: Any, first: int, bench: BenchMaker = ExplorationBench
) -> WorkerPool | ExecutorPool:
    """Give the workers that `jobs` stands for; see `WorkerPool`, whose arguments these are."""
    if isinstance(jobs, int):
        return WorkerPool(task, jobs, first, bench)
    return ExecutorPool(jobs, task, bench)


@attrs.define
class _Sent:
    """An order whose answer is not here yet."""

    worker: int
    #: The order, pickled when it was given: the whole search goes on changing it.
    order: bytes
    #: How many workers have taken it.
    tries: int = 1
    #: Whether its worker has asked for the program.
    is_asked_for: bool = False


@attrs.frozen
class _NotLoaded:
    """A worker could not load the program; an empty text asks for it."""

    why: str


class ExecutorPool:
    """The workers of an executor or a cluster; the numbers of its workers are places in a queue, not processes.

    Args:
        jobs: the executor, or the client of the cluster; neither is shut down.
        task: what every order is of.
        bench: makes the `OrderRunner` in a worker, as for `WorkerPool`.

    Raises:
        DefinitionRefused: the task cannot be sent.
    """

    def __init__(self, jobs: Executor | ClusterClient, task: Any, bench: BenchMaker) -> None:
        self._client = None if isinstance(jobs, Executor) else jobs
        self._executor = jobs if isinstance(jobs, Executor) else jobs.get_executor(pure=False)
        # The executor that took the place of one that broke.
        self._own: Executor | None = None
        self._name = os.urandom(8).hex()
        self._seconds = _SHORT
        self._sent: dict[Future[Any], _Sent] = {}
        self._stopped = False
        if type(self._executor) is ThreadPoolExecutor:
            # It has the program already.
            self._payload = b""
            _keep(self._name, _Bench(bench, task))
        else:
            self._payload = _payload(bench, task, by_value=self._client is not None)
        #: The workers that have nothing to do.
        self.idle: list[int] = []
        # The number of the next worker, and when the workers were counted last.
        self._next = 0
        self._counted = 0.0
        self._count()

    def give(self, worker: int, order: Any) -> None:
        """Let an idle worker do it."""
        self.idle.remove(worker)
        self._submit(_Sent(worker, pickle.dumps(order)))
        longest = min(_LONGEST, max(_LONG, _EACH * (len(self._sent) + len(self.idle))))
        self._seconds = min(longest, self._seconds * 1.25)

    def answers(self, seconds: float) -> Iterator[tuple[int, Any]]:
        """Wait for some answers, at most so long; a text says how a part was lost that is not run again."""
        done, _ = wait(self._sent, max(0.0, seconds), FIRST_COMPLETED)
        for future in done:
            sent = self._sent.pop(future)
            error = CancelledError() if future.cancelled() else future.exception()
            if error is None:
                answer = future.result()
            elif sent.tries < TRIES and not self._stopped:
                sent.tries += 1
                self._submit(sent, after=error)
                continue
            else:
                answer = f"its worker was lost {counted(sent.tries, 'time')}: {type(error).__name__}: {error}"[:300]
            if isinstance(answer, _NotLoaded):
                if answer.why:
                    raise _refused(answer.why)
                sent.is_asked_for = True
                self._submit(sent)
                continue
            self.idle.append(sent.worker)
            yield sent.worker, answer
        if self._client is not None and time.perf_counter() - self._counted > _COUNT_EVERY:
            self._count()

    def hurry(self, workers: list[int]) -> None:
        """Let the next orders take less time: others wait for something to do."""
        self._seconds = max(_SHORT, self._seconds / 2)

    def stop(self) -> None:
        """Run no lost part again; all answer in the time of their orders, or after the execution that they are in."""
        self._stopped = True

    def close(self) -> None:
        """Forget what is under way, and shut down what the pool has made."""
        self.stop()
        for future in self._sent:
            future.cancel()
        if not self._payload:
            # A thread of this process would go on simulating.
            wait(self._sent)
        self._sent.clear()
        _benches.pop(self._name, None)
        if self._own is not None:
            self._own.shutdown(wait=True, cancel_futures=True)
        if self._client is not None:
            self._executor.shutdown(wait=False)

    def _submit(self, sent: _Sent, after: BaseException | None = None) -> None:
        if isinstance(after, BrokenExecutor):
            self._mend()
        try:
            payload = self._payload if sent.is_asked_for or len(self._payload) <= _SMALL else b""
            future = self._executor.submit(do_order, self._name, payload, sent.order, self._seconds)
        except BrokenExecutor as error:
            self._mend()
            future = Future()
            future.set_exception(error)
        self._sent[future] = sent

    def _mend(self) -> None:
        """Go on with a new executor where one of processes lost one of them; another one is as it is."""
        broken = self._executor
        if type(broken) is not ProcessPoolExecutor or not getattr(broken, "_broken", True):
            return
        # These arguments are kept under private names only; without them the defaults serve.
        names = {"max_workers": "_max_workers", "mp_context": "_mp_context"}
        names |= {"initializer": "_initializer", "initargs": "_initargs"}
        given = {name: getattr(broken, own) for name, own in names.items() if hasattr(broken, own)}
        if self._own is not None:
            self._own.shutdown(wait=False)
        self._executor = self._own = ProcessPoolExecutor(**given)

    def _count(self) -> None:
        """Take as many workers as there are now."""
        self._counted = time.perf_counter()
        if self._client is not None:
            size = len(self._client.ncores())
        else:
            size = getattr(self._executor, "_max_workers", None) or os.cpu_count() or 1
        # Where a cluster has no worker, one order waits for the first that comes.
        idle = max(0, max(1, size) - len(self._sent))
        new = range(self._next, self._next + idle - len(self.idle))
        self._next += len(new)
        self.idle = [*self.idle[:idle], *new]


# ---------------------------------------------------------------- in a worker


class _Bench:
    """One campaign in one process."""

    def __init__(self, bench: BenchMaker, task: Any) -> None:
        self._turn = threading.Lock()
        self._until = 0.0
        # Outcomes are numbered by bench, so no two benches of a campaign may have one number.
        self._runner: OrderRunner = bench(task, int.from_bytes(os.urandom(7)), self._told)

    def do(self, order: bytes, seconds: float) -> Any:
        with self._turn:
            self._until = time.perf_counter() + seconds
            return self._runner.do(pickle.loads(order))

    def _told(self) -> int:
        return KEEP_ON if time.perf_counter() < self._until else OTHERS_WAIT


_benches: dict[str, _Bench] = {}


def _keep(name: str, bench: _Bench) -> _Bench:
    while len(_benches) >= _BENCHES_KEPT:
        _benches.pop(next(iter(_benches)), None)
    _benches[name] = bench
    return bench


def do_order(name: str, payload: bytes, order: bytes, seconds: float) -> Any:
    """Do one order in a worker: the task of the executor.  A text or `_NotLoaded` says why it was not done."""
    if multiprocessing.parent_process() is not None and threading.current_thread() is threading.main_thread():
        # The master answers Ctrl-C, and is told what was done until then.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    bench = _benches.get(name)
    if bench is None:
        if not payload:
            return _NotLoaded("")
        try:
            theirs, pickled = pickle.loads(payload)
            if theirs != _versions():
                return _NotLoaded(f"a worker with {_versions()}, for a program sent with {theirs}")
            bench = _keep(name, _Bench(*pickle.loads(pickled)))
        except Exception as error:
            return _NotLoaded(f"{type(error).__name__}: {error}"[:300])
    try:
        return bench.do(order, seconds)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:300]


# ---------------------------------------------------------------- what is sent


def _versions() -> str:
    python = ".".join(map(str, sys.version_info[:2]))
    return f"toolrt {version('toolrt')}, trio {trio.__version__}, Python {python}"


def _payload(bench: BenchMaker, task: Any, by_value: bool) -> bytes:
    """Pickle what a worker needs; what has no import path, by value where cloudpickle is there."""
    try:
        if by_value:
            raise pickle.PicklingError
        pickled = pickle.dumps((bench, task))
    except Exception as error:
        try:
            import cloudpickle
        except ImportError:
            raise _refused(f"{type(error).__name__}: {error}"[:300]) from error
        try:
            pickled = cloudpickle.dumps((bench, task))
        except Exception as second:
            raise _refused(f"{type(second).__name__}: {second}"[:300]) from second
    return pickle.dumps((_versions(), pickled))


def _refused(why: str) -> DefinitionRefused:
    expected = (
        "a program and a check that reach the workers: functions of a module that the workers can import, or, with "
        'the "cluster" extra, of what cloudpickle can send'
    )
    return DefinitionRefused("jobs", expected, why)
