"""What the complaints need: every test is held under many schedules, in virtual time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import attrs
import pytest
import trio

import toolrt
from toolrt import Registry, Runtime, ToolCall, invariants, sim


def _laws(execution: sim.Execution) -> list[Any]:
    if execution.error is not None:
        raise AssertionError(f"{type(execution.error).__name__}: {execution.error}") from execution.error
    return invariants.check(execution.trace)


@pytest.fixture
def everywhere() -> Callable[..., Any]:
    """Run a program under many schedules; it must pass in each, give the same value in all, and keep all laws."""

    def run(program: Callable[[], Awaitable[Any]], executions: int = 40) -> Any:
        values: dict[str, Any] = {}

        def check(execution: sim.Execution) -> list[Any]:
            values[repr(execution.value)] = execution.value
            return _laws(execution)

        report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), executions), check)
        assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
        first = sim.run(program)
        assert check(first) == []
        assert len(values) == 1, f"timing decides the value: {list(values)}"
        return first.value

    return run


@attrs.define
class Kit:
    """Shortens the making of tools and batches."""

    def tool(self, name: str, body: Callable[..., Any], **promises: Any) -> toolrt.Tool:
        """A tool whose input is not looked at."""
        return toolrt.tool(name=name, schema=None, **promises)(body)

    def runtime(self, *tools: Any, **options: Any) -> Runtime:
        """A runtime of these tools."""
        return Runtime(Registry(tools), **options)

    def calls(self, *names: str) -> list[ToolCall]:
        """One call for each name; the ids are numbered."""
        return [ToolCall(f"id-{index}", name) for index, name in enumerate(names)]

    def sleeping(self, name: str, seconds: float, answer: Any = None, **promises: Any) -> Any:
        """A tool that takes its time and then answers; safe unless it says otherwise."""

        async def body(ctx: Any) -> Any:
            await trio.sleep(seconds)
            return name if answer is None else answer

        return self.tool(name, body, **({"safe": True} | promises))

    def changing(self, name: str, change: Callable[[Any], Any], seconds: float = 0, **promises: Any) -> Any:
        """A tool that returns one modifier."""

        async def body(ctx: Any) -> toolrt.ToolOutput:
            await trio.sleep(seconds)
            return toolrt.ToolOutput(name, modifiers=[change])

        return self.tool(name, body, **({"safe": True} | promises))

    def failing(self, name: str, text: str, seconds: float = 0, **promises: Any) -> Any:
        """A tool that raises."""

        async def body(ctx: Any) -> None:
            await trio.sleep(seconds)
            raise RuntimeError(text)

        return self.tool(name, body, **({"safe": True} | promises))

    def outcomes(self, results: Any) -> list[str]:
        """The outcomes, as words."""
        return [result.outcome.value for result in results]


@pytest.fixture
def kit() -> Kit:
    """A `Kit`."""
    return Kit()
