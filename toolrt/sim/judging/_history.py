"""Records the concurrent operations on an object: which task called what, when it returned, and with what.

Rules.  A position is the number of calls and returns that were recorded before; Trio runs one task at a time, so
positions are exact and no clock is asked.  An operation that was cancelled, or that never returned, may have taken
effect or not; its cancel was seen when `trio.Cancelled` came out of it, which counts as a return.  An
operation that waited when nothing could run any more is *stuck*.

Two histories are equal when each task did the same operations with the same results, and the same returns came before
the same calls: then no judge tells them apart.  So an exploration counts histories as outcomes, and a reduction keeps
them apart: a call reads the history and a return writes it, as far as an explorer that swaps steps can see.

Limits.  Arguments and results that are lists, dicts, sets or deques are copied when they are recorded; other objects
are shared, so do not change them afterwards.
"""

# The codes in "noqa" are those of flake8-async, which ruff does not know.
# ruff: noqa: RUF100, RUF102

from __future__ import annotations

import inspect
import threading
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterator, Mapping
from enum import StrEnum
from itertools import count
from math import inf
from typing import Any, TypeVar

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, errors_in
from toolrt.sim.engine._host import current_scheduler
from toolrt.trace import stable_text

T = TypeVar("T")

# Virtual seconds after which what still waits is stuck: time moves only when nothing can run.
_STUCK_AFTER = 1e9

_numbers = count()


class OperationEnd(StrEnum):
    """How an operation ended."""

    #: It returned `Operation.result`.
    RETURNED = "returned"
    #: It raised `Operation.error`.
    RAISED = "raised"
    #: It was cancelled: it may have taken effect or not, until its cancel was seen (`Operation.returned`).
    CANCELLED = "cancelled"
    #: It waited when nothing could run any more.
    STUCK = "stuck"
    #: It has not ended: it may have taken effect or not.
    PENDING = "pending"


@attrs.frozen
class Operation:
    """One call of a method, from the call to the return."""

    #: The method's name.
    name: str
    #: What it was called with.
    args: tuple[Any, ...] = attrs.field(default=(), converter=tuple)
    #: What it returned; None unless `ended` is `RETURNED`.
    result: Any = None
    #: The task that called it.
    task: str = ""
    #: The position of the call, 0 or more.
    called: int = 0
    #: The position of the return, or of the moment its cancel was seen; None: it did neither, or nothing says when.
    returned: int | None = None
    #: What it raised; None unless `ended` is `RAISED`.
    error: BaseException | None = attrs.field(default=None, eq=False)
    #: How it ended.
    ended: OperationEnd = attrs.field(default=OperationEnd.RETURNED, converter=OperationEnd)
    #: What it was called with by name.
    kwargs: Mapping[str, Any] = attrs.field(factory=dict, converter=dict)

    @property
    def has_answered(self) -> bool:
        """True when it returned or raised: only then it must be explained."""
        return self.ended in (OperationEnd.RETURNED, OperationEnd.RAISED)

    @property
    def call(self) -> str:
        """The call as code: ``put(1, wait=True)``."""
        given = [*map(stable_text, self.args), *(f"{name}={stable_text(value)}" for name, value in self.kwargs.items())]
        return f"{self.name}({', '.join(given)})"

    @property
    def answer(self) -> str:
        """What came of it, in words."""
        if self.ended is OperationEnd.RETURNED:
            return stable_text(self.result)
        return type(self.error).__name__ if self.ended is OperationEnd.RAISED else self.ended.value

    def __str__(self) -> str:
        return f"{self.call} -> {self.answer}"


class OperationHistory:
    """The operations on one object, in the order they were called; ``toolrt.sim.History``.

    Make one for each execution, call the object through it, and return it: judges take it as it is.  In its text "then"
    stands before an operation that was called when all before it had returned, and ";" before one that overlaps.

    Example:
        >>> import trio
        >>> from toolrt import sim
        >>> async def program():
        ...     history, lock = sim.History(), trio.Lock()
        ...     await history.call(lock.acquire)
        ...     history.now(lock.release)
        ...     return history
        >>> print(sim.run(program).value)
        main: acquire() -> None then main: release() -> None
    """

    def __init__(self) -> None:
        self._operations: list[Operation] = []
        self._position = 0
        self._tasks: dict[Any, str] = {}
        self._stuck_at = inf
        scheduler = current_scheduler()
        made_by = scheduler.roster.name_thing() if scheduler is not None else None
        self._resource = ("history", *(made_by or ("outside", next(_numbers))))

    @property
    def operations(self) -> tuple[Operation, ...]:
        """All operations by call; one that has not ended is PENDING."""
        return tuple(self._operations)

    async def call(self, method: Callable[..., Awaitable[T]], /, *args: Any, **kwargs: Any) -> T:
        """Await ``method(*args, **kwargs)``, record it under its name, and give what it returns.

        What it raises is recorded and raised as it is.

        Checkpoint: as the method does.
        """
        place = self._begin(_name_of(method), args, kwargs)
        try:
            result = await method(*args, **kwargs)
        except BaseException as error:  # noqa: ASYNC103
            self._fail(place, error)
            raise
        self._end(place, OperationEnd.RETURNED, result=_kept(result))
        return result

    def now(self, method: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
        """Call ``method(*args, **kwargs)``, which is sync, record it under its name, and give what it returns.

        What it raises is recorded and raised as it is.

        Checkpoint: never.
        """
        place = self._begin(_name_of(method), args, kwargs)
        try:
            result = method(*args, **kwargs)
        except BaseException as error:
            self._fail(place, error)
            raise
        self._end(place, OperationEnd.RETURNED, result=_kept(result))
        return result

    async def run(self, *tasks: Callable[[], Awaitable[object]]) -> None:
        """Run each of `tasks`, async functions without arguments, in a task of its own, and wait for all.

        In a simulation it also returns when nothing can run any more and no deadline is pending: what waits then is
        cancelled and recorded as stuck, and a judge asks whether it had to wait.  Under ``clock="explored"``, where
        time may move while tasks can run, this is a deadlock as everywhere else.

        Checkpoint: always.
        """
        scheduler = current_scheduler()
        extra = None if scheduler is None else scheduler.record.extra
        is_timed = extra is not None and extra.moves_left > 0
        limit = inf if scheduler is None or is_timed else _STUCK_AFTER
        with trio.move_on_after(limit) as scope:
            self._stuck_at = scope.deadline
            async with trio.open_nursery() as nursery:
                for task in tasks:
                    nursery.start_soon(task)

    def _begin(self, name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
        self._touch(write=False)
        place = len(self._operations)
        self._operations.append(
            Operation(
                name,
                tuple(map(_kept, args)),
                task=self._task(),
                called=self._position,
                ended=OperationEnd.PENDING,
                kwargs={key: _kept(value) for key, value in kwargs.items()},
            )
        )
        self._position += 1
        return place

    def _end(self, place: int, ended: OperationEnd, **found: Any) -> None:
        self._touch(write=True)
        if ended is not OperationEnd.STUCK:
            found["returned"] = self._position
        self._position += 1
        self._operations[place] = attrs.evolve(self._operations[place], ended=ended, **found)

    def _fail(self, place: int, error: BaseException) -> None:
        """Record what an operation raised; what is no Exception says nothing of the object, and leaves it pending."""
        if all(isinstance(one, trio.Cancelled) for one in errors_in(error)):
            is_stuck = self._stuck_at < inf and trio.current_time() >= self._stuck_at
            self._end(place, OperationEnd.STUCK if is_stuck else OperationEnd.CANCELLED)
        elif isinstance(error, Exception):
            self._end(place, OperationEnd.RAISED, error=error)

    def _touch(self, *, write: bool) -> None:
        # Implied, not an access of the step's own: a step that reports nothing else may still have done anything.
        if probe.implied is not None:
            probe.implied(self._resource, write)

    def _task(self) -> str:
        try:
            task: Any = trio.lowlevel.current_task()
        except RuntimeError:
            return threading.current_thread().name
        scheduler = current_scheduler()
        actor = scheduler.roster.actors.get(task) if scheduler is not None else None
        if actor is not None:
            return actor.name
        return self._tasks.setdefault(task, f"{task.name.rpartition('.')[2]}-{len(self._tasks)}")

    def _told(self) -> tuple[str, ...]:
        """Give what a judge can tell: the operations of each task, and how many returns of each came before."""
        events = [(operation.called, operation) for operation in self._operations]
        events += [(operation.returned, operation) for operation in self._operations if operation.returned is not None]
        before: Counter[str] = Counter()
        told = []
        for position, operation in sorted(events, key=lambda event: event[0]):
            if position == operation.called:
                told.append(f"{operation.task}: {operation} after {sorted(before.items())}")
            else:
                before[operation.task] += 1
        return tuple(sorted(told))

    def __eq__(self, other: object) -> bool:
        return self._told() == other._told() if isinstance(other, OperationHistory) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._told())

    def __len__(self) -> int:
        return len(self._operations)

    def __iter__(self) -> Iterator[Operation]:
        return iter(self.operations)

    def __str__(self) -> str:
        parts: list[str] = []
        # The last return so far: what is called later comes after all before it.
        last = -1.0
        for operation in self._operations:
            if parts:
                parts.append(" then " if last < operation.called else "; ")
            parts.append(f"{operation.task}: {operation}")
            last = max(last, inf if operation.returned is None else operation.returned)
        return "".join(parts)

    def __repr__(self) -> str:
        return f"<History {self}>"


class RecordedSubject:
    """An object whose method calls go into a history; see `recorded`."""

    def __init__(self, subject: Any, history: OperationHistory) -> None:
        self.__dict__.update(_subject=subject, _history=history)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._subject, name)
        if not callable(value):
            return value
        history: OperationHistory = self._history
        if inspect.iscoroutinefunction(value):

            async def call(*args: Any, **kwargs: Any) -> Any:
                return await history.call(value, *args, **kwargs)

            return call

        def now(*args: Any, **kwargs: Any) -> Any:
            return history.now(value, *args, **kwargs)

        return now

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._subject, name, value)

    async def __aenter__(self) -> Any:
        """Record ``acquire()``, as `trio.Lock` and its like do it.  Checkpoint: as that does."""
        return await self.acquire()

    async def __aexit__(self, *error: object) -> None:
        """Record ``release()``.  Checkpoint: never."""
        self.release()

    def __repr__(self) -> str:
        return f"<recorded {stable_text(self._subject)}>"


def recorded(subject: Any, history: OperationHistory | None = None) -> Any:
    """Give a stand-in for `subject` whose method calls are recorded.

    An attribute that is no method is handed on unrecorded.  ``async with`` records ``acquire()`` and ``release()``.  A
    sync function that returns an awaitable counts as sync: call it by `OperationHistory.call`.

    Args:
        subject: any object.
        history: where its operations go; None: a new one.  A judge takes the stand-in for its history.

    Example:
        >>> from toolrt import sim
        >>> history = sim.History()
        >>> numbers = sim.recorded([3, 1], history)
        >>> numbers.pop()
        1
        >>> print(history.operations[0])
        pop() -> 1
    """
    return RecordedSubject(subject, OperationHistory() if history is None else history)


def history_behind(value: object) -> OperationHistory | None:
    """Give the history that `value` is, or records into; None: it is neither."""
    if isinstance(value, RecordedSubject):
        found: OperationHistory = value.__dict__["_history"]
        return found
    return value if isinstance(value, OperationHistory) else None


def _name_of(method: Callable[..., Any]) -> str:
    name = getattr(method, "__name__", None)
    if not isinstance(name, str):
        raise DefinitionRefused("History.call(method)", "a method or function with a name", method)
    return name


def _kept(value: Any) -> Any:
    """Give `value` with its containers copied, so that a later change of them is not in the history."""
    kind = type(value)
    if kind in (list, set, tuple, frozenset):
        return kind(map(_kept, value))
    if kind is dict:
        return {key: _kept(item) for key, item in value.items()}
    if kind is deque:
        return deque(map(_kept, value), value.maxlen)
    return value
