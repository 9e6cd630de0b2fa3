"""LangGraph: a tool node whose calls of one message run as one batch; LangChain's tools as the runtime's, and back.

Its functions need the ``langgraph`` extra, and raise `MissingExtra` without it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from toolrt.errors import MissingExtra
from toolrt.model import Claim, Mode, State, Tool
from toolrt.runtime import Runtime

if TYPE_CHECKING:
    from langchain_core.tools import BaseTool
    from langgraph.prebuilt import ToolNode

__all__ = ["langchain_tool", "tool_node"]

#: What a tool touches, as `toolrt.tool` takes it.
_Claimed = Iterable[Claim] | Mapping[Any, Mode] | Callable[[Mapping[str, Any], State], Iterable[Claim]]


def tool_node(
    tools: Sequence[BaseTool | Callable[..., Any]] = (),
    *,
    runtime: Runtime | None = None,
    safe: Collection[str] = (),
    claims: Mapping[str, _Claimed] | None = None,
    **options: Any,
) -> ToolNode:
    """A ``ToolNode`` of LangGraph's that runs the calls of one message as one batch.

    Args:
        tools: LangChain's tools, and functions that LangGraph makes tools.
        runtime: whose lanes, limit, approval check and observers are used; its tools become tools of the node.  None:
            one without tools.  Where it has a journal and the graph a checkpointer, a message in whose middle the
            process was killed goes on with it when the graph is invoked again: its batch is named by the node's task.
        safe: names of tools that touch nothing another call changes.
        claims: what other tools touch, by name: claims, a mode for each field of the input, or a function of input and
            state.  One of `tools` that is named neither here nor in `safe` runs alone, in its turn.
        options: as of ``ToolNode``: ``name``, ``tags``, ``handle_tool_errors``, ``messages_key``, ``wrap_tool_call``,
            ``awrap_tool_call``.

    Raises:
        MissingExtra: langgraph is not installed.
        DefinitionRefused: the runtime or a claim cannot work; the text says what.

    Example::

        graph.add_node("tools", tool_node([search, edit], safe=["search"]))
    """
    try:
        from toolrt.plugins.langgraph._node import OrderedToolNode
    except ModuleNotFoundError as error:
        raise MissingExtra("toolrt.plugins.langgraph.tool_node", "langgraph") from error
    return OrderedToolNode(tools, runtime=runtime, safe=safe, claims=claims, **options)


def langchain_tool(tool: Tool, runtime: Runtime | None = None) -> BaseTool:
    """A tool of the runtime as a tool of LangChain's: each call of it is a batch of one.

    Args:
        tool: the tool.
        runtime: by which its calls are ordered with others; None: one of its own.  A journal of it has each batch
            under an id that no later process knows: ``journal.unfinished()`` lists them, and no graph goes on with one.

    Raises:
        MissingExtra: langchain-core is not installed.
        DefinitionRefused: `tool` is none, or `runtime` has no tool of its name.

    Example::

        agent = create_agent(model, [langchain_tool(tool, runtime) for tool in runtime.registry])
    """
    try:
        from toolrt.plugins.langgraph._tools import batched_tool
    except ModuleNotFoundError as error:
        raise MissingExtra("toolrt.plugins.langgraph.langchain_tool", "langgraph") from error
    return batched_tool(tool, runtime)


def _tool_from_langchain(tool: Any, **promises: Any) -> Tool:
    """See `Tool.from_langchain`."""
    try:
        from toolrt.plugins.langgraph._tools import tool_from_langchain
    except ModuleNotFoundError as error:
        raise MissingExtra("Tool.from_langchain", "langgraph") from error
    return tool_from_langchain(tool, **promises)
