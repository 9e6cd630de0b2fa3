"""Trio tasks that await asyncio: tools, approvals and hooks that are written for asyncio.

Rules.
    1. The asyncio function runs as a task of the caller's loop, in the context of the Trio task that awaits it.
    2. A cancel of the Trio task, also by a timeout, cancels the asyncio task, and the Trio task waits for its end.  One
       that returns all the same has returned.
    3. What it raises comes out as it is.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Coroutine, Generator
from types import coroutine
from typing import Any, Generic, TypeVar, cast

import outcome
import trio

from toolrt.aio._guest import Guest, here
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.model import Tool
from toolrt.model import tool as trio_tool
from toolrt.model._callable import set_bridge
from toolrt.runtime import Runtime
from toolrt.runtime._caller import RUNNING_CALL

T = TypeVar("T")


def on_loop(function: Callable[..., Coroutine[Any, Any, T]]) -> Callable[..., Coroutine[Any, Any, T]]:
    """Make a Trio function of an asyncio one: awaited in a batch, it runs on the event loop that awaits the batch.

    Raises:
        DefinitionRefused: `function` is no ``async def`` function.

    Example::

        @toolrt.aio.on_loop
        async def ask_person(request): ...
    """
    if not inspect.iscoroutinefunction(function):
        raise DefinitionRefused("toolrt.aio.on_loop", "an async def function", function)

    @functools.wraps(function)
    async def bridged(*args: Any, **named: Any) -> T:
        call = RUNNING_CALL.get()
        if call is not None and getattr(call.tool, "function", None) is not bridged:
            call = None  # a check or a hook asks for it
        if call is not None and call.saw is None:
            call.has_begun = False

        def begun() -> None:
            if call is not None:
                call.has_begun = True
                if call.tell_start is not None:
                    call.tell_start()

        async def run() -> T:
            begun()
            return await function(*args, **named)

        if getattr(call and call.tool, "interrupt", None) == "finish":
            begun()  # no cancel keeps it from its first line

        guest = _guest_of_batch()
        return await _ended(guest, lambda: guest.loop.create_task(run()))

    bridged.begins_later = True  # type: ignore[attr-defined]
    return bridged


def tool(function: Callable[..., Any] | None = None, /, **options: Any) -> Any:
    """Make a tool of an ``async def`` function that awaits asyncio: see `toolrt.tool`, which takes the same options.

    It runs as a task of the event loop that awaits the batch.  A timeout or a cancel of its call cancels that task.

    Raises:
        DefinitionRefused: `function` is no ``async def`` function.

    Example::

        @toolrt.aio.tool(safe=True)
        async def fetch(ctx, url: str) -> str:
            async with aiohttp.ClientSession() as session, session.get(url) as answer:
                return await answer.text()
    """

    def made(function: Callable[..., Any]) -> Tool:
        if not inspect.iscoroutinefunction(function):
            raise DefinitionRefused(
                "toolrt.aio.tool", "an async def function; for a plain def use toolrt.tool", function
            )
        found: Tool = trio_tool(**options)(on_loop(function))
        return found

    return made if function is None else made(function)


def for_asyncio(runtime: Runtime) -> Runtime:
    """The same runtime, whose approval check and hooks may await Trio or asyncio."""
    return runtime.awaiting(either)


def either(function: Callable[..., Any]) -> Callable[..., Any]:
    """What `function` gives; an awaitable in it may await Trio or asyncio."""

    @functools.wraps(function)
    def asked(*args: Any, **named: Any) -> Any:
        answer = function(*args, **named)
        return _LateAnswer(answer) if inspect.isawaitable(answer) else answer

    of_lane = getattr(function, "for_lane", None)
    if of_lane is not None:
        asked.for_lane = lambda: either(of_lane())  # type: ignore[attr-defined]
    return asked


async def either_awaited(function: Callable[..., Awaitable[T]], /, *args: Any, **named: Any) -> T:
    """What `function` gives; it awaits Trio, or asyncio where asyncio awaits the batch."""
    asked = function if asyncio._get_running_loop() is None else either(function)
    found: T = await asked(*args, **named)
    return found


set_bridge(either_awaited)


def _guest_of_batch() -> Guest:
    """The guest in which the running Trio task runs."""
    try:
        return here()
    except MisuseError:
        raise MisuseError(
            "an asyncio tool runs only in a batch that asyncio awaits: use `await toolrt.aio.run(runtime, calls)`"
        ) from None


@trio.lowlevel.enable_ki_protection
async def _ended(guest: Guest, make: Callable[[], asyncio.Task[T]]) -> T:
    """Wait, in Trio, for the asyncio task that `make` makes, and give what the task gives.

    A loop with a task factory makes it, outside of Trio's tick: an eager task takes its first step there, and what
    looks for the library that runs it, as anyio does, finds asyncio.

    Raises:
        trio.Cancelled: the Trio task was cancelled, and the asyncio task has ended by it, or was not made.
        MisuseError: the loop was closed while the task ran.

    Checkpoint: always.
    """
    wait: _TaskWait[T] = _TaskWait(guest, make)
    guest.bridges.add(wait.let_go)
    if guest.loop.get_task_factory() is None:
        wait.begin()
    else:
        guest.loop.call_soon(wait.begin)
    await trio.lowlevel.wait_task_rescheduled(wait.abort)
    task: Any = wait.task
    if wait.raise_cancel is not None and task.cancelled():
        wait.raise_cancel()
    result: T = task.result()
    return result


class _TaskWait(Generic[T]):
    """A Trio task that waits for an asyncio task.

    No circle of references is left of one, so that neither task waits for the garbage collector.
    """

    __slots__ = ("_guest", "_make", "_waits", "raise_cancel", "task")

    def __init__(self, guest: Guest, make: Callable[[], asyncio.Task[T]]) -> None:
        self._guest = guest
        self._make = make
        self._waits = trio.lowlevel.current_task()
        #: The asyncio task; None: it is not made.
        self.task: asyncio.Task[T] | None = None
        #: Raises the cancel of the Trio task; None: it is not cancelled.
        self.raise_cancel: Callable[[], Any] | None = None

    def begin(self) -> None:
        """Make the asyncio task, unless the Trio task waits no more."""
        if self.let_go in self._guest.bridges:
            try:
                self.task = self._make()
            except BaseException as error:  # noqa: ASYNC103  the Trio task raises it
                self._go_on(outcome.Error(error))
            else:
                self.task.add_done_callback(self._ended)

    def let_go(self) -> None:
        """Let the Trio task go on: the loop has been closed, and the asyncio task can end no more."""
        self._go_on(outcome.Error(MisuseError("the asyncio event loop was closed while this tool ran on it")))

    def abort(self, raise_cancel: Callable[[], Any]) -> trio.lowlevel.Abort:
        """Cancel the asyncio task; the Trio task goes on when that one has ended."""
        if self._guest.is_orphan or self.task is None:  # the asyncio task can end no more, or is not made
            self._guest.bridges.discard(self.let_go)
            return trio.lowlevel.Abort.SUCCEEDED
        self.raise_cancel = raise_cancel
        self.task.cancel()
        return trio.lowlevel.Abort.FAILED

    def _ended(self, _: asyncio.Task[T]) -> None:
        self._go_on(outcome.Value(None))

    def _go_on(self, result: outcome.Outcome[None]) -> None:
        bridges = self._guest.bridges
        if self.let_go in bridges:
            bridges.remove(self.let_go)
            self._guest.wake()
            trio.lowlevel.reschedule(self._waits, result)


class _Rest:
    """The rest of a coroutine, for an asyncio task; its first step was made in a Trio task."""

    def __init__(self, inner: Coroutine[Any, Any, Any]) -> None:
        self._inner = inner
        #: What the first step waits for.
        self.first: list[Any] = []
        self.is_trio = False

    def send(self, value: Any) -> Any:
        if self.is_trio:
            raise StopIteration
        return self.first.pop() if self.first else self._inner.send(value)

    def throw(self, *error: Any) -> Any:
        if self.is_trio:
            raise StopIteration
        self.first.clear()
        return self._inner.throw(*error)

    def close(self) -> None:
        if not self.is_trio:
            self._inner.close()


# asyncio steps whatever is a coroutine by its type; only a task steps this one, and no code awaits it.
Coroutine.register(_Rest)


async def _either(inner: Coroutine[Any, Any, Any]) -> Any:
    """Await `inner` in a Trio task; what its first step waits for tells whether it awaits Trio or asyncio."""
    guest = _guest_of_batch()
    rest = _Rest(inner)
    task: asyncio.Task[Any] = asyncio.Task(cast(Any, rest), loop=guest.loop)
    asyncio._enter_task(guest.loop, task)
    try:
        first = inner.send(None)
    except StopIteration as stop:
        rest.is_trio = True
        return stop.value
    except BaseException:
        rest.is_trio = True
        raise
    finally:
        asyncio._leave_task(guest.loop, task)
    if first is None or hasattr(first, "_asyncio_future_blocking"):
        rest.first.append(first)
        return await _ended(guest, lambda: task)
    rest.is_trio = True
    return await _go_on(inner, first)


@coroutine
def _go_on(inner: Coroutine[Any, Any, Any], trap: Any) -> Generator[Any, Any, Any]:
    """Await the rest of a coroutine that waits for Trio's `trap`."""
    while True:
        try:
            try:
                value = yield trap
            except BaseException as error:  # noqa: ASYNC103  it goes into the coroutine
                trap = inner.throw(error)
            else:
                trap = inner.send(value)
        except StopIteration as stop:
            return stop.value


class _LateAnswer:
    """What a check answers later; it may be closed and never awaited."""

    def __init__(self, awaitable: Awaitable[Any]) -> None:
        self._awaitable = awaitable

    def __await__(self) -> Generator[Any, Any, Any]:
        return _either(_wrapped(self._awaitable)).__await__()

    def close(self) -> None:
        """Close what would be awaited."""
        close = getattr(self._awaitable, "close", None)
        if close is not None:
            close()


async def _wrapped(awaitable: Awaitable[Any]) -> Any:
    return await awaitable
