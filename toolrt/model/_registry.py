"""The tools a model may call, by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator
from typing import Any

from toolrt._plain import stable_text
from toolrt.errors import DefinitionRefused
from toolrt.model._call import ToolCall
from toolrt.model._tool import Tool

__all__ = ["Registry"]


class Registry:
    """An immutable collection of tools with distinct names, in the order given.

    Raises:
        DefinitionRefused: something is not a tool, two tools share a name, or a tool's type hints have no schema.
        MissingExtra: a tool's schema must be derived and the ``schema`` extra is not installed.
    """

    def __init__(self, tools: Iterable[Tool] = ()) -> None:
        self._tools: dict[str, Tool] = {}
        if not isinstance(tools, Iterable):
            raise DefinitionRefused("a registry", "a list of tools", tools)
        for tool in tools:
            if not isinstance(tool, Tool):
                raise DefinitionRefused("a registry's tool", "a function decorated with @toolrt.tool", tool)
            if tool.name in self._tools:
                raise DefinitionRefused("a registry", "tools with distinct names", f"two tools named {tool.name!r}")
            tool.validator  # noqa: B018  a definition that cannot work is refused here, not at the first call
            self._tools[tool.name] = tool
        #: The owners of the resources that the tools claim, each once, in the tools' order.
        self.owners: tuple[Any, ...] = tuple(
            {id(tool.owner): tool.owner for tool in self._tools.values() if tool.owner is not None}.values()
        )

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def get(self, name: object) -> Tool | None:
        """The tool of that name, or None."""
        # A kind of text may have a hash of its own.
        return self._tools.get(str.__str__(name)) if isinstance(name, str) else None

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names, in order."""
        return tuple(self._tools)

    def reads_in(self, calls: Iterable[ToolCall]) -> int:
        """How many of `calls` share the batch's read budget; at least 1 (``open_batch(expected_reads=...)``)."""
        tools = (self.get(call.name) for call in calls)
        return max(1, sum(1 for tool in tools if tool is not None and tool.shares_read_budget))

    def nearest(self, name: object) -> list[str]:
        """Up to three names that look most like `name`, best first."""
        return difflib.get_close_matches(stable_text(name, str), self._tools, n=3, cutoff=0.5)

    def __repr__(self) -> str:
        return f"Registry({', '.join(self._tools)})"
