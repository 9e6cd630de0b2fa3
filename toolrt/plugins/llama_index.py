"""LlamaIndex: agents whose tool calls run in call order where they touch the same thing, with results in call order.

Needs the extra ``llama_index``.

An agent is a workflow.  It sends an event for each call of a model response, in call order, and the step ``call_tool``
takes them in that order, each in a task of its own: there the call takes its place.  The step
``aggregate_tool_results`` collects the results as they come; here it gets them in call order.

A workflow that is cancelled leaves steps running that it has just started.  Their calls are cancelled here.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
from collections.abc import Sequence
from typing import Any

from toolrt.aio import CallOrder
from toolrt.errors import DefinitionRefused, MissingExtra

__all__ = ["ordered"]

#: Calls that may wait or run at the same time; LlamaIndex's default, 4, would let waiting calls hold up others.
_WORKERS = 1_000

#: The run that a step belongs to.
_RUN: contextvars.ContextVar[object] = contextvars.ContextVar("toolrt_run", default=None)

#: Tasks that wait for the ends of runs; asyncio keeps no task alive.
_WATCHES: set[asyncio.Task[None]] = set()

#: Where the workflow's store has the ids of the calls, in call order.
_CALL_IDS = "toolrt_call_ids"


def ordered(agent_class: type[Any], order: CallOrder | None = None) -> type[Any]:
    """A subclass of an agent class whose calls of one response run in call order where they touch the same thing.

    Args:
        agent_class: `FunctionAgent`, `ReActAgent`, `AgentWorkflow` or another with the steps of these.
        order: says which calls wait for which; None: each runs alone.

    Raises:
        MissingExtra: the extra ``llama_index`` is not installed.
        DefinitionRefused: `agent_class` is no such class, or `order` no `CallOrder`.

    Example::

        agent = ordered(FunctionAgent, CallOrder(safe=["read"]))(tools=[read, edit], llm=llm)
    """
    try:
        from llama_index.core.agent.workflow import AgentInput, AgentOutput, ToolCall, ToolCallResult
        from llama_index.core.workflow import Context, StopEvent, step
    except ImportError as error:
        raise MissingExtra("toolrt.plugins.llama_index", "llama_index") from error
    steps = ("parse_agent_output", "call_tool", "aggregate_tool_results")
    if not isinstance(agent_class, type) or not all(hasattr(agent_class, name) for name in steps):
        raise DefinitionRefused("ordered(agent_class)", "an agent class, such as FunctionAgent", agent_class)
    if order is not None and not isinstance(order, CallOrder):
        raise DefinitionRefused("ordered(order)", "a toolrt.aio.CallOrder, or None", order)
    taken = CallOrder() if order is None else order

    class OrderedAgent(agent_class):  # type: ignore[misc]
        """The agent class with the order of calls."""

        def run(self, *args: Any, **named: Any) -> Any:
            """Run the workflow; its end, also by a cancel, ends the calls that it leaves behind."""
            group = object()
            token = _RUN.set(group)  # the tasks of the run's steps inherit it
            try:
                handler = super().run(*args, **named)
            finally:
                _RUN.reset(token)
            watch = asyncio.get_running_loop().create_task(_cancelled_at_end(handler, taken, group))
            _WATCHES.add(watch)
            watch.add_done_callback(_WATCHES.discard)
            return handler

        @step
        async def parse_agent_output(self, ctx: Context, ev: AgentOutput) -> StopEvent | AgentInput | ToolCall | None:
            """Keep the order of the calls, and send an event for each."""
            await ctx.store.set(_CALL_IDS, [call.tool_id for call in ev.tool_calls])
            return await super().parse_agent_output(ctx, ev)

        @step(num_workers=_WORKERS)
        async def call_tool(self, ctx: Context, ev: ToolCall) -> ToolCallResult:
            """Take the call's place, and run the tool when it comes up."""
            group = _RUN.get() or ctx.store
            async with taken.place(ev.tool_name, ev.tool_kwargs, group=group, call_id=ev.tool_id):
                try:
                    return await super().call_tool(ctx, ev)
                except asyncio.CancelledError:
                    taken.cancel(group)  # the run ends, and no later call may begin before it has
                    raise

        @step
        async def aggregate_tool_results(self, ctx: Context, ev: ToolCallResult) -> AgentInput | StopEvent | None:
            """Collect the results, and hand them on in call order."""
            ids = await ctx.store.get(_CALL_IDS, default=[])
            return await super().aggregate_tool_results(_InCallOrder(ctx, ids), ev)

    OrderedAgent.__name__ = OrderedAgent.__qualname__ = f"Ordered{agent_class.__name__}"
    return OrderedAgent


async def _cancelled_at_end(handler: Any, order: CallOrder, group: object) -> None:
    """Wait for the end of a run, and cancel the calls of it that still have places."""
    ended = handler.stop_event_result()
    with contextlib.suppress(Exception, asyncio.CancelledError):
        await ended
    order.cancel(group)


class _InCallOrder:
    """The context of a step, which gives collected results in call order."""

    def __init__(self, context: Any, ids: Sequence[str]) -> None:
        self._context = context
        self._places = {id: place for place, id in reversed(list(enumerate(ids)))}

    def collect_events(self, event: Any, expected: Any, *args: Any, **named: Any) -> Any:
        """What the context has collected, in call order."""
        collected = self._context.collect_events(event, expected, *args, **named)
        if collected is None:
            return None
        return sorted(collected, key=lambda result: self._places.get(result.tool_id, len(self._places)))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)
