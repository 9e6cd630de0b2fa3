"""What a call of a file tool claims and reports, and how it is refused."""

from __future__ import annotations

from typing import Any

import pytest

from toolrt.model import State
from toolrt.workspace import FileProblem


class Told:
    """Keeps the events and the accesses that are reported."""

    def __init__(self) -> None:
        self.events: list[tuple[str, dict[str, Any]]] = []
        self.accesses: list[tuple[tuple[Any, ...], bool]] = []

    def event(self, kind: str, fields: Any) -> None:
        self.events.append((kind, dict(fields)))

    def access(self, resource: Any, write: bool) -> None:
        self.accesses.append((tuple(resource), write))


async def refusal(call, tree, name, **input):
    """The refusal of a call, which must have changed nothing."""
    before = tree.workspace.snapshot()
    with pytest.raises(FileProblem) as caught:
        await call(tree, name, **input)
    assert tree.workspace.snapshot() == before
    assert tree.root not in str(caught.value)
    assert tree.outside not in str(caught.value)
    return caught.value


def claims(tree, name, **input):
    tool = next(tool for tool in tree.workspace.tools() if tool.name == name)
    return tool.claims_for(input, State())
