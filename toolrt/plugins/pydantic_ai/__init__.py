"""pydantic-ai: the tool calls of one model response in their order; its tools as the runtime's, and back.

Its functions need the ``pydantic_ai`` extra, and raise `MissingExtra` without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from toolrt.errors import MissingExtra
from toolrt.model import Claim, Mode, State, Tool

if TYPE_CHECKING:
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import AbstractToolset

__all__ = ["ordered_tools", "ordered_toolset"]

#: What a tool touches, as `toolrt.tool` takes it.
_Claimed = Iterable[Claim] | Mapping[Any, Mode] | Callable[[Mapping[str, Any], State], Iterable[Claim]]


def ordered_tools(
    *,
    safe: Collection[str] = (),
    claims: Mapping[str, _Claimed] | None = None,
    tools: Iterable[Tool] = (),
    owner: Any = None,
    limit: int | None = 10,
) -> AbstractCapability[Any]:
    """A capability for ``Agent(capabilities=[...])``: all tools of the agent keep the order of their calls.

    One object may serve several agents and runs at once: then their calls are ordered with each other's by claims.  It
    keeps no journal: after a crash pydantic-ai runs what it would run without this.

    Args:
        safe: names of tools that touch nothing another call changes.
        claims: what other tools touch, by name: claims, a mode for each field of the input, or a function of input and
            state.  A tool that is named neither here nor in `safe` runs alone, in its turn.
        tools: tools of the runtime's, which become tools of the agent; what they promise counts.
        owner: whose claim table orders the calls, such as a `toolrt.Workspace`; None: that of `tools`, or one of its
            own.
        limit: how many calls of one model response run at once; None is no limit.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        DefinitionRefused: something here cannot work; the text says what.

    Example::

        agent = Agent(model, tools=[search, edit], capabilities=[ordered_tools(safe=["search"])])
    """
    try:
        from toolrt.plugins.pydantic_ai._order import made
    except ModuleNotFoundError as error:
        raise MissingExtra("toolrt.plugins.pydantic_ai.ordered_tools", "pydantic_ai") from error
    return made(safe, claims, tools, owner, limit)


def ordered_toolset(
    toolset: AbstractToolset[Any],
    *,
    safe: Collection[str] = (),
    claims: Mapping[str, _Claimed] | None = None,
    owner: Any = None,
    limit: int | None = 10,
) -> AbstractToolset[Any]:
    """A toolset around another one, whose calls alone are ordered; prefer `ordered_tools`.

    Calls have the order in which they arrive at this toolset.  That is call order as long as no hook of a capability,
    and no toolset around this one, waits before.

    Args:
        toolset: the tools.
        safe: as of `ordered_tools`.
        claims: as of `ordered_tools`.
        owner: as of `ordered_tools`.
        limit: as of `ordered_tools`.

    Raises:
        MissingExtra: pydantic-ai is not installed.
        DefinitionRefused: something here cannot work; the text says what.

    Example::

        agent = Agent(model, toolsets=[ordered_toolset(server, safe=["search"])])
    """
    try:
        from toolrt.plugins.pydantic_ai._order import around
    except ModuleNotFoundError as error:
        raise MissingExtra("toolrt.plugins.pydantic_ai.ordered_toolset", "pydantic_ai") from error
    return around(toolset, safe, claims, owner, limit)


def _tool_from_pydantic_ai(tool: Any, **promises: Any) -> Tool:
    """See `Tool.from_pydantic_ai`."""
    try:
        from toolrt.plugins.pydantic_ai._tools import tool_from_pydantic_ai
    except ModuleNotFoundError as error:
        raise MissingExtra("Tool.from_pydantic_ai", "pydantic_ai") from error
    return tool_from_pydantic_ai(tool, **promises)
