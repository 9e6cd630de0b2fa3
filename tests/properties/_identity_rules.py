"""A context belongs to one call, and its working directory changes by modifier only."""

from __future__ import annotations

import sys
from contextlib import AbstractContextManager, ExitStack
from typing import Any

import trio

import toolrt
from tests.properties._rule import Variant, calls_of, only_ending
from toolrt import Registry, Runtime, State, ToolContext, ToolOutput
from toolrt.invariants import patched


def identities() -> None:
    """A call's context says its own identity before and after it waits."""

    @toolrt.tool(safe=True)
    async def who(ctx: ToolContext, seconds: float) -> list[Any]:
        before = (ctx.call_id, ctx.call_index, ctx.batch_id)
        await trio.sleep(seconds)
        return [before, (ctx.call_id, ctx.call_index, ctx.batch_id)]

    async def program() -> Any:
        done = await Runtime(Registry([who])).run(calls_of(*(("who", {"seconds": s}) for s in (0.2, 0.1, 0.1))))
        return [result.content for result in done.results]

    found = only_ending(program)
    assert found == [[(f"id{index}", index, "batch-1")] * 2 for index in range(3)]


class CurrentCall:
    """The seed's way: the call's id is set on one shared context as a call starts."""

    def __init__(self) -> None:
        self.latest: Any = None

    def set(self, make: Any) -> Any:
        def started(context: ToolContext, call: Any, *rest: Any) -> None:
            self.latest = call
            make(context, call, *rest)

        return started

    def __call__(self) -> AbstractContextManager[Any]:
        stack = ExitStack()
        stack.enter_context(patched(ToolContext, "__init__", self.set))
        stack.enter_context(patched(ToolContext, "call_id", lambda _: property(lambda _: self.latest.call_id)))
        stack.enter_context(patched(ToolContext, "call_index", lambda _: property(lambda _: self.latest.call_index)))
        return stack


def working_directories() -> None:
    """Relative names mean what they meant when the call's lane began."""

    @toolrt.tool(safe=True)
    async def here(ctx: ToolContext) -> str:
        await trio.lowlevel.checkpoint()
        return str(ctx.state.working_dir)

    @toolrt.tool(safe=True)
    async def go(ctx: ToolContext, path: str) -> ToolOutput:
        change_now(ctx, path)
        await trio.lowlevel.checkpoint()
        return ToolOutput("went", modifiers=[lambda state: state.replace(working_dir=path)])

    async def program() -> Any:
        done = await Runtime(Registry([here, go])).run(
            calls_of(("here", {}), ("go", {"path": "src"}), ("here", {}), ("go", {"path": "docs"}), ("here", {}))
        )
        return [result.content for result in done.results], done.state

    answers, state = only_ending(program)
    assert answers == ["None", "went", "None", "went", "None"]
    assert state == State(working_dir="docs")


def change_now(ctx: ToolContext, path: str) -> None:
    """What a tool does that keeps to the rule: nothing before its result."""


class SharedDirectory:
    """The seed's way: one working directory behind a lock, written by whoever changes it."""

    def __call__(self) -> AbstractContextManager[Any]:
        now: list[str | None] = [None]

        def write(_: Any) -> Any:
            def change(ctx: ToolContext, path: str) -> None:
                now[0] = path

            return change

        def read(_: Any) -> Any:
            return property(lambda self: State(working_dir=now[0]), lambda self, value: None)

        def reset(make: Any) -> Any:
            def open_one(runtime: Runtime, *args: Any) -> None:
                now[0] = None
                make(runtime, *args)

            return open_one

        stack = ExitStack()
        stack.enter_context(patched(sys.modules[__name__], "change_now", write))
        stack.enter_context(patched(ToolContext, "state", read))
        stack.enter_context(patched(Runtime, "__init__", reset))
        return stack


RULES = {"identity": identities, "working directory": working_directories}


VARIANTS: dict[str, Variant] = {
    "the id of the call is set on one shared context": Variant(
        "identity", CurrentCall(), r"\('id0', 0, 'batch-1'\), \('id1', 1, 'batch-1'\)"
    ),
    "the working directory is written at once": Variant(
        "working directory", SharedDirectory(), r"\['docs', 'went', 'docs', 'went', 'docs'\]"
    ),
}
