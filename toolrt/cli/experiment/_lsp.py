"""Language servers from the command line: which program, and for which files.

Rules.  ``--lsp ruff`` and ``--lsp ty`` are known; any other is written ``SUFFIXES=COMMAND``, the ends of names that it
is asked about, and a program with its arguments, quoted as for a shell, which does not read them.  Of such a server it
is not known that it reads one file only, so a question to it waits behind all that changes any.  A program that is not
there is refused before any call is run; one that fails later fails no call.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import attrs

from toolrt.cli.screen._escape import on_one_line
from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.plugins import lsp

_KNOWN = {
    "ruff": lsp.LanguageServer("ruff", ["ruff", "server"], suffixes=[".py", ".pyi"], reads="file"),
    "ty": lsp.LanguageServer("ty", ["ty", "server"], suffixes=[".py", ".pyi"]),
}

_WRITTEN = re.compile(r"((?:\.[A-Za-z0-9_+-]+)(?:,\.[A-Za-z0-9_+-]+)*)=(.*)", re.DOTALL)


def language_servers_of(commands: Sequence[str]) -> list[lsp.LanguageServer]:
    """The servers that the options name.

    Args:
        commands: of each ``--lsp``.

    Raises:
        InputRefused: a command cannot be read, its program is not there, or two servers share a name.
    """
    servers: list[lsp.LanguageServer] = []
    for text in commands:
        server = _server(text)
        if any(other.name == server.name for other in servers):
            why = f"expected distinct servers, got two named {server.name!r}"
            raise InputRefused(f"--lsp {on_one_line(text, 100)}", why, "Name each once.")
        servers.append(server)
    return servers


def _server(text: str) -> lsp.LanguageServer:
    option = f"--lsp {on_one_line(text, 100)}"
    remedy = f"Write {' or '.join(_KNOWN)}, or SUFFIXES=COMMAND, such as --lsp '.go=gopls serve'."
    written = _WRITTEN.fullmatch(text)
    known = _KNOWN.get(text)
    if known is not None:
        server = known
    elif written is None:
        raise InputRefused(option, "expected a known server, or the ends of names and a program", remedy)
    else:
        try:
            command = shlex.split(written[2])
        except ValueError as error:
            raise InputRefused(option, f"it cannot be read: {error}", remedy) from None
        if not command:
            raise InputRefused(option, "expected a program, got nothing", remedy)
        name = re.sub(r"[^A-Za-z0-9_.+-]", "_", Path(command[0]).name)[:32]
        try:
            server = lsp.LanguageServer(name, command, suffixes=written[1].split(","))
        except DefinitionRefused as error:
            raise InputRefused(option, str(error), remedy) from None
    program, *arguments = server.command or ("",)
    found = shutil.which(program)
    if found is None:
        why = f"there is no program {on_one_line(program, 100)!r}"
        raise InputRefused(option, why, "Install it, or give its path.")
    # The same program wherever it is started.
    return attrs.evolve(server, command=(os.path.abspath(found), *arguments))
