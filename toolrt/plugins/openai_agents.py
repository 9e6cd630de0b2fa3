"""OpenAI Agents SDK: the function tools of an agent, run in call order where they touch the same thing.

Needs the extra ``openai_agents``.

The SDK starts one task for each function call of a model response, in call order.  Such a task asks for approval, runs
the tool's input guardrails and the hooks, and then starts a second task, which runs the tool.  The first thing in the
first task that a tool can take part in is its approval function, and where it has none, its first input guardrail:
there the call takes its place.  After the last input guardrail it waits until the place comes up, so that neither
``on_tool_start`` nor a timeout begins before.
"""

from __future__ import annotations

import asyncio
import contextvars
import copy
import dataclasses
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

from toolrt.aio import CallOrder, PlacedCall
from toolrt.errors import DefinitionRefused, MissingExtra

__all__ = ["ordered"]

#: The place that the running call took, in the context of the call's tasks.
_PLACED: contextvars.ContextVar[PlacedCall | None] = contextvars.ContextVar("toolrt_placed", default=None)

#: The name of the guardrail that a tool without input guardrails gets.
_GUARDRAIL = "toolrt_call_order"


def ordered(tools: Iterable[Any], order: CallOrder | None = None) -> list[Any]:
    """The same tools, whose calls of one model response run in call order where they touch the same thing.

    Approvals, guardrails, timeouts, error functions and hooks stay what they are.  Of the guardrail results of a run,
    one for each call of a tool without input guardrails is named ``toolrt_call_order``.

    Args:
        tools: of an agent; those that are no ``FunctionTool`` are handed on as they are.
        order: says which calls wait for which; None: each runs alone.

    Raises:
        MissingExtra: the extra ``openai_agents`` is not installed.
        DefinitionRefused: `order` is no `CallOrder`.

    Example::

        agent = Agent(name="editor", tools=ordered([read, edit], CallOrder(safe=["read"])))
    """
    try:
        import agents
    except ImportError as error:
        raise MissingExtra("toolrt.plugins.openai_agents", "openai_agents") from error
    if order is None:
        order = CallOrder()
    if not isinstance(order, CallOrder):
        raise DefinitionRefused("ordered(order)", "a toolrt.aio.CallOrder, or None", order)
    return [_ordered(agents, tool, order) if isinstance(tool, agents.FunctionTool) else tool for tool in tools]


def _ordered(agents: Any, tool: Any, order: CallOrder) -> Any:
    """A copy of `tool` whose calls take places in `order`."""
    copied = copy.copy(tool)
    place = functools.partial(_place, order, tool.name)

    async def no_guardrail(data: Any) -> Any:
        place(data.context, _decoded(data.context.tool_arguments), data.context.tool_call_id)
        await _turn()
        return agents.ToolGuardrailFunctionOutput.allow()

    guardrails = list(tool.tool_input_guardrails or ())
    if guardrails:
        guardrails[0] = _after(guardrails[0], place)
        guardrails[-1] = _before(guardrails[-1])
    else:
        guardrails = [agents.ToolInputGuardrail(guardrail_function=no_guardrail, name=_GUARDRAIL)]
    copied.tool_input_guardrails = guardrails
    if callable(tool.needs_approval):
        copied.needs_approval = _asking(tool.needs_approval, place)
    copied.on_invoke_tool = _invoking(copied.on_invoke_tool, place)
    return copied


def _place(order: CallOrder, name: str, context: Any, input: Mapping[str, Any], call_id: str) -> PlacedCall:
    """The place of the running call: the one that its task took before, or the next one."""
    known = _PLACED.get()
    if known is not None and not known.is_over and not known.is_entered and known.call.call_id == call_id:
        if known.task is asyncio.current_task():
            return known
        known.give_back()  # taken while the run was planned; now the call's own task runs
    placed = order.place(name, input, group=context.usage, call_id=call_id)  # a run's contexts share their usage
    _PLACED.set(placed)
    return placed


async def _turn() -> None:
    placed = _PLACED.get()
    if placed is not None:
        await placed.turn()


def _after(guardrail: Any, place: Callable[..., PlacedCall]) -> Any:
    """`guardrail`, which takes the call's place before it runs."""

    async def run(data: Any) -> Any:
        place(data.context, _decoded(data.context.tool_arguments), data.context.tool_call_id)
        return await _answer(guardrail.guardrail_function(data))

    return dataclasses.replace(guardrail, guardrail_function=run, name=guardrail.get_name())


def _before(guardrail: Any) -> Any:
    """`guardrail`, after which the call waits until its place comes up, if it may run."""

    async def run(data: Any) -> Any:
        answer = await _answer(guardrail.guardrail_function(data))
        if answer.behavior["type"] == "allow":
            await _turn()
        return answer

    return dataclasses.replace(guardrail, guardrail_function=run, name=guardrail.get_name())


def _asking(needs_approval: Callable[..., Any], place: Callable[..., PlacedCall]) -> Callable[..., Awaitable[bool]]:
    """`needs_approval`, which takes the call's place before it answers, and gives it back where it says yes."""

    @functools.wraps(needs_approval)
    async def asked(context: Any, parameters: dict[str, Any], call_id: str) -> bool:
        placed = place(context, parameters, call_id)
        try:
            answer = bool(await _answer(needs_approval(context, parameters, call_id)))
        except BaseException:
            placed.give_back()
            raise
        if answer:
            placed.give_back()
        return answer

    return asked


def _invoking(invoke: Any, place: Callable[..., PlacedCall]) -> Any:
    """`invoke`, which runs in the block of the call's place."""
    # A sync tool runs in a thread of the SDK, which no cancel ends: its call ends with the thread.
    in_thread = getattr(invoke, "__agents_sync_function_tool__", False)

    async def in_turn(run: Callable[[Any, str], Awaitable[Any]], context: Any, input: str) -> Any:
        placed = _PLACED.get()
        if placed is None or placed.is_entered or placed.is_over:  # the tool is called outside the SDK's run
            placed = place(context, _decoded(input), getattr(context, "tool_call_id", ""))
        return await placed.run(functools.partial(run, context, input), in_thread=in_thread)

    kind = type(invoke)
    if inspect.isroutine(invoke) or not hasattr(invoke, "__agents_bind_function_tool__"):

        @functools.wraps(invoke)
        async def invoked(context: Any, input: str) -> Any:
            return await in_turn(invoke, context, input)

        return invoked

    class InTurn(kind):  # type: ignore[misc, valid-type]
        """The SDK's own invoker; the SDK asks it for the function and the failure policy of a tool."""

        async def __call__(self, ctx: Any, input: str) -> Any:
            return await in_turn(super().__call__, ctx, input)

        def __agents_bind_function_tool__(self, tool: Any) -> Any:
            return changed(super().__agents_bind_function_tool__(tool))

    def changed(invoker: Any) -> Any:
        if isinstance(invoker, InTurn):
            return invoker
        other = copy.copy(invoker)
        other.__class__ = InTurn
        return other

    return changed(invoke)


async def _answer(answer: Any) -> Any:
    return await answer if inspect.isawaitable(answer) else answer


def _decoded(arguments: str) -> Mapping[str, Any]:
    """The input that claims are computed from; empty where the arguments are no JSON object, which the SDK refuses."""
    try:
        input = json.loads(arguments or "{}")
    except ValueError:
        return {}
    return input if isinstance(input, dict) else {}
