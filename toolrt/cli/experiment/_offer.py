"""What the calls of a recorded response may name: the tools of a workspace, and what options add to them.

Rules.  The file tools and ``parallel_edit_files`` are always there; a shell, code intelligence, language servers and
MCP servers only where they were asked for, because each can do more, needs an extra, or takes time to begin.  Services
that keep up with files hear of each lane in the order in which they are listed here.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence

import attrs

from toolrt.model import Registry, Services, Tool
from toolrt.plugins import code, lsp, mcp
from toolrt.services import parallel_edit_tool, shell_tool
from toolrt.workspace import Workspace


def file_tools(files: Workspace) -> list[Tool]:
    """The tools that need nothing but the files."""
    return [*files.tools(), parallel_edit_tool(files)]


@attrs.frozen
class ToolOptions:
    """What options add."""

    shell: bool = False
    #: Whether the shell's commands reach the workspace alone.
    sandbox: bool = False
    #: Symbols, calls and search.
    code: bool = False
    language_servers: Sequence[lsp.LanguageServer] = ()
    mcp_servers: Sequence[mcp.McpServer] = ()


@attrs.frozen
class RuntimeOptions:
    """What a runtime is given."""

    registry: Registry
    services: Services


@contextlib.asynccontextmanager
async def offered(files: Workspace, wanted: ToolOptions) -> AsyncIterator[RuntimeOptions]:
    """The tools and services, for as long as the block lasts.

    Raises:
        InputRefused: a server cannot be used.
        DefinitionRefused: a sandbox was asked for, and there can be none.
        MissingExtra: one is needed that is not installed.
    """
    tools = file_tools(files)
    if wanted.shell:
        tools.append(shell_tool(files, sandbox=wanted.sandbox))
    index = None
    async with contextlib.AsyncExitStack() as stack:
        hooks = []
        if wanted.code:
            index = code.CodeIndex(files)
            stack.callback(index.close)
            hooks.append(index.after_lane)
            tools += index.tools()
        servers = None
        if wanted.language_servers:
            servers = await stack.enter_async_context(lsp.LanguageServers(files, wanted.language_servers))
            hooks.append(servers.after_lane)
            tools += servers.tools()
        if wanted.mcp_servers:
            tools += await stack.enter_async_context(mcp.connect(wanted.mcp_servers, owner=files))
        yield RuntimeOptions(Registry(tools), Services(graph=index, search=index, lsp=servers, after_lane=hooks))
