"""The tools of a pydantic-ai agent in the order of their calls.

Rules.
    1. A call takes its place in the first step of its task, before any hook of the agent's: pydantic-ai makes the tasks
       in call order, and this capability is the outermost.  Its tool waits for the place where the toolset is called,
       so hooks, traces, retries and deferrals are around the wait, and a tool's timeout begins behind it.
    2. A call whose toolset is never called (a hook skipped it, deferred it or failed) gives its place back.
    3. A hook that changes the arguments changes what the tool runs with, and not what the call holds: where the changed
       call would touch more, it is refused.
    4. A call that is to be approved, or runs elsewhere, ends the run, and pydantic-ai runs the other calls of its
       message before that.  A later call that conflicts with it would overtake it: it fails, and says to be sent again.
    5. A tool runs in pydantic-ai's own task: ``ModelRetry``, ``CallDeferred``, ``ApprovalRequired`` and every other
       exception come out as they are.
    6. A tool without a coroutine runs in a thread.  A cancel or a timeout cannot stop it, so the call ends, and frees
       what it holds, when the thread has ended.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
import weakref
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import trio
from pydantic_ai import Agent
from pydantic_ai.capabilities import AbstractCapability, CapabilityOrdering
from pydantic_ai.exceptions import ApprovalRequired, CallDeferred, ToolFailed
from pydantic_ai.toolsets import AbstractToolset, WrapperToolset
from pydantic_core import to_jsonable_python

from toolrt.aio import BehindApproval, CallOrder, PlacedCall
from toolrt.errors import DefinitionRefused
from toolrt.model import Registry, Tool
from toolrt.plugins._promised import Inside
from toolrt.plugins.pydantic_ai._tools import RuntimeToolset, claims_of

#: The names of tools whose calls end the run, to be approved or run elsewhere.
_DEFERRED: weakref.WeakKeyDictionary[CallOrder, set[str]] = weakref.WeakKeyDictionary()

#: The place of the call that this task runs, for each order that gave it one.
_PLACED: contextvars.ContextVar[Mapping[CallOrder, PlacedCall]] = contextvars.ContextVar("placed")


def made(
    safe: Collection[str], claims: Mapping[str, Any] | None, tools: Iterable[Tool], owner: Any, limit: int | None
) -> AbstractCapability[Any]:
    """See `toolrt.plugins.pydantic_ai.ordered_tools`."""
    registry = Registry(tools)
    if owner is None and registry.owners:
        owner = registry.owners[0]
    if any(one is not owner for one in registry.owners):
        raise DefinitionRefused("ordered_tools(tools)", "tools of one owner, such as a Workspace", registry)
    named = {tool.name: claims_of(tool) for tool in registry}
    if both := sorted({*named} & {*safe, *(claims or {})}):
        raise DefinitionRefused(
            "ordered_tools(tools)", "tools that promise for themselves", f"{both[0]!r}, named twice"
        )
    order = CallOrder(safe=safe, claims={**(claims or {}), **named}, owner=owner, limit=limit)
    return OrderedCalls(order, RuntimeToolset(registry) if len(registry) else None)


def around(
    toolset: AbstractToolset[Any],
    safe: Collection[str],
    claims: Mapping[str, Any] | None,
    owner: Any,
    limit: int | None,
) -> AbstractToolset[Any]:
    """See `toolrt.plugins.pydantic_ai.ordered_toolset`."""
    if not isinstance(toolset, AbstractToolset):
        raise DefinitionRefused("ordered_toolset(toolset)", "a toolset of pydantic-ai", toolset)
    return OrderedToolset(toolset, CallOrder(safe=safe, claims=claims, owner=owner, limit=limit))


@dataclass
class OrderedCalls(AbstractCapability[Any]):
    """Gives each call its place, and the agent a toolset that waits for it."""

    order: CallOrder
    toolset: AbstractToolset[Any] | None = None
    #: Stands for the run.
    group: object = None
    _: KW_ONLY
    id: str | None = None
    description: str | None = None
    defer_loading: bool = False

    async def for_run(self, ctx: Any) -> OrderedCalls:
        """One for this run: its calls are a group."""
        return replace(self, group=object())

    def get_ordering(self) -> CapabilityOrdering:
        """Around all other capabilities."""
        return CapabilityOrdering(position="outermost")

    def get_toolset(self) -> AbstractToolset[Any] | None:
        """The tools of the runtime's, if there are any."""
        return self.toolset

    def get_wrapper_toolset(self, toolset: AbstractToolset[Any]) -> AbstractToolset[Any]:
        """The agent's tools, each behind its place."""
        return OrderedToolset(toolset, self.order, self.group)

    async def wrap_tool_execute(self, ctx: Any, *, call: Any, tool_def: Any, args: Any, handler: Any) -> Any:
        """Take the place in the first step of the call's task."""
        deferred = _deferred_before(ctx, call.tool_call_id, _DEFERRED.get(self.order, ()))
        before = [self.order.place(name, input, self.group, call_id) for name, input, call_id in deferred]
        placed = self.order.place(tool_def.name, _plain(args), self.group, call.tool_call_id)
        for earlier in before:
            earlier.give_back(waits=True)
        token = _PLACED.set({**_PLACED.get({}), self.order: placed})
        try:
            return await handler(args)
        except (CallDeferred, ApprovalRequired):
            placed.give_back(waits=True)
            raise
        except BehindApproval as error:
            raise ToolFailed(str(error)) from None
        finally:
            _PLACED.reset(token)
            placed.give_back()


@dataclass
class OrderedToolset(WrapperToolset[Any]):
    """Waits for the place of each call, and takes one where none was taken."""

    order: CallOrder
    #: Stands for the run; None: there is none yet.
    group: object = None

    async def for_run(self, ctx: Any) -> OrderedToolset:
        """One for this run: its calls are a group."""
        wrapped = await self.wrapped.for_run(ctx)
        return OrderedToolset(wrapped, self.order, object() if self.group is None else self.group)

    async def get_tools(self, ctx: Any) -> dict[str, Any]:
        """The wrapped tools; those that are not run in this run are noted."""
        tools: dict[str, Any] = await self.wrapped.get_tools(ctx)
        deferred = {name for name, tool in tools.items() if tool.tool_def.kind in ("unapproved", "external")}
        if deferred:
            _DEFERRED.setdefault(self.order, set()).update(deferred)
        return tools

    async def __aexit__(self, *error: Any) -> bool | None:
        """Leave the wrapped toolset, and nothing of a run that has ended in its loop."""
        try:
            suppressed: bool | None = await self.wrapped.__aexit__(*error)  # noqa: ASYNC102  it is its own way out
            return suppressed
        finally:
            await self.order.wait_closed(self.group)  # noqa: ASYNC102  its calls have ended: this takes no time

    async def call_tool(self, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        """Run the tool when its place comes up."""
        input = _plain(tool_args)
        placed = _PLACED.get({}).get(self.order)
        if placed is None or placed.is_entered or placed.is_over:  # a hook runs it once more, or there is no capability
            placed = self._place(name, input, ctx)
        async with placed:
            if placed.call.input == input:
                return await self._called(placed, name, tool_args, ctx, tool)
            async with self._place(name, input, ctx) as changed:  # inside the call: it may touch no more than that
                return await self._called(changed, name, tool_args, ctx, tool)

    async def _called(self, placed: PlacedCall, name: str, tool_args: dict[str, Any], ctx: Any, tool: Any) -> Any:
        threads = WaitedThreads()
        try:
            with Inside(placed.context, trio.lowlevel.current_trio_token()), Agent.using_thread_executor(threads):
                return await self.wrapped.call_tool(name, tool_args, ctx, tool)
        finally:
            await threads.ended()  # noqa: ASYNC102  what the call holds is not free before

    def _place(self, name: str, input: dict[str, Any], ctx: Any) -> PlacedCall:
        return self.order.place(name, input, self.group, ctx.tool_call_id or "")


def _deferred_before(ctx: Any, call_id: str, names: Collection[str]) -> Iterator[tuple[str, dict[str, Any], str]]:
    """The calls of the message before `call_id` that this run does not run: name, input, id."""
    parts = getattr(ctx.messages[-1], "parts", ()) if names and ctx.messages else ()
    calls = [part for part in parts if getattr(part, "part_kind", "") == "tool-call"]
    if call_id not in [part.tool_call_id for part in calls]:
        return
    for part in calls:
        if part.tool_call_id == call_id:
            return
        if part.tool_name in names:
            yield part.tool_name, _plain(part.args_as_dict()), part.tool_call_id


class WaitedThreads(concurrent.futures.Executor):
    """A thread for each function of one call, and the wait for those that a cancel or a timeout left behind."""

    def __init__(self) -> None:
        self._running: set[concurrent.futures.Future[Any]] = set()

    def submit(self, function: Callable[..., Any], /, *args: Any, **named: Any) -> concurrent.futures.Future[Any]:
        """Run `function` in a thread of its own."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        future.set_running_or_notify_cancel()

        def run() -> None:
            try:
                future.set_result(function(*args, **named))
            except BaseException as error:  # noqa: ASYNC103  the code that waits for the future gets it
                future.set_exception(error)

        self._running.add(future)
        threading.Thread(target=run, name="toolrt tool").start()
        return future

    async def ended(self) -> None:
        """Wait until no function runs; a cancel of the waiting task is raised after that."""
        cancelled: asyncio.CancelledError | None = None
        while left := [future for future in self._running if not future.done()]:
            try:
                await asyncio.wait([asyncio.wrap_future(future) for future in left])
            except asyncio.CancelledError as error:  # noqa: ASYNC103  raised below
                cancelled = error
        if cancelled is not None:
            raise cancelled


def _plain(args: Any) -> dict[str, Any]:
    """Validated arguments as JSON has them, for claims."""
    plain = to_jsonable_python(args, serialize_unknown=True, inf_nan_mode="strings", bytes_mode="base64")
    return plain if isinstance(plain, dict) else {}
