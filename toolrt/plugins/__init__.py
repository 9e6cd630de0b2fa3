"""Parts that the core does without: code intelligence, language servers, MCP, telemetry, SDKs, agent frameworks.

Rules.
    1. The core imports no plugin.  It knows what a tool asks of one (`toolrt.model.Services`), and a program hands the
       plugin's object over: ``Services(graph=index, lsp=servers)``, ``Runtime(telemetry=...)``.
    2. The built-in plugins stand in a table and are imported at their first use: ``toolrt.plugins.lsp``, or
       ``load("lsp")``.  They are found without any installed metadata, and imported without their extra; a class or
       function that needs the extra raises `MissingExtra` when it is called.
    3. Other distributions add plugins by an entry point of the group ``toolrt.plugins``.  None of them can take a
       built-in name.

The shell stands in `toolrt.services` and the search for text in files in `toolrt.workspace`: they need nothing but the
core, and the laws name them.  The search over symbols belongs to the plugin ``code``.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from toolrt.errors import InputRefused, MissingExtra

if TYPE_CHECKING:
    from toolrt.plugins import (
        agent_framework,
        anthropic,
        code,
        langgraph,
        llama_index,
        lsp,
        mcp,
        openai,
        openai_agents,
        otel,
        pydantic_ai,
    )

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "agent_framework",
    "anthropic",
    "available",
    "code",
    "langgraph",
    "llama_index",
    "load",
    "lsp",
    "mcp",
    "openai",
    "openai_agents",
    "otel",
    "pydantic_ai",
]

#: The built-in plugins: the name of each, which is its module's and that of the extra that all of it needs.
BUILT_IN = {
    name: name
    for name in (
        "agent_framework",
        "anthropic",
        "code",
        "langgraph",
        "llama_index",
        "lsp",
        "mcp",
        "openai",
        "openai_agents",
        "otel",
        "pydantic_ai",
    )
}

#: The group of entry points under which other distributions add theirs.
ENTRY_POINTS = "toolrt.plugins"


def available() -> tuple[str, ...]:
    """The names that `load` takes: the built-in ones first, then the entry points', in the order of the alphabet.

    Checkpoint: never.  It reads the metadata of installed distributions and imports none of them.
    """
    return (*BUILT_IN, *sorted({point.name for point in _installed()} - BUILT_IN.keys()))


def load(name: str) -> Any:
    """Import a plugin.

    Args:
        name: one of `available`.

    Returns:
        The module of a built-in plugin; of another one, the object that its entry point names.

    Raises:
        MissingExtra: a built-in plugin needs a package that its extra installs.
        InputRefused: there is no plugin of this name, several distributions claim the name, or the plugin cannot be
            imported; the text names the plugin and its distribution, and what was raised is the cause.

    Checkpoint: never.

    Example::

        lsp = plugins.load("lsp")
        async with lsp.LanguageServers(workspace, [lsp.LanguageServer("ty", ["ty", "server"])]) as servers: ...
    """
    if name in BUILT_IN:
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ImportError as error:
            raise MissingExtra(f"plugin {name!r}", BUILT_IN[name]) from error
    points = [point for point in _installed() if point.name == name]
    if not points:
        raise InputRefused(f"plugin {name!r}", "it is not installed", f"Choose one of {', '.join(available())}.")
    owners = [point.dist.name if point.dist is not None else point.value for point in points]
    if len(points) > 1:
        raise InputRefused(f"plugin {name!r}", f"several distributions claim it: {', '.join(owners)}", "Keep one.")
    try:
        return points[0].load()
    except Exception as error:
        why = f"{points[0].value!r} of distribution {owners[0]!r} cannot be imported ({type(error).__name__}: {error})"
        raise InputRefused(f"plugin {name!r}", why, "Repair or remove that distribution.") from error


def _installed() -> tuple[importlib.metadata.EntryPoint, ...]:
    return tuple(importlib.metadata.entry_points(group=ENTRY_POINTS))


def __getattr__(name: str) -> Any:
    """Import a built-in plugin at its first use."""
    if name in BUILT_IN:
        return load(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *BUILT_IN})
