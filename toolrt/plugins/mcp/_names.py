"""What models call a server's tools.

Rules.  A name is the server's prefix and the tool's own name, in the letters that all providers take.  A name that
would be too long, or is another tool's already, is refused until the caller gives one (`rename`): no tool is renamed in
silence, and none answers for another.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from toolrt.errors import InputRefused
from toolrt.plugins.mcp._port import Offered
from toolrt.plugins.mcp._server import McpServer

#: Characters of a tool's name that OpenAI takes; Anthropic takes more.
_LONGEST = 64

#: What stands in no name.
OTHER_LETTERS = re.compile(r"[^A-Za-z0-9_-]")


def chosen(server: McpServer, offered: Sequence[Offered]) -> list[Offered]:
    """The tools to take of a server, in its order.

    Raises:
        InputRefused: it offers two of one name, or not one that was asked for.
    """
    what = f"MCP server {server.name!r}"
    names = [tool.name for tool in offered]
    for place, name in enumerate(names):
        if name in names[:place]:
            why = f"it offers two tools named {name!r}: expected distinct names, as the protocol says"
            raise InputRefused(what, why, "Have the server corrected, or do without it.")
    wanted = [*(server.only or ()), *server.rename]
    for name in wanted:
        if name not in names:
            known = ", ".join(map(repr, names[:50])) or "none"
            option = "only" if name in (server.only or ()) else "rename"
            raise InputRefused(what, f"{option} has {name!r}, and it offers {known}", f"Correct {option}=.")
    return [tool for tool in offered if server.only is None or tool.name in server.only]


def named(tools: Iterable[tuple[McpServer, Offered]]) -> list[str]:
    """The name of each, in order.

    Raises:
        InputRefused: two would have one name, or a name cannot be sent to a provider.
    """
    found: dict[str, str] = {}
    for server, offered in tools:
        what = f"tool {offered.name!r} of MCP server {server.name!r}"
        name = server.rename.get(offered.name)
        if name is None:
            prefix = f"{server.name}__" if server.prefix is None else server.prefix
            name = prefix + OTHER_LETTERS.sub("_", offered.name)
        if not 1 <= len(name) <= _LONGEST or OTHER_LETTERS.search(name):
            why = f"expected a name of 1 to {_LONGEST} letters, digits, _ and -, got {name!r}"
            raise InputRefused(what, why, f"Give it one: rename={{{offered.name!r}: ...}}, or leave it out by only=.")
        if name in found:
            why = f"its name {name!r} is that of {found[name]}"
            raise InputRefused(what, why, f"Give one of them another: rename={{{offered.name!r}: ...}}, or prefix=.")
        found[name] = what
    return list(found)
