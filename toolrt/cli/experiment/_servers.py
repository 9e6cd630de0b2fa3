"""Servers from the command line: MCP servers and language servers, each a program by a name.

Rules.
    1. A program and its arguments are quoted as for a shell, which does not read them.
    2. ``--mcp`` is a program; ``NAME=`` before it says what it is known by, else that is the program's own name.  It
       starts in the workspace.  Nothing that it says of its tools is believed unless ``--mcp-trust`` names it.
    3. ``--lsp ruff`` and ``--lsp ty`` are known; any other is ``SUFFIXES=COMMAND``, the ends of names that it is asked
       about.  Of such a server it is not known that it reads one file only, so a question to it waits behind all that
       changes any.  A program that is not there is refused before any call is run; one that fails later fails no call.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

import attrs

from toolrt.cli.screen._escape import on_one_line
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.plugins import lsp, mcp

Server = TypeVar("Server", mcp.McpServer, lsp.LanguageServer)

_KNOWN = {
    "ruff": lsp.LanguageServer("ruff", ["ruff", "server"], suffixes=[".py", ".pyi"], reads="file"),
    "ty": lsp.LanguageServer("ty", ["ty", "server"], suffixes=[".py", ".pyi"]),
}

_NAMED = re.compile(r"([A-Za-z0-9_-]+)=(.*)", re.DOTALL)
_WITH_SUFFIXES = re.compile(r"((?:\.[A-Za-z0-9_+-]+)(?:,\.[A-Za-z0-9_+-]+)*)=(.*)", re.DOTALL)


def servers_of(commands: Sequence[str], trusted: Sequence[str], root: Path | str) -> list[mcp.McpServer]:
    """The MCP servers that the options name.

    Args:
        commands: of each ``--mcp``.
        trusted: of each ``--mcp-trust``.
        root: where the programs start.

    Raises:
        InputRefused: a command cannot be read, two servers share a name, or a trusted one is none of them.
    """
    option, remedy = "--mcp", "Write COMMAND or NAME=COMMAND, such as --mcp 'files=my-server --root .'."

    def made(text: str) -> mcp.McpServer:
        named = _NAMED.fullmatch(text)
        command = _split(option, text, named[2] if named else text, remedy)
        name = named[1] if named else re.sub(r"[^A-Za-z0-9_-]", "_", Path(command[0]).name)
        return mcp.McpServer(name, command, cwd=root, trusted=name in trusted)

    servers = _each(option, commands, made, remedy, "names, got two servers named", "Write NAME=COMMAND.")
    for name in trusted:
        if not any(server.name == name for server in servers):
            known = ", ".join(server.name for server in servers) or "none"
            why = f"expected the name of a server: {known}"
            raise InputRefused(_shown("--mcp-trust", name), why, "Name one of --mcp.")
    return servers


def language_servers_of(commands: Sequence[str]) -> list[lsp.LanguageServer]:
    """The language servers that the options name.

    Args:
        commands: of each ``--lsp``.

    Raises:
        InputRefused: a command cannot be read, its program is not there, or two servers share a name.
    """
    option = "--lsp"
    remedy = f"Write {' or '.join(_KNOWN)}, or SUFFIXES=COMMAND, such as --lsp '.go=gopls serve'."

    def made(text: str) -> lsp.LanguageServer:
        server, written = _KNOWN.get(text), _WITH_SUFFIXES.fullmatch(text)
        if server is None:
            if written is None:
                why = "expected a known server, or the ends of names and a program"
                raise InputRefused(_shown(option, text), why, remedy)
            command = _split(option, text, written[2], remedy)
            name = re.sub(r"[^A-Za-z0-9_.+-]", "_", Path(command[0]).name)[:32]
            server = lsp.LanguageServer(name, command, suffixes=written[1].split(","))
        program, *arguments = server.command or ("",)
        found = shutil.which(program)
        if found is None:
            why = f"there is no program {on_one_line(program, 100)!r}"
            raise InputRefused(_shown(option, text), why, "Install it, or give its path.")
        # The same program wherever it is started.
        return attrs.evolve(server, command=(os.path.abspath(found), *arguments))

    return _each(option, commands, made, remedy, "servers, got two named", "Name each once.")


def _each(
    option: str, texts: Sequence[str], made: Callable[[str], Server], remedy: str, shared: str, apart: str
) -> list[Server]:
    """A server for each text; none shares its name with another."""
    servers: dict[str, Server] = {}
    for text in texts:
        try:
            server = made(text)
        except DefinitionRefused as error:
            raise InputRefused(_shown(option, text), str(error), remedy) from None
        if server.name in servers:
            raise InputRefused(_shown(option, text), f"expected distinct {shared} {server.name!r}", apart)
        servers[server.name] = server
    return list(servers.values())


def _split(option: str, text: str, command: str, remedy: str) -> list[str]:
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputRefused(_shown(option, text), f"it cannot be read: {error}", remedy) from None
    if not words:
        raise InputRefused(_shown(option, text), "expected a program, got nothing", remedy)
    return words


def _shown(option: str, text: str) -> str:
    return f"{option} {on_one_line(text, 100)}"
