"""A change that shows the old size and the old time: no reader is shown what stood there before."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
import trio.testing

from tests.workspace._later import LaterDisk
from toolrt import Registry, Runtime, ToolCall, run_sync
from toolrt.workspace import Limits, MemoryDisk, RealDisk, Stat, Workspace

#: Long ago: 2001.
PAST = 1_000_000_000 * 10**9


def save(path: Path, text: str) -> None:
    """Another program writes the file in place and sets its times back."""
    path.write_text(text)
    os.utime(path, ns=(PAST, PAST))


def answers(workspace: Workspace, *calls: tuple[str, dict[str, Any]]) -> list[str]:
    """What the tools answer, one batch for each call."""
    runtime = Runtime(Registry(workspace.tools()))
    done = [run_sync(runtime, [ToolCall("0", name, input)]).results[0] for name, input in calls]
    return [str(result.content if result.ok else result.error) for result in done]


@pytest.fixture(params=[RealDisk, LaterDisk], ids=["young", "settled"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    """A workspace on files that changed just now, or an hour ago as its clock has it."""
    return Workspace(request.param(tmp_path))


@pytest.mark.parametrize("reader", ["read_file", "search"])
def test_a_read_shows_a_change_that_kept_size_and_mtime(workspace: Workspace, tmp_path: Path, reader: str) -> None:
    """Reading and searching show the new text, and a write after the read is accepted."""
    save(tmp_path / "a.txt", "old text\n")
    look = ("read_file", {"path": "a.txt"})
    ask = look if reader == "read_file" else ("search", {"pattern": "text"})
    assert "old text" in answers(workspace, look, ask)[1]
    save(tmp_path / "a.txt", "new text\n")
    assert "new text" in answers(workspace, ask)[0]
    done = answers(workspace, look, ("write_file", {"path": "a.txt", "content": "mine\n"}))
    assert "new text" in done[0]
    assert (tmp_path / "a.txt").read_text() == "mine\n", done


def test_a_look_at_another_name_shows_the_change(workspace: Workspace, tmp_path: Path) -> None:
    """A file with two names was read by one of them and changed by the other."""
    save(tmp_path / "a.txt", "old text\n")
    os.link(tmp_path / "a.txt", tmp_path / "b.txt")
    answers(workspace, ("read_file", {"path": "a.txt"}))
    save(tmp_path / "b.txt", "new text\n")
    assert "new text" in answers(workspace, ("read_file", {"path": "a.txt"}))[0]


class FrozenDisk(LaterDisk):
    """A disk that shows no change of any time: as one with a memory map, or with a clock that was set back."""

    def lstat(self, path: str) -> Stat:
        """What stands there, as it looks at rest."""
        return attrs.evolve(super().lstat(path), mtime_ns=PAST, ctime_ns=PAST)

    async def read(self, entry: Any, limit: int) -> Any:
        """The file, as it looks at rest."""
        found = await super().read(entry, limit)
        return attrs.evolve(found, stat=attrs.evolve(found.stat, mtime_ns=PAST, ctime_ns=PAST))

    async def remove(self, entry: Any, expected: Stat | None = None) -> None:
        """What stands there goes, whatever times it shows."""
        await super().remove(entry)


@pytest.mark.parametrize(
    "change",
    [
        ("write_file", {"path": "a.txt", "content": "mine\n"}),
        ("edit_file", {"path": "a.txt", "old": "text", "new": "mine", "all": True}),
        ("delete_path", {"path": "a.txt"}),
        ("apply_patch", {"patch": "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-new text\n+mine\n"}),
    ],
    ids=lambda change: change[0],
)
def test_a_refused_change_is_refused_once(tmp_path: Path, change: tuple[str, dict[str, Any]]) -> None:
    """Where no time tells of a change, the refusal of a write still makes the next read look at the file."""
    workspace = Workspace(FrozenDisk(tmp_path))
    save(tmp_path / "a.txt", "old text\n")
    answers(workspace, ("read_file", {"path": "a.txt"}))
    save(tmp_path / "a.txt", "new text\n")
    refused, read, done = answers(workspace, change, ("read_file", {"path": "a.txt"}), change)
    assert "read it again" in refused
    assert "new text" in read
    assert "read it again" not in done
    left = tmp_path / "a.txt"
    assert not left.exists() if change[0] == "delete_path" else "mine" in left.read_text()


async def test_a_removal_meets_what_was_looked_at(tmp_path: Path) -> None:
    """A file that another program changed since a look, size and time kept, is not removed for the old one."""
    (tmp_path / "a.txt").write_text("old text\n")
    disk = RealDisk(tmp_path)
    seen = await disk.look(("a.txt",))
    (tmp_path / "a.txt").write_text("new text\n")
    os.utime(tmp_path / "a.txt", ns=(seen.mtime_ns, seen.mtime_ns))
    with pytest.raises(OSError, match="another program changed it"):
        await disk.remove(("a.txt",), seen)
    assert (tmp_path / "a.txt").read_text() == "new text\n"


@pytest.mark.parametrize("kind", ["real", "twin"])
async def test_the_twin_has_the_second_time_as_well(
    tmp_path: Path, kind: str, autojump_clock: trio.testing.MockClock
) -> None:
    """A change of mode, a further name and a move each change ctime, and leave mtime as it is."""
    disk: Any
    if kind == "real":
        save(tmp_path / "a.txt", "text")
        disk = RealDisk(tmp_path)
    else:
        disk = MemoryDisk({"a.txt": "text"})
    before = await disk.look(("a.txt",))
    await trio.sleep(1)
    await disk.set_mode(("a.txt",), 0o600)
    after = await disk.look(("a.txt",))
    assert after.mtime_ns == before.mtime_ns
    assert after.ctime_ns != before.ctime_ns or kind == "real"
    await trio.sleep(1)
    await disk.move(("a.txt",), ("b.txt",))
    moved = await disk.look(("b.txt",))
    assert moved.mtime_ns == before.mtime_ns
    assert moved.ctime_ns >= after.ctime_ns


def test_what_is_old_is_still_kept(tmp_path: Path) -> None:
    """The second time does not end the cache: what did not change is read from the disk once."""
    save(tmp_path / "a.txt", "old text\n")
    workspace = Workspace(LaterDisk(tmp_path), limits=Limits())
    answers(workspace, *[("read_file", {"path": "a.txt"})] * 3)
    statistics = workspace.files.statistics()
    assert statistics["stored"]["hits"] + statistics["cached"]["hits"] == 2
