"""The order of calls that a framework runs, each in an asyncio task of its own.

Agent frameworks start one task for each tool call of a model response, and run approvals, guardrails and hooks in it.
Such a task takes a place here, in the order of the calls, and runs its tool when the place comes up.

Rules.
    1. `CallOrder.place` takes the place and returns at once.  asyncio takes the first steps of tasks in the order in
       which the tasks were made, so a framework that makes them in call order gives places in call order, as long as
       nothing in a task waits before its place is taken.
    2. Calls of one group that have places at the same time are one batch: claims, lanes and the limit order them.
    3. The framework's own task runs the tool, inside ``async with placed:``.  Exceptions, cancels, timeouts and context
       variables are the framework's; the batch decides when the block begins, and the block's end frees what it held.
    4. A place whose block was never entered is given back when the task that took it ends: its call was refused.
    5. Calls placed inside the block of another one are a sub-batch of that call: they run within its claims.

Limits.  There is no journal here: the framework runs the tools and keeps their answers, so after a crash nothing of
these batches is resumed.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import weakref
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from types import TracebackType
from typing import Any, TypeVar

import trio

from toolrt.aio._batch import AsyncioBatch, open_batch
from toolrt.aio._guest import here
from toolrt.errors import DefinitionRefused, MisuseError
from toolrt.model import Claim, Mode, Outcome, Registry, ResultReady, State, Tool, ToolCall, ToolResult, tool
from toolrt.runtime import Runtime, ToolContext

T = TypeVar("T")

#: What a tool touches, as `toolrt.tool` takes it.
Claimed = Iterable[Claim] | Mapping[Any, Mode] | Callable[[Mapping[str, Any], State], Iterable[Claim]]

#: The call whose block this task, or the one that started it, runs in.
_INSIDE: contextvars.ContextVar[PlacedCall | None] = contextvars.ContextVar("toolrt_inside", default=None)


#: The calls of the batch that this Trio task belongs to.
_RESPONSE: contextvars.ContextVar[_ModelResponse] = contextvars.ContextVar("toolrt_response")


class CallOrder:
    """Which calls of a model response wait for which, in a framework that starts all of them at once.

    A tool that is named neither in `safe` nor in `claims` runs alone: it waits for the calls before it, and those after
    it wait for its end.  It keeps no journal: after a crash the framework goes on as it does without this.

    Args:
        safe: names of tools that touch nothing another call changes; they run at any time.
        claims: what other tools touch, by name: claims, a mode for each field of the input, or a function of input and
            state, as `toolrt.tool` takes them.
        owner: whose claim table orders the calls, such as a `toolrt.Workspace`; None: a table of its own.
        limit: how many calls of one model response run at once; None is no limit.

    Raises:
        DefinitionRefused: something here cannot work; the text says what.

    Example::

        order = toolrt.aio.CallOrder(safe=["search"], claims={"edit": {"path": toolrt.WRITE}})

        async def run_one(name, input):  # in a task of its own
            placed = order.place(name, input)
            async with placed:
                return await TOOLS[name](**input)
    """

    def __init__(
        self,
        *,
        safe: Collection[str] = (),
        claims: Mapping[str, Claimed] | None = None,
        owner: Any = None,
        limit: int | None = 10,
    ) -> None:
        if isinstance(safe, str):
            raise DefinitionRefused("CallOrder(safe)", "a collection of tools' names", safe)
        claims = claims or {}
        if both := sorted({*safe} & {*claims}):
            raise DefinitionRefused("CallOrder(safe)", "tools without claims", f"{both[0]!r}, which claims= names too")
        self._owner = owner
        self._limit = limit
        self._tools = [self._tool(name, safe=True) for name in safe]
        self._tools += [self._tool(name, claims=what) for name, what in claims.items()]
        #: One for each event loop, because a claim table serves one of them at a time.
        self._runtimes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Runtime] = weakref.WeakKeyDictionary()
        self._open: dict[tuple[int, int, int], _ModelResponse] = {}
        #: The tasks that run batches, and what each runs.
        self._tasks: dict[asyncio.Task[None], _ModelResponse] = {}
        self._runtime()  # refuses what cannot work, before the first call

    def place(self, name: str, input: Mapping[str, Any], group: object = None, call_id: str = "") -> PlacedCall:
        """Give the running task's call the next place of its group.

        Args:
            name: the tool's.
            input: the call's; what claims are computed from.
            group: stands for the model response or the run that the call belongs to, by its identity.
            call_id: the model's name for the call.

        Raises:
            MisuseError: no asyncio event loop runs here.

        Checkpoint: never.
        """
        here()  # refuses where no loop runs
        loop = asyncio.get_running_loop()
        outer = _INSIDE.get()
        if outer is not None and not outer.runs_on(loop):
            outer = None
        key = (id(loop), id(group), id(outer))
        response = self._open.get(key)
        if response is None:
            response = self._open[key] = _ModelResponse(self, key, group, outer)
        placed = PlacedCall(response, ToolCall(call_id, name, dict(input)))
        response.add(placed)
        return placed

    def cancel(self, group: object) -> None:
        """Cancel the other calls of a group, those that run and those that wait: its run has ended.

        Checkpoint: never.
        """
        running = asyncio.current_task()
        for response in list(self._open.values()):
            if response.group is group:
                for placed in response.calls:
                    if placed._runs is not running:
                        placed._cancel()

    async def wait_idle(self) -> None:
        """Wait until no call of this event loop has a place, so that nothing of a cancelled run runs any more.

        Checkpoint: if there is something to wait for.
        """
        loop = asyncio.get_running_loop()
        while tasks := [task for task in self._tasks if task.get_loop() is loop]:
            await asyncio.wait(tasks)

    async def wait_closed(self, group: object) -> None:
        """Wait for the end of the batches of `group` in which no call has a place any more.

        A loop that ``run_until_complete`` leaves open has nothing of the group in it then.

        Checkpoint: if there is something to wait for.
        """
        if tasks := [task for task, its in self._tasks.items() if its.is_left_by(group)]:
            await asyncio.wait(tasks)

    def _conflict(self, one: ToolCall, other: ToolCall) -> bool:
        """Whether what the tools of two calls declare conflicts; a tool that declares nothing says nothing of it.

        Checkpoint: never.
        """
        registry, state = self._runtime().registry, State()
        [mine, theirs] = [
            () if tool is None else tool.claims_for(call.input, state)
            for call in (one, other)
            for tool in (registry.get(call.name),)
        ]
        return any(claim.conflicts_with(another) for claim in mine for another in theirs)

    def _tool(self, name: str, **promises: Any) -> Tool:
        made: Tool = tool(name=name, owner=self._owner, schema=None, description="", **promises)(_hold)
        return made

    def _runtime(self) -> Runtime:
        loop: Any = None
        with contextlib.suppress(RuntimeError):
            loop = asyncio.get_running_loop()
        runtime = self._runtimes.get(loop) if loop is not None else None
        if runtime is None:
            runtime = Runtime(_AnyTool(self, self._tools), limit=self._limit)
            if loop is not None:
                self._runtimes[loop] = runtime
        return runtime


class BehindApproval(MisuseError):
    """A call would have overtaken an earlier one that waits for an approval and conflicts with it; it was not run.

    Attributes:
        call: the call.
        waits: the earlier one.
    """

    def __init__(self, call: ToolCall, waits: ToolCall) -> None:
        self.call, self.waits = call, waits
        super().__init__(
            f"not run: call {waits.call_id!r} of tool {waits.name!r} comes before it, waits for an approval and "
            "touches the same; send this call again when that one has been answered"
        )


class PlacedCall:
    """A call that has its place.  The tool runs inside ``async with placed:``.  Get one from `CallOrder.place`.

    Args:
        response: the calls it stands among.
        call: what the batch is given.
    """

    def __init__(self, response: _ModelResponse, call: ToolCall) -> None:
        self.call = call
        self._response = response
        self._loop = asyncio.get_running_loop()
        #: Done when its block may begin.
        self._turn: asyncio.Future[ToolContext] = self._loop.create_future()
        self._turn.add_done_callback(_retrieved)
        #: Set when its place was given back.
        self._over = trio.Event()
        #: The task that runs the block; None: it was not entered.
        self._runs: asyncio.Task[Any] | None = None
        self._error: BaseException | None = None
        self._token: contextvars.Token[PlacedCall | None] | None = None
        #: The task that took the place.
        self.task = asyncio.current_task()
        if self.task is not None:
            self.task.add_done_callback(self._task_ended)

    def __repr__(self) -> str:
        return f"<PlacedCall {self.call.name} {self.call.call_id!r}>"

    @property
    def is_entered(self) -> bool:
        """Whether its block was entered."""
        return self._runs is not None

    @property
    def context(self) -> ToolContext:
        """The batch's context of a call whose block runs."""
        return self._turn.result()

    @property
    def is_over(self) -> bool:
        """Whether the place was given back."""
        return self._over.is_set()

    def runs_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Whether its block runs, on `loop`."""
        return self._runs is not None and not self.is_over and self._loop is loop

    async def turn(self) -> None:
        """Wait until the block may begin.  ``async with`` does it, too.

        Raises:
            asyncio.CancelledError: the task was cancelled, or the batch was; the place was given back.
            BehindApproval: it conflicts with an earlier call that waits for an approval; the place was given back.
            MisuseError: the call cannot run here, such as one inside another call whose claims do not cover it.

        Checkpoint: if the place has not come up.
        """
        if self.is_over and not self._turn.done():
            raise MisuseError(f"the place of call {self.call.call_id!r} of tool {self.call.name!r} was given back")
        try:
            await self._turn
            self._response.refuse_behind_approvals(self)
        except BaseException:
            self.give_back()
            raise

    def give_back(self, *, waits: bool = False) -> None:
        """Let later calls go on: this one ended, or does not run.  Twice is no harm.

        Args:
            waits: whether it will run later, in another group, once it is approved.  Later calls of its group whose
                claims conflict with its own are refused then, because they would overtake it.

        Checkpoint: never.
        """
        if waits:
            self._response.waiting.append(self)
        if not self.is_over:
            self._over.set()
            self._response.left()

    async def __aenter__(self) -> PlacedCall:
        """Wait until the block may begin: see `turn`.

        Raises:
            asyncio.CancelledError: the task was cancelled, or the batch was; the place was given back.
            MisuseError: the call cannot run here, or a block of this place has ended.

        Checkpoint: if the place has not come up.
        """
        self._runs = asyncio.current_task()
        await self.turn()
        if self.is_over:
            raise MisuseError(f"call {self.call.call_id!r} of tool {self.call.name!r} runs in one block only")
        self._token = _INSIDE.set(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._token is not None:
            _INSIDE.reset(self._token)
        self._error = error
        self.give_back()

    async def run(self, function: Callable[[], Awaitable[T]], *, in_thread: bool = False) -> T:
        """Run the tool in the block, and give what it gives.

        Args:
            function: runs the tool.
            in_thread: whether it awaits a thread, which no cancel ends: then a cancel is raised after its end, so that
                the call keeps its place as long as the thread works.

        Raises:
            asyncio.CancelledError: the task was cancelled; the tool has ended.
            MisuseError: the call cannot run here: see `turn`.

        Checkpoint: if the place has not come up, or as the tool does.
        """
        async with self:
            return await (_to_its_end(function()) if in_thread else function())

    async def _hold(self, ctx: ToolContext) -> None:
        """In Trio: let the block begin, and wait for its end."""
        if not self._turn.done():
            self._turn.set_result(ctx)
        bridges = here().bridges
        bridges.add(self.give_back)  # where the loop is closed, the block can end no more
        try:
            await self._over.wait()
        except trio.Cancelled:
            self._cancel()
            with trio.CancelScope(shield=True):
                await self._over.wait()
            raise
        finally:
            bridges.discard(self.give_back)
        if isinstance(self._error, Exception):
            raise self._error
        if self._error is not None:
            raise RuntimeError(f"it was ended by {type(self._error).__name__}")

    def _refuse(self, result: ToolResult) -> None:
        """Take note that the batch answered the call without letting it begin."""
        if not self._turn.done():
            self._turn.set_exception(MisuseError(result.error or f"the call was not run: {result.outcome}"))

    def _fail(self, error: BaseException) -> None:
        """Take note that there is no batch for the call."""
        if not self._turn.done():
            if isinstance(error, asyncio.CancelledError):
                self._turn.cancel()
            else:
                self._turn.set_exception(error)

    def _cancel(self) -> None:
        if not self._turn.done():
            self._turn.cancel()
        if self._runs is not None and not self.is_over:
            self._runs.cancel()

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        if self._runs is None:
            self.give_back()


class _ModelResponse:
    """The calls of one model response that have places, and their batch."""

    def __init__(self, order: CallOrder, key: tuple[int, int, int], group: object, outer: PlacedCall | None) -> None:
        self.key = key
        self._order = order
        #: Kept, so that its identity names nothing else meanwhile.
        self.group = group
        self._outer = outer
        #: By call_index.
        self.calls: list[PlacedCall] = []
        #: Those that gave their places back and wait for an approval.
        self.waiting: list[PlacedCall] = []
        self._places = 0
        self._batch: AsyncioBatch | None = None
        self._task: asyncio.Task[None] | None = None

    def add(self, placed: PlacedCall) -> None:
        """Add the next call."""
        self.calls.append(placed)
        self._places += 1
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run(), name="toolrt call order")
            self._order._tasks[self._task] = self
            self._task.add_done_callback(self._order._tasks.pop)
        elif self._batch is not None:
            self._batch.submit(placed.call)

    def left(self) -> None:
        """Take note that a call has given its place back."""
        self._places -= 1
        if self._places == 0:
            if self._batch is not None:
                self._batch.seal()
            self._close()

    def refuse_behind_approvals(self, placed: PlacedCall) -> None:
        """Refuse a call that would overtake an earlier one, which waits for an approval and conflicts with it.

        Raises:
            BehindApproval: there is such a call.
        """
        index = self.calls.index(placed) if self.waiting else 0
        for other in self.waiting:
            if self.calls.index(other) < index and self._order._conflict(other.call, placed.call):
                raise BehindApproval(placed.call, other.call)

    def is_left_by(self, group: object) -> bool:
        """Whether these are calls of `group`, and none has a place any more."""
        return self.group is group and not self._places

    def _close(self) -> None:
        if self._order._open.get(self.key) is self:
            del self._order._open[self.key]

    def _opened(self) -> AsyncioBatch:
        runtime = self._order._runtime()
        if self._outer is None:
            # The framework's run: it lives as long as the batch, so its identity is no other's meanwhile.
            return open_batch(runtime, owner=None if self.group is None else id(self.group))
        return open_batch(self._outer.context, registry=runtime.registry)

    async def _run(self) -> None:
        _RESPONSE.set(self)
        try:
            async with self._opened() as batch:
                self._batch = batch
                for placed in self.calls:
                    batch.submit(placed.call)
                if not self._places:
                    batch.seal()
                async for update in batch:
                    if isinstance(update, ResultReady) and update.result.outcome is not Outcome.OK:
                        self.calls[update.result.call_index]._refuse(update.result)
        except BaseException as error:  # noqa: ASYNC103  an exception of the batch is raised in the calls' own tasks
            for placed in self.calls:
                placed._fail(error)
            if not isinstance(error, Exception):
                raise
        finally:
            self._close()


async def _hold(ctx: ToolContext, /, **input: Any) -> None:
    """The batch's half of a call: let its block begin, and wait for its end."""
    await _RESPONSE.get().calls[ctx.call_index]._hold(ctx)


class _AnyTool(Registry):
    """Tools with promises, and for every other name one without: frameworks add tools while they run."""

    def __init__(self, order: CallOrder, tools: Iterable[Tool]) -> None:
        super().__init__(tools)
        self._order = order

    def get(self, name: object) -> Tool | None:
        found = super().get(name)
        if found is None and isinstance(name, str) and name:
            found = self._tools[name] = self._order._tool(name)
        return found


async def _to_its_end(running: Awaitable[T]) -> T:
    """Await what no cancel ends; a cancel is raised after its end."""
    task = asyncio.ensure_future(running)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        while not task.done():
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.wait([task])  # noqa: ASYNC102  a further cancel waits, too
        raise


def _retrieved(turn: asyncio.Future[ToolContext]) -> None:
    """Keep asyncio from reporting an exception of a call whose task has ended before."""
    if not turn.cancelled():
        turn.exception()
