"""Microsoft's Agent Framework: function calls of an agent, run in call order where they touch the same thing.

Needs the extra ``agent_framework``.

The framework starts one task for each function call of a model response, in call order, and waits in none of them
before the first function middleware.  There the call takes its place.  The other middleware and the tool run when the
place comes up.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from toolrt.aio import CallOrder
from toolrt.errors import DefinitionRefused, MissingExtra

__all__ = ["ordering"]


def ordering(order: CallOrder | None = None) -> Callable[[Any, Callable[[], Awaitable[None]]], Awaitable[None]]:
    """A function middleware with which calls of one response that touch the same thing run in call order.

    Let it be the first of the agent's middleware: one before it that waits can change the order.

    Args:
        order: says which calls wait for which; None: each runs alone.

    Raises:
        MissingExtra: the extra ``agent_framework`` is not installed.
        DefinitionRefused: `order` is no `CallOrder`.

    Example::

        agent = Agent(client, tools=[read, edit], middleware=[ordering(CallOrder(safe=["read"]))])
    """
    try:
        from agent_framework import function_middleware
    except ImportError as error:
        raise MissingExtra("toolrt.plugins.agent_framework", "agent_framework") from error
    if order is None:
        order = CallOrder()
    if not isinstance(order, CallOrder):
        raise DefinitionRefused("ordering(order)", "a toolrt.aio.CallOrder, or None", order)

    async def toolrt_call_order(context: Any, call_next: Callable[[], Awaitable[None]]) -> None:
        # The tools are a list of the run's own; a call outside of a run has none, and then its task stands for it.
        group = context.session if context.tools is None else context.tools
        placed = order.place(
            context.function.name,
            _input(context.arguments),
            group=asyncio.current_task() if group is None else group,
            call_id=context.metadata.get("call_id") or "",
        )
        await placed.run(call_next, in_thread=_runs_in_thread(context.function))

    marked: Any = function_middleware(toolrt_call_order)
    return marked  # type: ignore[no-any-return]


def _input(arguments: Any) -> Mapping[str, Any]:
    """What claims are computed from: the model's arguments, or what an earlier middleware made of them."""
    if isinstance(arguments, Mapping):
        return arguments
    dumped = getattr(arguments, "model_dump", None)
    return dumped() if callable(dumped) else {}


def _runs_in_thread(function: Any) -> bool:
    """Whether the framework runs the function in a thread."""
    target = getattr(function, "func", None)
    return inspect.isroutine(target) and not inspect.iscoroutinefunction(target)
