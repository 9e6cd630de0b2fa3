"""The laws with several batches at once: on one runtime, and on one workspace shared by two runtimes."""

from __future__ import annotations

from typing import Any

import attrs
import trio
from hypothesis import given
from hypothesis import strategies as st

from toolrt import Registry, Runtime, State, ToolCall, sim
from toolrt.invariants import require
from toolrt.testing import schedules
from toolrt.workspace import MemoryDisk, Workspace

FILES = {"a.txt": "a\n", "b.txt": "b\n"}

_PATHS = st.sampled_from(["a.txt", "./a.txt", "b.txt", "/workspace/b.txt", "new/c.txt"])


@st.composite
def file_calls(draw: st.DrawFn) -> list[ToolCall]:
    """Calls of the workspace's own tools, some of which fail."""
    calls = []
    for number in range(draw(st.integers(1, 5))):
        name = draw(st.sampled_from(["read_file", "write_file", "edit_file"]))
        input: dict[str, Any] = {"path": draw(_PATHS)}
        if name == "write_file":
            input["content"] = f"{number}\n"
        elif name == "edit_file":
            input |= {"old": draw(st.sampled_from(["a", "b", "\n"])), "new": f"<{number}>"}
        calls.append(ToolCall(f"id{number}", name, input))
    return calls


@attrs.define
class _Files:
    """Two batches on one workspace."""

    batches: list[list[ToolCall]]
    #: Whether each batch has a runtime of its own.
    apart: bool
    content: dict[str, Any] = attrs.field(factory=dict)

    async def program(self) -> dict[str, Any]:
        workspace = Workspace(MemoryDisk(FILES))
        shared = Runtime(Registry(workspace.tools()), limit=2)

        async def run(number: int, calls: list[ToolCall]) -> None:
            runtime = Runtime(Registry(workspace.tools()), limit=2) if self.apart else shared
            async with runtime.open_batch(State(), batch_id=f"batch {number}") as batch:
                for call in calls:
                    await trio.lowlevel.checkpoint()
                    batch.submit(call)
                batch.seal()
                async for _ in batch:
                    pass

        async with trio.open_nursery() as nursery:
            for number, calls in enumerate(self.batches):
                nursery.start_soon(run, number, calls)
        assert workspace.claim_table.statistics()["groups"] == 0
        return dict(workspace.snapshot())


@given(batches=st.lists(file_calls(), min_size=1, max_size=3), apart=st.booleans(), schedule=schedules(max_size=120))
def test_laws_hold_for_batches_that_share_a_workspace(
    batches: list[list[ToolCall]], apart: bool, schedule: list[int]
) -> None:
    """Batches that run at one time on one workspace keep every law, each by itself and together."""
    execution = sim.run(_Files(batches, apart).program, sim.Choices(schedule))
    assert execution.error is None, execution.error
    require(execution.trace, context=f"{batches!r} {apart} {schedule}")


@given(calls=file_calls(), schedules=st.lists(schedules(max_size=120), min_size=2, max_size=4))
def test_files_end_the_same_under_every_schedule(calls: list[ToolCall], schedules: list[list[int]]) -> None:
    """One batch of the workspace's own tools leaves the same files, whatever the schedule."""
    program = _Files([calls], False).program
    endings = [sim.run(program, sim.Choices(schedule)).value for schedule in schedules]
    assert all(ending == endings[0] for ending in endings)
