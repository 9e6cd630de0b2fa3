"""File tools, stopped at each moment of the journal: each change happens once, and its call says so."""

from __future__ import annotations

from typing import Any

import pytest
import trio

from tests.store._crashes import World, crashed
from toolrt import MemoryDisk, Outcome, ToolCall, Workspace

FILES = {"a.txt": "one\n", "b.txt": "two\n", "d/c.txt": "three\n"}
PATCH = "--- a/b.txt\n+++ b/b.txt\n@@ -1 +1,2 @@\n two\n+more\n--- /dev/null\n+++ b/new/e.txt\n@@ -0,0 +1 @@\n+new\n"
CALLS = [
    ToolCall(str(index), name, input)
    for index, (name, input) in enumerate(
        [
            ("edit_file", {"path": "a.txt", "old": "one", "new": "one one"}),
            ("edit_file", {"path": "a.txt", "old": "one one", "new": "one one one"}),
            ("apply_patch", {"patch": PATCH}),
            ("write_file", {"path": "x/y.txt", "content": "y"}),
            ("move_path", {"source": "d/c.txt", "target": "d/z.txt"}),
            ("delete_path", {"path": "x/y.txt"}),
            ("make_dir", {"path": "empty"}),
            ("change_dir", {"path": "d"}),
            ("read_file", {"path": "z.txt"}),
        ]
    )
]


async def process(world: World, disk: MemoryDisk, crash_at: int | None, resumes: bool) -> Any:
    """A process runs the batch or resumes it, on the files as they are; None: it crashed."""
    world.starts(crash_at)
    runtime = world.runtime(Workspace(disk).tools())
    try:
        return await (runtime.resume("b") if resumes else runtime.run(CALLS, batch_id="b"))
    except BaseException as error:
        if not crashed(error):
            raise
        return None


@pytest.mark.seldom
def test_file_changes_are_neither_lost_nor_twice() -> None:
    """The tools look at the files, so every call is OK, whenever the process ended."""
    whole_disk = MemoryDisk(FILES)
    whole = trio.run(process, World(), whole_disk, None, False)
    assert [result.outcome for result in whole.results] == [Outcome.OK] * len(CALLS), whole
    moments = 0
    while True:
        world, disk = World(), MemoryDisk(FILES)
        if trio.run(process, world, disk, moments, False) is not None:
            break
        moments += 1
        if world.records.read("b") is None:
            continue
        outcome = trio.run(process, world, disk, None, True)
        assert [result.outcome for result in outcome.results] == [Outcome.OK] * len(CALLS), (moments, outcome)
        assert outcome.state == whole.state
        assert Workspace(disk).snapshot() == Workspace(whole_disk).snapshot(), moments
    assert moments > 30


async def test_a_file_that_another_program_changed_is_not_guessed_about() -> None:
    """What stands there is neither what was nor what was to be: the call may have happened."""
    found = set()
    for crash_at in range(40):
        world, disk = World(), MemoryDisk({"a.txt": "one\n"})
        world.starts(crash_at)
        runtime = world.runtime(Workspace(disk).tools())
        with pytest.raises(BaseException) as raised:
            await runtime.run(CALLS[:1], batch_id="b")
            raise KeyError
        if isinstance(raised.value, KeyError):
            break
        world.starts(None)
        if world.records.read("b") is None:
            continue
        other = MemoryDisk({"a.txt": "another\n"})
        [result] = (await world.runtime(Workspace(other).tools()).resume("b")).results
        assert Workspace(other).snapshot() == {"a.txt": b"another\n"}
        found.add(result.outcome)
    assert found == {Outcome.OK, Outcome.ERROR, Outcome.INTERRUPTED}
