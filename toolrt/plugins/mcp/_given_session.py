"""A tool over a session of the SDK that the caller holds: `toolrt.Tool.from_mcp`.

Rules.  The caller opens and closes the session.  One that belongs to asyncio is spoken to on its own event loop, so the
batch is awaited by `toolrt.aio`; one of Trio is spoken to where the batch runs.  No call is ever sent twice: there is
no second connection to send it over.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import anyio
import attrs
import trio
from pydantic import ValidationError

from toolrt.aio import on_loop
from toolrt.errors import DefinitionRefused
from toolrt.model import Tool
from toolrt.plugins.mcp._names import OTHER_LETTERS
from toolrt.plugins.mcp._port import CallAnswer, Offered, Progress
from toolrt.plugins.mcp._sdk import answer_of, offered_of
from toolrt.plugins.mcp._server import McpServer
from toolrt.plugins.mcp._tools import tool_of
from toolrt.plugins.mcp._versions import SdkError, types
from toolrt.processes._unanswered import Gone, Refused


def tool_from_session(
    session: Any,
    tool: Any,
    *,
    name: str | None = None,
    trusted: bool = False,
    owner: Any = None,
    timeout: float | None = 120.0,
) -> Tool:
    """See `toolrt.Tool.from_mcp`."""
    if not callable(getattr(session, "call_tool", None)):
        raise DefinitionRefused("Tool.from_mcp(session)", "a ClientSession of the mcp package", session)
    if not isinstance(tool, types.Tool):
        raise DefinitionRefused("Tool.from_mcp(tool)", "a tool as session.list_tools() gives it", tool)
    offered = offered_of(tool)
    server = McpServer("session", server=session, trusted=trusted, timeout=timeout)
    given = _GivenSession(server, session, not trio.lowlevel.in_trio_run())
    return tool_of(given, offered, name or OTHER_LETTERS.sub("_", offered.name), owner)


@attrs.define(eq=False)
class _GivenSession:
    """Calls tools over the session, as `McpConnection` does over its own."""

    server: McpServer
    _session: Any
    #: Whether the session belongs to an asyncio event loop.
    _on_asyncio: bool

    async def call(self, tool: Offered, arguments: Mapping[str, Any], progress: Progress, *, again: bool) -> CallAnswer:
        """See `McpConnection.call`."""

        async def told(value: float, total: float | None, message: str | None) -> None:  # noqa: ASYNC124  awaited
            said = {"progress": value, "total": total, "message": message}
            progress({key: one for key, one in said.items() if one is not None})

        async def ask() -> Any:
            return await self._session.call_tool(tool.name, dict(arguments), progress_callback=told)

        try:
            return answer_of(await (on_loop(ask) if self._on_asyncio else ask)())
        except (anyio.ClosedResourceError, anyio.BrokenResourceError):
            raise Gone("the connection was lost; effects may have landed") from None
        except SdkError as error:
            lost = error.error.code == types.CONNECTION_CLOSED
            why = f"it answered the call with an error: {error.error.message[:2_000]} (code {error.error.code})"
            raise (Gone("the connection was lost; effects may have landed") if lost else Refused(why)) from None
        except (ValidationError, RuntimeError) as error:
            raise Refused(f"its answer is not what the protocol says ({type(error).__name__})") from None
