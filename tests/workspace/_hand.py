"""A hand that changes files of one workspace, each time as another call of a batch."""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import trio

from toolrt import Registry, Runtime, ToolCall, serial
from toolrt.model import EVERYTHING, State, ToolResult
from toolrt.workspace import FileProblem, MemoryDisk, Wanted, Workspace
from toolrt.workspace.journal._history_store import HistoryStore


def context(batch_id: str = "batch", call_index: int = 0, claims: Any = (EVERYTHING,)) -> Any:
    return SimpleNamespace(
        batch_id=batch_id, call_index=call_index, call_id=f"id{call_index}", state=State(), claims=tuple(claims)
    )


def entry(workspace: Workspace, path: str) -> Any:
    return workspace.identify(path, None, Wanted.ENTRY)


async def write(workspace: Workspace, path: str, content: bytes | None, batch: str = "batch", index: int = 0) -> None:
    await workspace.files.revise(context(batch, index), workspace.identify(path), lambda found: content)


def ended(workspace: Workspace) -> None:
    """As when its process ends."""
    store_of(workspace).close()


def killed(workspace: Workspace) -> None:
    """As when its process is killed: nothing more is said, and its locks are free."""
    store = store_of(workspace)
    store._log._ended.clear()
    store._log._unsaid.clear()
    store._log._blind_unsaid = False
    store.close()


def store_of(workspace: Workspace) -> HistoryStore:
    store = workspace.history.store
    assert isinstance(store, HistoryStore)
    return store


def results(workspace: Workspace, *calls: tuple[str, dict[str, Any]], batch: str = "batch") -> list[ToolResult]:
    """What came of these calls, made as one batch, one after the other."""

    async def main() -> list[ToolResult]:
        async with Runtime(Registry(workspace.tools()), lanes=serial).open_batch(batch_id=batch) as opened:
            for at, (name, input) in enumerate(calls):
                opened.submit(ToolCall(str(at), name, input))
            opened.seal()
            async for _ in opened:
                pass
        assert opened.outcome is not None
        return list(opened.outcome.results)

    return trio.run(main)


class Interrupted:
    """A disk in memory that fails, or whose caller is cancelled, right before the effect with a number."""

    def __init__(self, content: dict[str, str], at: int | None = None, how: str = "fault") -> None:
        self.workspace = Workspace(MemoryDisk(content, fault=self._fault))
        #: How many effects there were.
        self.effects = 0
        self._at = at
        self._how = how
        self._scope = trio.CancelScope()

    def _fault(self, effect: str, path: str) -> None:
        self.effects += 1
        if self.effects - 1 == self._at:
            if self._how == "fault":
                raise OSError(errno.EIO, "broken")
            self._scope.cancel()

    async def done(self, operation: Callable[[], Awaitable[object]]) -> bool:
        """Run the operation; whether it came to its end."""
        with self._scope:
            try:
                await operation()
            except FileProblem:
                return False
        return not self._scope.cancelled_caught


class Hand:
    """Changes files of one workspace, each time as another call of a batch."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.calls = 0
        #: Whose calls they are unless it is said.
        self.batch = "batch"

    def context(self, batch: str | None) -> Any:
        self.calls += 1
        return context(batch or self.batch, self.calls)

    async def write(self, path: str, content: bytes | None, batch: str | None = None) -> None:
        identity = self.workspace.identify(path)
        await self.workspace.files.revise(self.context(batch), identity, lambda found: content)

    async def move(self, source: str, target: str, batch: str | None = None) -> None:
        ends = entry(self.workspace, source), entry(self.workspace, target)
        await self.workspace.files.move(self.context(batch), *ends)

    async def remove(self, path: str, batch: str | None = None) -> None:
        await self.workspace.files.remove(self.context(batch), entry(self.workspace, path), recursive=True)

    async def make_dirs(self, path: str, batch: str | None = None) -> None:
        identity = self.workspace.identify(path, None, Wanted.DIRECTORY)
        await self.workspace.files.make_dirs(self.context(batch), identity)
