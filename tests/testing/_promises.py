"""Tools that promise what they are told to, and what was broken."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import pytest
import trio

from toolrt import tool
from toolrt.model import Tool
from toolrt.testing import check_tool
from toolrt.workspace import Workspace

FILES = {"a.txt": "one", "b.txt": "two"}

Made = TypeVar("Made")


class Promises:
    """Tools, each with the promise that it breaks: cases of one test."""

    def __init__(self) -> None:
        self.cases: list[Any] = []

    def broken(
        self, promise: str | None, *words: str, inputs: Sequence[Any] = ({},), **options: Any
    ) -> Callable[[Made], Made]:
        """A tool, or what makes one, that breaks this promise and no other; None: it keeps them all.

        Args:
            words: are in what the check says of it.
            inputs, options: as `check_tool` takes them.
        """

        def add(made: Made) -> Made:
            name = getattr(made, "__name__", None) or getattr(made, "name", "tool")
            self.cases.append(pytest.param(made, promise, words, list(inputs), options, id=name))
            return made

        return add

    def kept(self, inputs: Sequence[Any] = ({},), **options: Any) -> Callable[[Made], Made]:
        """A tool, or what makes one, that keeps its promises."""
        return self.broken(None, inputs=inputs, **options)


def check(made: Any, promise: str | None, words: tuple[str, ...], inputs: list[Any], options: dict[str, Any]) -> None:
    """Hold a case of `Promises` against what `check_tool` says; several inputs may break one promise several times."""
    found = check_tool(made, inputs, **options)
    names = promises_of(found)
    assert (names if len(inputs) == 1 else list(dict.fromkeys(names))) == ([] if promise is None else [promise]), found
    for word in words:
        assert word in str(found[0])


def file_tool(name: str, **promises: Any) -> Any:
    """A maker of a tool that appends to, or reads, the file it is told."""

    def make(workspace: Workspace) -> Tool:
        claims = promises.get("claims")

        @tool(
            name=name,
            safe=promises.get("safe", False),
            claims=(lambda input, state: claims(workspace, input, state)) if claims else None,
            schema=None,
        )
        async def touch(ctx: Any, path: str, read: bool = False) -> str:
            entry = tuple(path.split("/"))
            content = (await workspace.disk.read(entry, 1000)).content
            if not read:
                await workspace.disk.revise(entry, 1000, lambda _: content + b"!")
            return content.decode()

        return touch

    make.__name__ = name
    return make


def promises_of(broken: Any) -> list[str]:
    """The names of the promises that were broken."""
    return [found.promise for found in broken]


def counter_tool(**promises: Any) -> Any:
    """A maker of a tool that counts in a dict, with a checkpoint between looking and writing."""

    def make() -> Tool:
        counts: dict[str, int] = {}

        @tool(schema=None, **promises)
        async def count(ctx: Any, name: str) -> int:
            seen = counts.get(name, 0)
            await trio.lowlevel.checkpoint()
            counts[name] = seen + 1
            return counts[name]

        return count

    return make
