"""A hand that changes files of one workspace, each time as another call of a batch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from toolrt.model import EVERYTHING, State
from toolrt.workspace import Wanted, Workspace


def context(batch_id: str = "batch", call_index: int = 0, claims: Any = (EVERYTHING,)) -> Any:
    return SimpleNamespace(
        batch_id=batch_id, call_index=call_index, call_id=f"id{call_index}", state=State(), claims=tuple(claims)
    )


def entry(workspace: Workspace, path: str) -> Any:
    return workspace.identify(path, None, Wanted.ENTRY)


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
