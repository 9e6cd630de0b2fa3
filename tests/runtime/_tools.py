"""Small tools for the runtime's tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import trio

import toolrt
from toolrt import READ, WRITE, Claim, Registry, Runtime, ToolCall, ToolContext, ToolOutput, ToolResult


def call(name: str, **input: Any) -> ToolCall:
    """A call whose id is its tool's name."""
    return ToolCall(name, name, input)


def outcomes(results: Any) -> list[str]:
    """The outcomes in order, as words."""
    return [result.outcome.value for result in results]


class Diary:
    """Tools that write down what they do, with the virtual time."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.running: set[str] = set()
        self.most = 0

    def note(self, line: str) -> None:
        self.lines.append(line)

    def tool(self, name: str, seconds: float = 0, **options: Any) -> toolrt.Tool:
        """A tool that takes `seconds`."""

        async def body(ctx: ToolContext) -> str:
            self.note(f"{name}+")
            self.running.add(name)
            self.most = max(self.most, len(self.running))
            try:
                await trio.sleep(seconds)
            finally:
                self.running.discard(name)
                self.note(f"{name}-")
            return name

        return toolrt.tool(name=name, **options)(body)


def claims(*pairs: tuple[str, Any]) -> Callable[[Any, Any], list[Claim]]:
    """A claims function: ``claims(("f", WRITE))``."""
    return lambda input, state: [Claim(resource, mode) for resource, mode in pairs]


def opener(*calls: ToolCall, name: str = "opens", kept: list[Any] | None = None, **options: Any) -> toolrt.Tool:
    """A tool that runs these calls as a sub-batch and answers with how they ended."""

    async def body(ctx: ToolContext) -> list[str]:
        outcome = await ctx.run(calls)
        if kept is not None:
            kept.append(outcome)
        return outcomes(outcome.results)

    return toolrt.tool(name=name, **options)(body)


def runtime(*tools: toolrt.Tool, **options: Any) -> Runtime:
    """A runtime of these tools."""
    return Runtime(Registry(tools), **options)


def setting(name: str, key: str, value: Any, **options: Any) -> toolrt.Tool:
    """A tool whose modifier sets a key."""

    async def body(ctx: ToolContext) -> ToolOutput:
        return ToolOutput(name, modifiers=[lambda state: state.set(key, value)])

    return toolrt.tool(name=name, **options)(body)


__all__ = ["READ", "WRITE", "Diary", "ToolResult", "call", "claims", "opener", "outcomes", "runtime", "setting"]
