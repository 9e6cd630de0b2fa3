"""The tool that a model asks for what language servers find.

Rules.
    1. It claims READ on the file, so in one lane it is ordered after edits of a lower index and before later ones, and
       it asks about what then stands in the file, whatever the servers were told before.
    2. Where a server reads other files as well, it claims READ on all of the workspace and runs alone: the lane before
       has ended, so servers know of all that was changed.
    3. Servers make no call fail: the answer names what is missing.  It fails only for what is no file to ask
       about.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Mapping
from typing import Any, Protocol

from toolrt.model import READ, Claim, Diagnostic, Diagnostics, State, Tool
from toolrt.plugins.lsp._checked import Checked
from toolrt.plugins.lsp._server import LanguageServer
from toolrt.workspace import CallContext, FileProblem, Wanted, Workspace, held, noted, noted_no_change
from toolrt.workspace.tools._tools import schema_of

#: How many findings one answer shows, unless the call says another number; and at most.
_LIMIT = 100
_LIMIT_MOST = 1000

#: Characters of one finding.
_LINE_LONGEST = 500


class _Servers(Protocol):
    """What the tool uses of `LanguageServers`."""

    @property
    def workspace(self) -> Workspace: ...

    @property
    def servers(self) -> tuple[LanguageServer, ...]: ...

    async def check(self, path: str, content: bytes) -> Checked: ...


async def diagnostics(lsp: _Servers, ctx: CallContext, path: str, limit: int = _LIMIT) -> str:
    """Return the errors and warnings that language servers find in a file as it is now.

    path is relative to the working directory, or absolute. Findings are in the order of their places, one a line:
    path:line:column: severity code message (source). At most limit are shown. Where a server does not answer in time,
    the last lines say so: then it is not known whether it would find more.
    """
    if isinstance(limit, bool) or not 1 <= limit <= _LIMIT_MOST:
        raise FileProblem("limit", f"a number from 1 to {_LIMIT_MOST}", repr(limit), "Ask for fewer.")
    identity = held(lsp.workspace, ctx, path, READ)
    noted_no_change(ctx)
    content = (await lsp.workspace.files.scan(ctx, identity)).content
    checked = await lsp.check(identity.path, content)
    if checked.answered:
        noted(ctx, Diagnostics, checked.path, checked.findings)
    return "\n".join(_shown(lsp, checked, limit))


def _shown(lsp: _Servers, checked: Checked, limit: int) -> list[str]:
    lines = [_line(checked.path, finding) for finding in checked.findings[:limit]]
    if len(checked.findings) > limit:
        lines.append(f"({len(checked.findings) - limit:,} more are not shown)")
    if checked.answered and not lines:
        lines.append(f"{checked.path}: nothing found by {', '.join(checked.answered)}")
    lines.extend(f"[not known from {problem}]" for problem in checked.problems)
    if not lines:
        known = ", ".join(dict.fromkeys(suffix for server in lsp.servers for suffix in server.suffixes))
        lines.append(f"{checked.path}: no language server is for this file; there are some for {known or 'none'}")
    return lines


def _line(path: str, finding: Diagnostic) -> str:
    words = [finding.severity.name.lower(), *([finding.code] if finding.code else []), finding.message]
    source = f" ({finding.source})" if finding.source else ""
    text = " ".join(" ".join(words).split())
    if len(text) > _LINE_LONGEST:
        text = text[: _LINE_LONGEST - 3] + "..."
    return f"{path}:{finding.line}:{finding.column}: {text}{source}"


def diagnostics_tool(lsp: _Servers) -> Tool:
    """The tool ``diagnostics`` of these servers."""
    return Tool(
        name="diagnostics",
        function=functools.partial(diagnostics, lsp),
        safe=True,
        claims=functools.partial(_claims, lsp),
        description=inspect.getdoc(diagnostics) or "",
        schema=schema_of(diagnostics),
        owner=lsp.workspace,
        alone=_reads_all(lsp),
    )


def _reads_all(lsp: _Servers) -> bool:
    return any(server.reads == "workspace" for server in lsp.servers)


def _claims(lsp: _Servers, input: Mapping[str, Any], state: State) -> tuple[Claim, ...]:
    workspace = lsp.workspace
    claims = workspace.claims(input["path"], state, READ)
    if not _reads_all(lsp):
        return claims
    whole = workspace.claims(workspace.disk.root, State(), READ, wanted=Wanted.DIRECTORY, subtree=True)
    return tuple(dict.fromkeys((*whole, *claims)))
