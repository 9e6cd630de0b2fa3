"""The files service in the simulator: what shares nothing has one schedule, and the same schedule one trace."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest
import trio

from toolrt import sim
from toolrt.model import READ, WRITE, Registry, State, ToolCall, tool
from toolrt.runtime import Runtime
from toolrt.workspace import FileProblem, MemoryDisk, Workspace


def registry_of(workspace: Workspace) -> Registry:
    """Two plain tools on the service: add a text to a file, and read one."""

    @tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
    async def add(ctx: Any, path: str, text: str) -> str:
        revised = await workspace.files.revise(
            ctx, workspace.identify(path, ctx.state), lambda found: (found or b"") + text.encode()
        )
        return (revised.after or b"").decode()

    @tool(safe=True, claims=lambda input, state: workspace.claims(input["path"], state, READ), owner=workspace)
    async def read(ctx: Any, path: str) -> str:
        return (await workspace.files.read(ctx, workspace.identify(path, ctx.state))).content.decode()

    return Registry([add, read])


def program(*calls: tuple[str, dict[str, str]], then: Any = None) -> Any:
    async def run() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1", "c": "1"}))
        runtime = Runtime(registry_of(workspace))
        done = await runtime.run([ToolCall(f"id{number}", *call) for number, call in enumerate(calls)], State())
        after = await then(workspace) if then is not None else None
        return [result.content for result in done.results], workspace.snapshot(), after

    return run


def add(path: str, text: str) -> tuple[str, dict[str, str]]:
    return "add", {"path": path, "text": text}


def read(path: str) -> tuple[str, dict[str, str]]:
    return "read", {"path": path}


def explored(run: Any) -> sim.Report:
    report = sim.explore(run, strategy=sim.DPOR())
    assert report.complete, report.claim
    assert report.verdict is sim.PASS
    return report


@pytest.mark.parametrize(
    "calls",
    [
        [add("a", "2"), add("b", "2"), add("c", "2")],
        [read("a"), read("a"), read("a")],
        [add("a", "2"), add("./a", "3"), read("a")],
        [add("d/a", "2"), add("e/b", "2")],
    ],
    ids=["different files", "readers of one file", "one file in call order", "created with directories"],
)
def test_calls_that_share_nothing_have_one_schedule(calls):
    """Their accesses are per file: no two orders of their steps differ."""
    report = explored(program(*calls))
    assert (report.executions, len(report.outcomes)) == (1, 1)


async def undo(workspace: Workspace) -> Any:
    [batch] = {one.batch_id for path in "abc" for one in await workspace.history.versions(path)}
    done = await workspace.history.undo(batch)
    return done.paths, workspace.snapshot()


@pytest.mark.seldom
def test_undo_is_the_same_in_every_schedule():
    """Whatever order the batch's files were changed in."""
    report = sim.explore(
        program(add("a", "2"), add("b", "2"), add("a", "3"), add("d/e", "2"), then=undo),
        strategy=sim.Random(sim.RandomWalk(seed=1), 200),
    )
    assert report.verdict is sim.PASS
    assert len(report.outcomes) == 1
    [outcome] = report.outcomes
    assert "'b': b'1'" in str(outcome)


def two_undos_and_an_edit() -> Any:
    async def run() -> Any:
        workspace = Workspace(MemoryDisk({"a": "1", "b": "1"}))
        runtime = Runtime(registry_of(workspace))
        await runtime.run([ToolCall("id", *add("a", "2")), ToolCall("id", *add("b", "2"))], State())
        [batch] = {one.batch_id for one in await workspace.history.versions("a")}
        told: dict[str, str] = {}

        async def undo(name: str) -> None:
            try:
                await workspace.history.undo(batch)
                told[name] = "undone"
            except FileProblem:
                told[name] = "refused"

        async with trio.open_nursery() as nursery:
            nursery.start_soon(undo, "first")
            nursery.start_soon(undo, "second")
            nursery.start_soon(runtime.run, [ToolCall("id", *add("a", "3"))], State())
        assert not workspace.claim_table.busy
        return sorted(told.values()), workspace.snapshot()

    return run


@pytest.mark.seldom
def test_undos_and_edits_at_once_are_ordered():
    """One of two undos happens, or none where the edit came first; never a part of one."""
    report = sim.explore(two_undos_and_an_edit(), strategy=sim.Random(sim.RandomWalk(seed=3), 500))
    assert report.verdict is sim.PASS, report
    edited = "{'a': b'123', 'b': b'12'}"
    both = "{'a': b'13', 'b': b'1'}"
    assert {str(outcome) for outcome in report.outcomes} == {
        f"(['refused', 'refused'], {edited})",
        f"(['refused', 'undone'], {both})",
    }


TRACED = """
import sys
sys.path.insert(0, {path!r})
from tests.workspace.test_files_explored import add, program, read, undo
from toolrt import sim
run = program(add("a", "2"), add("b", "2"), read("a"), add("d/e", "2"), add("d/f", "2"), then=undo)
execution = sim.run(run, policy=sim.RandomWalk(seed=5))
assert execution.error is None, execution.error
print(execution.trace.to_json(), execution.schedule.to_json())
"""


@pytest.mark.seldom
@pytest.mark.process
def test_same_schedule_same_trace_in_two_processes():
    """Byte for byte, with two hash seeds."""
    path = __file__.rsplit("/tests/", 1)[0]
    traces = [
        subprocess.run(
            [sys.executable, "-c", TRACED.format(path=path)],
            env={"PYTHONHASHSEED": seed, "PATH": ""},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    ]
    assert traces[0] == traces[1]
    assert len(traces[0]) > 1000
