"""A server's tool as a tool of the runtime.

Rules.
    1. Nothing that an untrusted server says of its tools is believed: they run alone.  Of a trusted one, a read-only
       tool is safe; every other runs alone.  Where the tools have an owner (a workspace), a read-only one claims READ
       on all of it, so that it is ordered with the calls that change the owner's files.
    2. A read-only or idempotent tool of a trusted server is called once more when the connection was lost under it;
       no other ever is.
    3. The input is held against the server's own schema before it is sent, and the structured content that comes back
       against the one that the server states for it, where that is one that can be used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import attrs

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.model import READ, Claim, Tool, ToolOutput
from toolrt.model._schema_check import SchemaCheck
from toolrt.plugins.mcp._content import content_of, text_of
from toolrt.plugins.mcp._port import CallAnswer, Hints, Offered, Progress
from toolrt.plugins.mcp._server import McpServer
from toolrt.processes._unanswered import Unanswered

#: Models read at most so many characters of a description.
_DESCRIPTION_MOST = 10_000


class _CallContext(Protocol):
    """What a tool uses of the runtime's context."""

    def progress(self, message: Any) -> None: ...


@attrs.define(eq=False)
class _McpTool(Tool):
    """A tool of a stranger's."""

    @property
    def declares(self) -> bool:
        """Never: lane policies ask `is_safe`, and no rule about paths speaks of what a stranger reads."""
        return False


class _CallingConnection(Protocol):
    """What a tool asks of the way to its server."""

    @property
    def server(self) -> McpServer:
        """The server."""

    async def call(self, tool: Offered, arguments: Mapping[str, Any], progress: Progress, *, again: bool) -> CallAnswer:
        """See `McpConnection.call`."""


def believed(trusted: bool, offered: Offered) -> Hints:
    """What of a tool's hints counts: all of a trusted server's, none of another's."""
    return offered.hints if trusted else Hints()


def tool_of(connection: _CallingConnection, offered: Offered, name: str, owner: Any) -> Tool:
    """The tool `name`, which calls what the server offers.

    Raises:
        InputRefused: the schema cannot be used; the text says why.
    """
    server = connection.server
    hints = believed(server.trusted, offered)
    what = f"tool {offered.name!r} of MCP server {server.name!r}"
    remedy = f"Leave it out by McpServer({server.name!r}, ..., only=[...]), or have the server corrected."
    if not isinstance(offered.input_schema, Mapping) or offered.input_schema.get("type") != "object":
        got = offered.input_schema
        told = f'"type": {got.get("type")!r:.80}' if isinstance(got, Mapping) else f"a {type(got).__name__}"
        raise InputRefused(what, f'its input schema is not used: expected "type": "object", got {told}', remedy)
    fits = _answer_check(offered)

    async def call(ctx: _CallContext, /, **arguments: Any) -> ToolOutput:
        return await _called(connection, offered, hints.repeatable, fits, ctx, arguments)

    description = offered.description
    if len(description) > _DESCRIPTION_MOST:
        description = description[:_DESCRIPTION_MOST] + " ..."
    tool = _McpTool(
        name=name,
        function=call,
        safe=hints.read_only,
        claims=(Claim((), READ, subtree=True),) if hints.read_only and owner is not None else None,
        timeout=server.timeout,
        description=description,
        schema=offered.input_schema,
        owner=owner,
        idempotent=hints.repeatable,
        max_result=server.output_limit,
    )
    try:
        tool.validator  # noqa: B018  a schema that is none is refused here, not at the first call
    except DefinitionRefused as error:
        why = f"expected {error.expected}, got {error.got}"
        raise InputRefused(what, f"its input schema is not used: {why}", remedy) from None
    return tool


async def _called(
    connection: _CallingConnection,
    offered: Offered,
    again: bool,
    fits: Callable[[object], str | None],
    ctx: _CallContext,
    arguments: Mapping[str, Any],
) -> ToolOutput:
    server = connection.server
    try:
        answer = await connection.call(offered, arguments, ctx.progress, again=again)
    except Unanswered as error:
        return ToolOutput(error=f"MCP server {server.name!r}: {error}")
    if answer.is_error:
        return ToolOutput(error=text_of(answer) or "the tool failed and says no more")
    wrong = None if answer.structured is None else fits(answer.structured)
    if wrong is not None:
        why = f"its structured answer is not what it says its answers are ({wrong}); effects have landed"
        return ToolOutput(error=f"MCP server {server.name!r}: {why}")
    return ToolOutput(content_of(answer))


def _answer_check(offered: Offered) -> Callable[[object], str | None]:
    """Says what is wrong with structured content, or None; nothing is, where the schema for it cannot be used."""
    try:
        check = SchemaCheck(offered.output_schema, "an output schema")  # type: ignore[arg-type]
    except DefinitionRefused:
        return lambda value: None

    def wrong(value: object) -> str | None:
        found = check.wrong_with(value)
        return str(found[0]).replace("input", "answer", 1) if found else None

    return wrong
