"""Which MCP server, how to reach it, and how far it is believed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import attrs

from toolrt.errors import DefinitionRefused
from toolrt.processes._given import check_server

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")


@attrs.frozen
class McpServer:
    """An MCP server to take tools from.

    Raises:
        DefinitionRefused: a value is out of range, or there is not exactly one of `command`, `url` and `server`.

    Example::

        McpServer("files", ["my-server", "--root", "."], trusted=True)
    """

    #: What it is known by, and what its tools' names begin with: 1 to 32 letters, digits, ``_`` and ``-``.
    name: str = attrs.field()
    #: The program that speaks MCP over its standard streams, and its arguments; no shell reads them.
    command: Sequence[str] | None = None
    #: Instead of a program: a server in this process (the SDK's ``MCPServer`` or ``Server``), or a `RecordedMcpServer`.
    server: Any = attrs.field(default=None, kw_only=True, repr=False)
    #: Instead of a program: the address of a server that speaks streamable HTTP, ``https://...``.
    url: str | None = attrs.field(default=None, kw_only=True)
    #: What each HTTP request to it carries, such as an ``Authorization``: its secrets.
    headers: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    #: Variables of the program beside those that the SDK passes on (``HOME``, ``PATH`` and the like): its secrets.
    env: Mapping[str, str] = attrs.field(factory=dict, kw_only=True, repr=False)
    #: Where the program starts; None: where this process is.
    cwd: str | os.PathLike[str] | None = attrs.field(default=None, kw_only=True)
    #: Whether what it says of its tools (read-only, idempotent, not destructive) is believed.
    trusted: bool = attrs.field(default=False, kw_only=True)
    #: What its tools' names begin with; None: its name and ``__``.
    prefix: str | None = attrs.field(default=None, kw_only=True)
    #: The server's names of the tools to take; None: all.
    only: Collection[str] | None = attrs.field(default=None, kw_only=True)
    #: Names of the caller's own, for some of the server's: ``{"its name": "what models call it"}``.
    rename: Mapping[str, str] = attrs.field(factory=dict, kw_only=True)
    #: Seconds of its own execution after which a call is timed out; None takes the runtime's.
    timeout: float | None = attrs.field(default=120.0, kw_only=True)
    #: Seconds in which a new connection has to be usable and its tools known.
    start_timeout: float = attrs.field(default=30.0, kw_only=True)
    #: How many times in a row it may be started anew without one answered call between; then it is given up.
    restarts: int = attrs.field(default=3, kw_only=True)
    #: How many characters of an answer are kept: its beginning and its end, half of it each; 2 or more.
    output_limit: int = attrs.field(default=100_000, kw_only=True)

    def __attrs_post_init__(self) -> None:
        what = f"MCP server {self.name!r}"
        if not isinstance(self.name, str) or _NAME.fullmatch(self.name) is None:
            raise DefinitionRefused("an MCP server's name", "1 to 32 letters, digits, _ and -", self.name)
        example = '["my-server", "--root", "."]'
        seconds = ("start_timeout",) if self.timeout is None else ("start_timeout", "timeout")
        check_server(self, what, example, seconds=seconds, whole=("restarts", "output_limit"))
        if self.url is not None and (not isinstance(self.url, str) or not self.url.startswith(("http://", "https://"))):
            raise DefinitionRefused(f"{what}: url", "an address that begins with http:// or https://", self.url)
        if not isinstance(self.headers, Mapping) or not all(
            isinstance(text, str) for pair in self.headers.items() for text in pair
        ):
            raise DefinitionRefused(f"{what}: headers", "texts by name", sorted(map(str, self.headers)))
        if not isinstance(self.trusted, bool):
            raise DefinitionRefused(f"{what}: trusted", "a bool", self.trusted)
        if self.output_limit < 2:
            raise DefinitionRefused(f"{what}: output_limit", "a number of characters, 2 or more", self.output_limit)
        if isinstance(self.only, str):
            raise DefinitionRefused(f"{what}: only", "a list of the server's tool names", self.only)
