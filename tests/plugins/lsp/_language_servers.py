"""Language servers for tests: the real ones, a double, and batches of edits and questions."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import attrs
import trio

import toolrt
from toolrt import Diagnostic, Outcome, Registry, Runtime, Services, ToolCall, ToolContext, Workspace
from toolrt.invariants import patched
from toolrt.model import Severity
from toolrt.plugins.lsp import LanguageServer, LanguageServers, RecordedServer
from toolrt.runtime import _after_lane


def calls_of(*named: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    """Calls by name and input."""
    return [ToolCall(f"id{number}", name, input) for number, (name, input) in enumerate(named)]


def asks(path: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "diagnostics", {"path": path, **more}


def edits(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old": old, "new": new}


def writes(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def found(path: str, text: str) -> list[Diagnostic]:
    """Each line that says "bad", by the text's own words."""
    return [
        Diagnostic(number, line.index("bad") + 1, f"{line!r} in {path}", Severity.WARNING, "test", "B1")
        for number, line in enumerate(text.split("\n"), 1)
        if "bad" in line
    ]


@toolrt.tool()
async def anything(ctx: ToolContext) -> str:
    """May change everything, and says nothing of it."""
    await trio.lowlevel.checkpoint()
    return "done"


async def ran(
    workspace: Workspace,
    servers: Sequence[LanguageServer],
    *batches: Sequence[tuple[str, dict[str, Any]]],
    limit: int = 10,
) -> list[Any]:
    """The contents of all results."""
    async with LanguageServers(workspace, servers) as lsp:
        registry = Registry([*workspace.tools(), *lsp.tools(), anything])
        given = Services(lsp=lsp, after_lane=[lsp.after_lane])
        runtime = Runtime(registry, limit=limit, services=given)
        contents: list[Any] = []
        for batch in batches:
            done = await runtime.run(calls_of(*batch))
            contents.extend(result.content if result.outcome is Outcome.OK else result.error for result in done.results)
        return contents


def double(**options: Any) -> LanguageServer:
    """A server that is a record; what it finds is `found`, unless `findings` say otherwise."""
    given = {name: options.pop(name) for name in ("answers", "seconds", "lost_after") if name in options}
    record = RecordedServer(options.pop("findings", found), **given)
    return LanguageServer("double", suffixes=[".py"], server=record, **{"reads": "file", **options})


def ruff(**options: Any) -> LanguageServer:
    return LanguageServer("ruff", ["ruff", "server"], suffixes=[".py"], reads="file", wait=60.0, **options)


def ty(**options: Any) -> LanguageServer:
    return LanguageServer("ty", ["ty", "server"], suffixes=[".py"], wait=60.0, **options)


def told_to(server: LanguageServer) -> list[tuple[str, str, str | None]]:
    """What a double was told: the method without its family, the path, and the text or the kind of change."""
    assert isinstance(server.server, RecordedServer)
    return [(method.rpartition("/")[2], path, what) for method, path, what in server.server.told]


def told_at_lane_ends(server: LanguageServer) -> list[tuple[str, str, str | None]]:
    """Of that what it was told of files on the disk."""
    return [one for one in told_to(server) if one[0] == "didChangeWatchedFiles"]


def _by_completion(changes_of: Any) -> Any:
    """Each call's changes are noted as it ends, not by call_index."""
    ended: list[Any] = []

    def noted(self: Any, event: Any) -> None:
        ended.append(event.path)
        keep(self, event)

    keep = ToolContext._keep

    def as_ended(*given: Any) -> Any:
        changes = changes_of(*given)
        if changes is None:
            return None
        order = {path: place for place, path in enumerate(ended)}
        by_end = sorted(changes.changes, key=lambda change: order.get(change.path, 0))
        return attrs.evolve(changes, changes=tuple(by_end))

    as_ended.noted = noted  # type: ignore[attr-defined]
    return as_ended


def as_calls_complete() -> AbstractContextManager[Any]:
    """While it lasts, services hear of a lane's changes in the order in which its calls ended."""
    stack = ExitStack()
    made = _by_completion(_after_lane.changes_of)
    stack.enter_context(patched(_after_lane, "changes_of", lambda _: made))
    stack.enter_context(patched(ToolContext, "_keep", lambda _: made.noted))
    return stack
