"""Worker processes that run the parts of an exploration, or of any divided work.

Rules.  A worker gets a part, does some of it, and answers with what that showed and with what is left; so the master
always knows all that is to be done.  A worker goes on for half a second, or until other workers are idle, or until
everything is to end.  It ignores Ctrl-C, which its master answers, and ends when its master does.

Programs reach a worker by being there already: it is forked.  Where a platform has no fork, program and check are
pickled, or refused.  With one job there is no process: the same is done in this one.

Limits.  What a program or check writes into the memory of its process stays in the worker.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import contextlib
import multiprocessing
import pickle
import signal
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection, wait
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.sim.engine._host import simulate
from toolrt.sim.engine._job import Driver
from toolrt.sim.exploring._interrupts import interrupts_held
from toolrt.sim.exploring._program import ExploredProgram
from toolrt.sim.exploring._records import LazyRecords
from toolrt.sim.exploring._repeats import Repeats
from toolrt.sim.exploring._tally import ReplayableExecution, Tally
from toolrt.sim.strategies import Redundant, Shared
from toolrt.trace import stable_text

# Wall seconds a worker goes on for, and at least, when others have nothing to do.
_LONG, _SHORT = 0.5, 0.005

#: The words that a worker may read while it works; at `KEEP_ON` it goes on until it reads another one.
GO_ON, OTHERS_WAIT, _STOP, KEEP_ON = range(4)

#: A part is begun so many times at most: its worker may be lost each time.
TRIES = 3

# Wall seconds that a worker has to end by itself before it is killed.
_PATIENCE = 2.0


@attrs.frozen
class PartOrder:
    """What a worker is to do next."""

    #: The part.
    part: Shared
    #: At most so many executions, 1 or more.
    most: int
    #: How many executions the master has counted so far: the number of the next one.
    index: int


@attrs.define
class PartAnswer:
    """The answer to an order."""

    #: What is left of the part.
    part: Shared
    #: What was shown.
    tally: Tally = attrs.Factory(Tally)
    #: The execution that the check raised an error on.
    broke: ReplayableExecution | None = None


class OrderRunner(Protocol):
    """Does orders, one after the other."""

    def do(self, order: Any) -> Any:
        """Give the answer to an order, which is no text; what is raised ends the worker."""


#: Makes an `OrderRunner` from the task, the number of the bench, and a function that reads its word.
BenchMaker = Callable[[Any, int, Callable[[], int]], OrderRunner]


class ExplorationBench:
    """Does the orders of an exploration."""

    def __init__(self, task: ExploredProgram, worker: int, told: Callable[[], int]) -> None:
        self._task = task
        self._program = task.bound()
        self._worker = worker
        self._told = told
        # The outcomes that are not plain, and their numbers.
        self._numbers: dict[Any, int] = {}
        self._repeats = Repeats()
        # A search that is divided calls no code of the user's; the master runs again what is to be shown.
        self._records = LazyRecords(task, self._program, self._repeats, is_watched=False, keeps_first=False)
        self._made = 0

    def do(self, order: PartOrder) -> PartAnswer:
        return simulate(self._doing(order))

    def _doing(self, order: PartOrder) -> Driver[PartAnswer]:
        part, task, told, records = order.part, self._task, self._told, self._records
        answer = PartAnswer(part)
        tally = answer.tally
        alone = task.check is None and part.asks_nobody
        began = time.perf_counter()
        while tally.executions < order.most:
            policy = part.policy()
            if policy is None:
                break
            index = order.index + tally.executions if part.index is None else part.index
            try:
                execution, reports = yield from records.execute(policy, index, alone, part.chance)
            except Redundant:
                continue
            repeats = self._repeats
            repeats.note(execution, execution.outcome, part.repeats)
            place = part.place(execution)
            part.learn(execution)
            try:
                judgement = records.judge(execution, reports)
            except Exception:
                answer.broke = ReplayableExecution(place, index, execution.choices, execution.chance or 0)
                break
            if repeats.is_due(self._made, len(execution.choices)):
                yield from records.repeat(execution, policy, alone, reports)
                tally.repeated += 1
            self._made += 1
            tally.note(execution, judgement, place, part.repeats, self._number)
            tally.difference = repeats.difference
            tally.caveats |= repeats.caveats
            word, spent = told(), time.perf_counter() - began
            if word == _STOP or (word != KEEP_ON and spent > (_SHORT if word == OTHERS_WAIT else _LONG)):
                break
        return answer

    def _number(self, value: Any) -> tuple[int, int]:
        return self._worker, self._numbers.setdefault(value, len(self._numbers))


class InProcessWorker:
    """One worker without a process of its own."""

    def __init__(self, task: ExploredProgram, worker: int, is_over: Callable[[], bool]) -> None:
        self._bench = ExplorationBench(task, worker, lambda: _STOP if is_over() else GO_ON)
        self._answer: tuple[int, PartAnswer | str] | None = None
        #: The workers that have nothing to do.
        self.idle = [0]

    def give(self, worker: int, order: PartOrder) -> None:
        """Do it, on a copy: a second Ctrl-C may come in the middle."""
        copy = pickle.loads(pickle.dumps(order.part))
        self._answer = worker, self._bench.do(attrs.evolve(order, part=copy))
        self.idle = []

    def answers(self, seconds: float) -> Iterator[tuple[int, PartAnswer | str]]:
        """Give its answer."""
        answer, self._answer, self.idle = self._answer, None, [0]
        if answer is not None:
            yield answer

    def hurry(self, workers: list[int]) -> None:
        """Do nothing: there is no other worker."""

    def stop(self) -> None:
        """It is not doing anything."""

    def close(self) -> None:
        """There is nothing to end."""


class WorkerPool:
    """A pool of processes; each does one order at a time.

    Args:
        task: what every order is of.
        jobs: how many processes.
        first: the number of the first.
        bench: makes the `OrderRunner` from the task, a worker's number, and a function that reads its word.
        method: how processes are started; None: by fork where there is one.

    Raises:
        DefinitionRefused: the task cannot be sent to another process, and cannot be there already.
    """

    def __init__(
        self,
        task: Any,
        jobs: int,
        first: int,
        bench: BenchMaker = ExplorationBench,
        method: str | None = None,
    ) -> None:
        if method is None:
            method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
        if method != "fork":
            _check_can_be_sent(task)
        self._context: Any = multiprocessing.get_context(method)
        #: The workers that have nothing to do.
        self.idle = list(range(jobs))
        self._words: Any = self._context.RawArray("b", jobs)
        self._connections: list[Connection] = []
        self._processes: list[Any] = []
        self._bench, self._task = bench, task
        # The number of the next bench: outcomes are numbered by bench.
        self._next = first
        # What each worker does, and how many processes have begun it.
        self._orders: dict[int, tuple[Any, int]] = {}
        self._stopped = False
        for worker in range(jobs):
            connection, process = self._started(worker)
            self._connections.append(connection)
            self._processes.append(process)

    def _started(self, worker: int) -> tuple[Connection, Any]:
        # A forked worker ignores Ctrl-C before it can see one.
        with interrupts_held():
            mine, its = self._context.Pipe()
            # Ends that a fork has copied would keep a worker from seeing that its master is gone.
            others = [*self._connections, mine] if self._context.get_start_method() == "fork" else []
            given = (its, others, self._bench, self._task, self._next, self._words, worker)
            self._next += 1
            process = self._context.Process(target=_work, args=given, daemon=True)
            process.start()
            its.close()
        return mine, process

    def give(self, worker: int, order: Any) -> None:
        """Let an idle worker do it."""
        self.idle.remove(worker)
        self._orders[worker] = order, 1
        self._send(worker, order)

    def _send(self, worker: int, order: Any) -> None:
        self._words[worker] = GO_ON
        # One that is gone is noticed when it does not answer.
        with contextlib.suppress(OSError):
            self._connections[worker].send(order)

    def _begin_again(self, worker: int) -> bool:
        """Give what a lost worker was doing to a new process in its place; False: it was given often enough."""
        order, tries = self._orders.get(worker, (None, TRIES))
        if self._stopped or tries >= TRIES:
            return False
        self._connections[worker].close()
        self._processes[worker].close()
        self._connections[worker], self._processes[worker] = self._started(worker)
        self._orders[worker] = order, tries + 1
        self._send(worker, order)
        return True

    def answers(self, seconds: float) -> Iterator[tuple[int, Any]]:
        """Wait for some answers, at most so long; a text says how a worker, which never works again, has ended."""
        connections = {
            connection: worker for worker, connection in enumerate(self._connections) if not connection.closed
        }
        for ready in wait(list(connections), max(0.0, seconds)):
            worker = connections[ready]  # type: ignore[index]
            try:
                answer = self._connections[worker].recv()
            except (EOFError, OSError):
                self._processes[worker].join(_PATIENCE)
                code = self._processes[worker].exitcode
                if code is not None and self._begin_again(worker):
                    continue
                answer = f"exit code {code}"
            if isinstance(answer, str):
                self._connections[worker].close()
                if worker in self.idle:
                    self.idle.remove(worker)
            else:
                self.idle.append(worker)
            yield worker, answer

    def hurry(self, workers: list[int]) -> None:
        """Tell these that others wait for something to do."""
        for worker in workers:
            self._words[worker] = OTHERS_WAIT

    def stop(self) -> None:
        """Tell all to answer as soon as they can; no lost part is begun again."""
        self._stopped = True
        for worker in range(len(self._words)):
            self._words[worker] = _STOP

    def close(self) -> None:
        """End all."""
        self.stop()
        for connection in self._connections:
            connection.close()
        until = time.perf_counter() + _PATIENCE
        for process in self._processes:
            process.join(max(0.0, until - time.perf_counter()))
            if process.exitcode is None:
                process.kill()
                process.join()
            process.close()


def _work(
    connection: Connection,
    others: list[Connection],
    make_bench: BenchMaker,
    task: Any,
    number: int,
    words: Any,
    worker: int,
) -> None:
    """Be a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    for other in others:
        other.close()
    bench = make_bench(task, number, lambda: int(words[worker]))
    with contextlib.suppress(EOFError, OSError):
        while True:
            order = connection.recv()
            try:
                answer = bench.do(order)
            except BaseException as error:  # noqa: ASYNC103  the master gets it, and the process ends
                connection.send(stable_text(error))
                return  # noqa: ASYNC104
            connection.send(answer)


def _check_can_be_sent(task: Any) -> None:
    try:
        pickle.dumps(task)
    except Exception as error:
        raise DefinitionRefused(
            "jobs",
            "a program and a check that can be pickled (functions of a module), as there is no fork here",
            error,
        ) from error
