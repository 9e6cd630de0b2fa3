"""A server that is a record: it stands for a real one in simulations and tests.

Rules.  It offers the tools that it was built with and answers a call as recorded, in virtual time in a simulation; it
never guesses.  A recorded crash loses the connection as a real one does: every call that runs on it ends, and the next
one finds a new connection.

Needs nothing: neither a process, nor the ``mcp`` extra.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import attrs
import trio

from toolrt import probe
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.plugins.mcp._port import CallAnswer, Offered, Progress, Talk
from toolrt.plugins.mcp._server import McpServer
from toolrt.processes import ProgramNotes, check_recorded_seconds, spread
from toolrt.processes._unanswered import Gone


def _blocks(content: object) -> tuple[object, ...]:
    if isinstance(content, str):
        return ({"type": "text", "text": content},)
    return tuple(content) if isinstance(content, list | tuple) else (content,)


@attrs.frozen
class RecordedAnswer:
    """What one call came to."""

    #: A text, or content blocks as the protocol writes them.
    content: tuple[Any, ...] = attrs.field(default=(), converter=_blocks)
    #: The structured content; None: there is none.
    structured: Any = attrs.field(default=None, kw_only=True)
    #: Whether the tool said that it failed.
    is_error: bool = attrs.field(default=False, kw_only=True)
    #: What it said while it ran: ``{"progress": 1, "total": 3, "message": "..."}`` each.
    progress: tuple[Mapping[str, Any], ...] = attrs.field(default=(), converter=tuple, kw_only=True)
    #: Seconds that it took, spread over its progress, which begins at once.
    seconds: float = attrs.field(default=0.0, kw_only=True)
    #: Whether the server died of it, at the end of that time.
    crash: bool = attrs.field(default=False, kw_only=True)

    @seconds.validator
    def _check_seconds(self, _: object, seconds: object) -> None:
        check_recorded_seconds("RecordedAnswer(seconds)", seconds)

    @content.validator
    def _check_content(self, _: object, content: tuple[object, ...]) -> None:
        if not all(isinstance(block, Mapping) for block in content):
            raise DefinitionRefused("RecordedAnswer(content)", "a text, or a list of content blocks", content)


_Recorded = RecordedAnswer | str


class RecordedMcpServer:
    """Answers each call as recorded.

    Args:
        tools: what it offers.
        answers: for each tool's name: pairs of arguments and what came of them, or a function from the arguments to it.
            A text stands for an answer that is just that.

    Raises:
        DefinitionRefused: there are answers of a tool that it does not offer.

    Example::

        record = RecordedMcpServer([Offered("add", schema)], {"add": [({"a": 1, "b": 2}, "3")]})
        McpServer("sums", server=record)
    """

    def __init__(
        self,
        tools: Iterable[Offered],
        answers: Mapping[str, Callable[[Mapping[str, Any]], _Recorded] | Sequence[tuple[Mapping[str, Any], _Recorded]]],
    ) -> None:
        self._tools = tuple(tools)
        known = [tool.name for tool in self._tools]
        for name in answers:
            if name not in known:
                raise DefinitionRefused("RecordedMcpServer(answers)", f"names of its tools ({', '.join(known)})", name)
        self._answers = {
            name: answer if callable(answer) else _looked_up(name, answer) for name, answer in answers.items()
        }

    async def serve(self, server: McpServer, talk: Talk, notes: ProgramNotes) -> None:
        """See `Peer.serve`."""
        session = _RecordedSession(server.name, self._tools, self._answers)
        with session.talking:
            await talk(session)
        if session.lost:
            notes.ended = "it ended as recorded"


def _looked_up(
    name: str, pairs: Sequence[tuple[Mapping[str, Any], _Recorded]]
) -> Callable[[Mapping[str, Any]], _Recorded]:
    table = {_key(arguments): answer for arguments, answer in pairs}

    def answer(arguments: Mapping[str, Any]) -> _Recorded:
        found = table.get(_key(arguments))
        if found is None:
            raise InputRefused(
                f"{name}({_key(arguments)})",
                f"expected recorded arguments, recorded are: {'; '.join(table) or 'none'}",
                "Add what it answers to the RecordedMcpServer.",
            )
        return found

    return answer


def _key(arguments: Mapping[str, Any]) -> str:
    return json.dumps(arguments, sort_keys=True, ensure_ascii=False)


@attrs.define(eq=False)
class _RecordedSession:
    """A connection to a record."""

    _name: str
    _tools: tuple[Offered, ...]
    _answers: Mapping[str, Callable[[Mapping[str, Any]], _Recorded]]
    lost: bool = False
    changed: bool = False
    #: Cancelled when it was lost.
    talking: trio.CancelScope = attrs.field(factory=trio.CancelScope)
    #: The scopes of the calls that run.
    _running: dict[trio.CancelScope, None] = attrs.field(factory=dict)

    async def tools(self) -> tuple[Offered, ...]:
        """See `Session.tools`."""
        await trio.lowlevel.checkpoint()
        return self._tools

    async def call(self, name: str, arguments: Mapping[str, Any], progress: Progress) -> CallAnswer:
        """See `Session.call`.

        Raises:
            InputRefused: nothing is recorded for it.
        """
        found = self._answers.get(name)
        if found is None:
            raise InputRefused(name, "expected a tool with recorded answers", "Add them to the RecordedMcpServer.")
        given = found(arguments)
        answer = RecordedAnswer(given) if isinstance(given, str) else given
        reads = any(tool.name == name and tool.hints.read_only for tool in self._tools)
        if probe.sink is not None:
            probe.sink.access(("recorded mcp server", self._name), not reads or answer.crash)
        if self.lost:
            raise Gone
        with trio.CancelScope() as scope:
            self._running[scope] = None
            try:
                await spread(answer.progress, answer.seconds, lambda told: progress(dict(told)))
            finally:
                del self._running[scope]
        if scope.cancelled_caught:
            raise Gone
        if answer.crash:
            self.lost = True
            self.talking.cancel()
            for other in list(self._running):
                other.cancel()
            raise Gone
        return CallAnswer(answer.content, answer.structured, answer.is_error)
