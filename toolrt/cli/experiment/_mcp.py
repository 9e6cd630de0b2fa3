"""MCP servers from the command line: which program, by what name, and how far it is believed.

Rules.  ``--mcp`` is a program and its arguments, quoted as for a shell, which does not read them; ``NAME=`` before it
says what it is known by, else that is the program's own name.  Servers start in the workspace.  Nothing that a server
says of its tools is believed unless ``--mcp-trust`` names it.
"""

from __future__ import annotations

import contextlib
import re
import shlex
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from toolrt.cli.screen._escape import on_one_line
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.model import Tool
from toolrt.plugins import mcp
from toolrt.workspace import Workspace

_NAMED = re.compile(r"([A-Za-z0-9_-]+)=(.*)", re.DOTALL)


def servers_of(commands: Sequence[str], trusted: Sequence[str], root: Path | str) -> list[mcp.McpServer]:
    """The servers that the options name.

    Args:
        commands: of each ``--mcp``.
        trusted: of each ``--mcp-trust``.
        root: where the programs start.

    Raises:
        InputRefused: a command cannot be read, two servers share a name, or a trusted one is none of them.
    """
    servers: list[mcp.McpServer] = []
    for text in commands:
        server = _server(text, trusted, root)
        if any(other.name == server.name for other in servers):
            why = f"expected distinct names, got two servers named {server.name!r}"
            raise InputRefused(f"--mcp {on_one_line(text, 100)}", why, "Write NAME=COMMAND.")
        servers.append(server)
    for name in trusted:
        if not any(server.name == name for server in servers):
            known = ", ".join(server.name for server in servers) or "none"
            raise InputRefused(
                f"--mcp-trust {on_one_line(name, 100)}", f"expected the name of a server: {known}", "Name one of --mcp."
            )
    return servers


def _server(text: str, trusted: Sequence[str], root: Path | str) -> mcp.McpServer:
    option = f"--mcp {on_one_line(text, 100)}"
    remedy = "Write COMMAND or NAME=COMMAND, such as --mcp 'files=my-server --root .'."
    named = _NAMED.fullmatch(text)
    try:
        command = shlex.split(named[2] if named else text)
    except ValueError as error:
        raise InputRefused(option, f"it cannot be read: {error}", remedy) from None
    if not command:
        raise InputRefused(option, "expected a program, got nothing", remedy)
    name = named[1] if named else re.sub(r"[^A-Za-z0-9_-]", "_", Path(command[0]).name)
    try:
        return mcp.McpServer(name, command, cwd=root, trusted=name in trusted)
    except DefinitionRefused as error:
        raise InputRefused(option, str(error), remedy) from None


@contextlib.asynccontextmanager
async def connected(servers: Sequence[mcp.McpServer], workspace: Workspace) -> AsyncIterator[Sequence[Tool]]:
    """Their tools, for as long as the block lasts; none for no server, which needs no extra.

    Raises:
        InputRefused: a server cannot be used.
        MissingExtra: the ``mcp`` extra is not installed.
    """
    if not servers:
        yield ()
        return
    async with mcp.connect(servers, owner=workspace) as tools:
        yield tools
