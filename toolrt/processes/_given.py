"""The checks that the descriptions of all servers share."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from toolrt.errors import DefinitionRefused


def check_server(server: Any, what: str, example: str, *, seconds: Sequence[str], whole: Sequence[str]) -> None:
    """Check what a server is started by: its `command` with its `env`, or its `server` in this process instead.

    Args:
        what: what messages call the server.
        example: a command, as a user would write it.
        seconds: the names of its fields that are seconds above 0.
        whole: the names of its fields that are whole numbers.

    Raises:
        DefinitionRefused: a value is none of what is expected.
    """
    command, env = server.command, server.env
    ways = {"a command": command, "a server": server.server}
    if hasattr(server, "url"):
        ways["a url"] = server.url
    given = [way for way, value in ways.items() if value is not None]
    if len(given) != 1:
        got = "both" if len(given) == 2 else "all" if given else "neither"
        raise DefinitionRefused(what, f"either {' or '.join(ways)}", got)
    if command is not None and not (
        isinstance(command, Sequence)
        and not isinstance(command, str)
        and all(isinstance(word, str) and "\0" not in word for word in command)
        and "".join(command[:1])
    ):
        raise DefinitionRefused(f"{what}: command", f"a program and its arguments, one each: {example}", command)
    if not isinstance(env, Mapping) or not all(isinstance(key, str) for key in env):
        raise DefinitionRefused(f"{what}: env", "values by name", env)
    if not all(isinstance(value, str) for value in env.values()):
        raise DefinitionRefused(f"{what}: env", "texts by name", sorted(env))
    for name in seconds:
        value = getattr(server, name)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= sys.float_info.max:
            raise DefinitionRefused(f"{what}: {name}", "seconds above 0", value)
    for name in whole:
        value = getattr(server, name)
        if isinstance(value, bool) or not isinstance(value, int) or value < 0:
            raise DefinitionRefused(f"{what}: {name}", "a whole number, 0 or more", value)


def check_servers(what: str, servers: Sequence[Any], kind: type[Any]) -> None:
    """Check that `servers` are of that kind, each with a name of its own; `what` is their name in the message.

    Raises:
        DefinitionRefused: they are not.
    """
    names = set()
    for server in servers:
        if not isinstance(server, kind):
            raise DefinitionRefused(what, f"a list of {kind.__name__}", server)
        if server.name in names:
            raise DefinitionRefused(what, "distinct names", f"two servers named {server.name!r}")
        names.add(server.name)
