"""Exercises whose answer is a tool: they check its promises and its results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import trio
from trio.lowlevel import checkpoint

from toolrt import sim, view
from toolrt.model import Registry, State, Tool, ToolCall
from toolrt.runtime import Runtime
from toolrt.teaching.lab._by_program import tried
from toolrt.teaching.lab._exercise import Finding, Graders, told
from toolrt.workspace import Changed, MemoryDisk, Workspace


def _promises(tool: Any, inputs: list[Any], **options: Any) -> Finding:
    """Check the promises of a tool, as `toolrt.testing.check_tool` does."""
    # It needs Hypothesis and pytest; what it raises where they are missing names the extra.
    from toolrt.testing import check_tool

    broken = check_tool(tool, inputs, **options)
    detail = "\n".join(dict.fromkeys(map(str, broken[:3])))
    return Finding(not broken, "it keeps its promises", detail)


# ---------------------------------------------------------------------- pure_counter

_WORDS = ("tea", "tea", "mug", "tea")


def _pure_counter(tool: Any) -> Iterator[Finding]:
    if not isinstance(tool, Tool):
        yield Finding(False, "it is a tool", f"expected a function with @toolrt.tool(...) above it, got {tool!r:.60}")
        return
    state = State({"seen": {"mug": 2}})
    yield _promises(tool, [{"word": "tea"}, {"word": "mug"}], state=state)
    shared = tool.safe is True or tool.claims is not None
    said = "" if shared else "it declares nothing, so every call of it runs alone"
    yield Finding(shared, "calls of it may run beside each other", said)

    async def program() -> Any:
        calls = [ToolCall(str(place), tool.name, {"word": word}) for place, word in enumerate(_WORDS)]
        done = await Runtime(Registry([tool])).run(calls, State({"seen": {"mug": 2}, "mode": "ask"}))
        failed = next((result.error for result in done.results if result.error is not None), None)
        if failed is None and done.state.get("mode") != "ask":
            return "the rest of the state is gone: it had a mode"
        return failed or dict(done.state["seen"])

    wanted = {"mug": 3, "tea": 3}
    report = sim.explore(program, sim.Portfolio(100), lambda execution: execution.value == wanted)
    execution = report.failures[0].execution if report.failures else None
    detail = "" if execution is None else f"after {', '.join(_WORDS)}: expected {wanted}, got {_came(execution)}"
    yield Finding(execution is None, "no word is lost, under any of 100 schedules", detail, execution)


# ---------------------------------------------------------------------- honest_tool

_FILES = {"a.txt": "one\n", "d/b.txt": ""}


def _honest_tool(make: Any) -> Iterator[Finding]:
    disk = MemoryDisk(_FILES)
    tool = make(Workspace(disk))
    if not isinstance(tool, Tool):
        yield Finding(False, "it gives a tool", f"expected make(workspace) to return a tool, got {tool!r:.60}")
        return
    inputs = [{"path": "a.txt", "line": "two"}, {"path": "d/../a.txt", "line": "x"}, {"path": "d/b.txt", "line": "y"}]
    yield _promises(make, inputs, workspace=_FILES)

    async def program() -> Any:
        workspace = Workspace(disk.copy())
        tool = make(workspace)
        calls = [
            ToolCall("0", tool.name, {"path": "a.txt", "line": "two"}),
            ToolCall("1", tool.name, {"path": "d/../a.txt", "line": "three"}),
            ToolCall("2", tool.name, {"path": "./a.txt", "line": "four"}),
            ToolCall("3", tool.name, {"path": "d/b.txt", "line": "five"}),
        ]
        done = await Runtime(Registry([tool])).run(calls, State())
        failed = next((result.error for result in done.results if result.error is not None), None)
        return failed or {name: workspace.snapshot()[name] for name in _FILES}

    wanted = {"a.txt": b"one\ntwo\nthree\nfour\n", "d/b.txt": b"five\n"}
    report = sim.explore(program, sim.Portfolio(60), lambda execution: execution.value == wanted)
    execution = report.failures[0].execution if report.failures else None
    detail = "" if execution is None else f"expected {wanted}, got {_came(execution)}"
    yield Finding(execution is None, "lines stand in call order, whatever the file is called", detail, execution)
    yield _keeps_what_others_write(make)
    yield _does_not_wait(make, disk)


def _keeps_what_others_write(make: Any) -> Finding:
    """Another program adds a line at any moment: it stays, and a call that says ok has added its own."""

    async def program() -> str:
        disk = MemoryDisk(_FILES)
        workspace = Workspace(disk)
        tool = make(workspace)
        entry = workspace.identify("a.txt").entry
        wrote = False

        async def other_program() -> None:
            nonlocal wrote
            await checkpoint()
            try:
                await disk.revise(entry, 1_000, lambda found: (found.content if found else b"") + b"theirs\n")
                wrote = True
            except Changed:
                pass  # the call was quicker; this program would try again

        async with trio.open_nursery() as nursery:
            nursery.start_soon(other_program)
            done = await Runtime(Registry([tool])).run([ToolCall("0", tool.name, {"path": "a.txt", "line": "two"})])
        content = workspace.snapshot()["a.txt"]
        if wrote and b"theirs\n" not in content:
            return f"another program added a line meanwhile, and it is gone: {content!r}"
        if done.results[0].error is None and b"two\n" not in content:
            return f"the call says that it has added its line, and the file has {content!r}"
        return ""

    return tried("a line that another program writes meanwhile is kept", program, most=100)


def _does_not_wait(make: Any, disk: MemoryDisk) -> Finding:
    """Calls on two files may overlap: their lane is one, and neither has a ticket behind the other."""

    async def program() -> None:
        tool = make(Workspace(disk.copy()))
        calls = [ToolCall(str(place), tool.name, {"path": path, "line": "z"}) for place, path in enumerate(_FILES)]
        await Runtime(Registry([tool])).run(calls, State())

    execution = sim.run(program)
    rows = view.call_rows(execution)
    detail = "" if execution.error is None else told(execution.error)
    if len({row["lane"] for row in rows}) > 1:
        detail = "calls on two files have a lane each: one waits for the other"
    elif any(row["waits_for"] for row in rows):
        detail = "a call on one file waits for one on another: it claims more than it touches"
    return Finding(not detail, "calls on two files do not wait for each other", detail, execution if detail else None)


def _came(execution: sim.Execution) -> str:
    return repr(execution.value) if execution.error is None else told(execution.error)


#: What grades each exercise, by name.
BY_TOOL: Graders = {
    "pure_counter": _pure_counter,
    "honest_tool": _honest_tool,
}
