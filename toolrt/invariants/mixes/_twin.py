"""The twin disk of a mix whose calls use the tools of a workspace.

Rules.  Each execution has a twin of its own, and so does the oracle.  What it holds stands among the files of the
mix, by path: a text, ``-> `` and the target of a symbolic link, or nothing behind the name of an empty directory.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from toolrt.model import Tool

if TYPE_CHECKING:
    from toolrt.workspace import Planted


def usual_content() -> Mapping[str, Planted]:
    """What the twin of a mix holds that names nothing else: files, one of them by two names, and links."""
    from toolrt.workspace import Directory, HardLink, Symlink

    return {
        "a.txt": "one\ntwo\n",
        "hard.txt": HardLink("a.txt"),
        "d/b.txt": "one\n",
        "link": Symlink("d/b.txt"),
        "way": Symlink("d"),
        "dangling": Symlink("d/new.txt"),
        "e": Directory(),
    }


class TwinDisk:
    """A workspace on a disk in memory.

    Args:
        content: what it holds at first; None: `usual_content`.
        remembers: whether it keeps every version of its files.
    """

    def __init__(self, content: Mapping[str, Any] | None, remembers: bool = False) -> None:
        from toolrt.workspace import MemoryDisk, Workspace

        self._history: list[dict[str, str]] = []
        fault = self._remember if remembers else None
        self._workspace = Workspace(MemoryDisk(usual_content() if content is None else content, fault=fault))

    def _remember(self, effect: str, path: str) -> None:
        self._history.append(self.files)

    @property
    def tools(self) -> list[Tool]:
        """The tools of the workspace."""
        return self._workspace.tools()

    @property
    def files(self) -> dict[str, str]:
        """What it holds, by path."""
        found = self._workspace.snapshot()
        return {
            path: text if isinstance(text, str) else text.decode("utf-8", "replace") for path, text in found.items()
        }

    @property
    def versions(self) -> dict[str, list[str | None]]:
        """What each path held before each effect on the disk; None while it was not there."""
        names = {name for files in self._history for name in files} | set(self.files)
        return {name: [None, *(files.get(name) for files in self._history)] for name in names}

    @property
    def claims_left(self) -> int:
        """How many groups of claims its table still holds."""
        groups: int = self._workspace.claim_table.statistics()["groups"]
        return groups
