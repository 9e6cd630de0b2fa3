"""What is kept of files that were read: bounded, counted, and never to be seen in an answer."""

from __future__ import annotations

import contextlib
import os
from types import SimpleNamespace
from typing import Any

import attrs
import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workspace._later import LaterDisk
from toolrt.errors import DefinitionRefused
from toolrt.model import EVERYTHING, READ, State
from toolrt.workspace import FileProblem, HardLink, Limits, MemoryDisk, Snapshot, Symlink, Wanted, Workspace

NO_CACHE = Limits(stored=0, cached=0)


def reader(workspace: Workspace, path: str) -> Any:
    claims = workspace.claims(path, State(), READ)
    return SimpleNamespace(batch_id="batch", call_index=0, state=State(), claims=claims)


def writer() -> Any:
    return SimpleNamespace(batch_id="batch", call_index=0, state=State(), claims=(EVERYTHING,))


async def read(workspace: Workspace, path: str) -> bytes:
    found = await workspace.files.read(reader(workspace, path), workspace.identify(path))
    return found.content


async def read_line(workspace: Workspace, path: str, line: int) -> str:
    def render(snapshot: Snapshot) -> str:
        lines = snapshot.content.decode().split("\n")
        if line >= len(lines):
            raise FileProblem(path, "a line", "none", "Count them.")
        return lines[line]

    return await workspace.files.read_as(reader(workspace, path), workspace.identify(path), ("line", line), render)


async def revise(workspace: Workspace, path: str, content: bytes | None) -> None:
    await workspace.files.revise(writer(), workspace.identify(path), lambda found: content)


def counted(workspace: Workspace) -> tuple[int, int]:
    """Hits and misses of the store of contents."""
    found = workspace.files.statistics()["stored"]
    return found["hits"], found["misses"]


@pytest.fixture
def clock(autojump_clock: trio.testing.MockClock) -> trio.testing.MockClock:
    """The twin's clock; it moves when everybody sleeps."""
    return autojump_clock


async def test_second_read_is_served_from_memory(clock):
    """Once the file is older than the disk's time step."""
    effects = []
    workspace = Workspace(MemoryDisk({"a": "one"}, fault=lambda name, path: effects.append(name)))
    await trio.sleep(1)
    for _ in range(3):
        assert await read(workspace, "a") == b"one"
    assert counted(workspace) == (2, 1)
    assert effects.count("read") == 1


async def test_young_file_is_not_kept(clock):
    """It could change once more and show the same time."""
    workspace = Workspace(disk := MemoryDisk())
    disk.put("a", "one")
    await read(workspace, "a")
    disk.put("a", "two")
    assert await read(workspace, "a") == b"two"
    assert workspace.files.statistics()["stored"]["entries"] == 0
    assert counted(workspace) == (0, 2)


@pytest.mark.parametrize("what", ["content", "size", "file", "link"])
async def test_changed_file_is_read_again(clock, what):
    """Time, size, number or kind: whatever shows that it is not what it was."""
    workspace = Workspace(disk := MemoryDisk({"a": "one"}))
    await trio.sleep(1)
    await read(workspace, "a")
    if what == "link":
        disk.put("b", "two")
        await disk.remove(("a",))
        disk.put("a", Symlink("b"))
        assert await read(workspace, "a") == b"two"
        return
    await trio.sleep(1)
    if what == "file":
        disk.put("b", "two")
        await disk.remove(("a",))
        await disk.move(("b",), ("a",))
    else:
        disk.put("a", "two" if what == "content" else "three")
    assert await read(workspace, "a") == (b"three" if what == "size" else b"two")


async def test_own_mutation_drops_what_is_kept(clock):
    """Also of a moved or removed directory's files, and of a file by another name."""
    workspace = Workspace(MemoryDisk({"a": "one", "b": HardLink("a"), "d/c": "one"}))
    await trio.sleep(1)
    for path in ("a", "b", "d/c"):
        await read(workspace, path)
    assert workspace.files.statistics()["stored"]["entries"] == 3
    await revise(workspace, "a", b"two")
    assert await read(workspace, "b") == b"two"
    ends = [workspace.identify(path, None, Wanted.ENTRY) for path in ("d", "e")]
    await workspace.files.move(writer(), *ends)
    assert await read(workspace, "e/c") == b"one"
    with pytest.raises(FileProblem):
        await read(workspace, "d/c")
    assert workspace.files.statistics()["stored"]["entries"] == 1


async def test_who_may_write_the_file_is_not_served_from_memory(clock):
    """It may have been changed in ways nobody told of."""
    workspace = Workspace(MemoryDisk({"a": "one"}))
    await trio.sleep(1)
    await read(workspace, "a")
    await workspace.files.read(writer(), workspace.identify("a"))
    assert counted(workspace) == (0, 2)


async def test_answers_are_kept_by_part(clock):
    """Each part of a file is rendered once; what a rendering refused is not kept."""
    workspace = Workspace(MemoryDisk({"a": "one\ntwo"}))
    await trio.sleep(1)
    for _ in range(2):
        assert [await read_line(workspace, "a", line) for line in (0, 1)] == ["one", "two"]
        with pytest.raises(FileProblem, match="Count them"):
            await read_line(workspace, "a", 2)
    found = workspace.files.statistics()
    assert (found["cached"]["hits"], found["cached"]["misses"], found["cached"]["entries"]) == (2, 4, 2)
    assert found["stored"]["misses"] == 1


async def test_caches_are_bounded(clock):
    """By entries and by bytes; the least recently used goes first, and what is too large is not kept."""
    content = {name: name * 4 for name in "abcd"} | {"large": "x" * 11}
    workspace = Workspace(MemoryDisk(content), limits=Limits(stored=3, stored_bytes=10, cached=2, cached_bytes=100))
    await trio.sleep(1)
    for path in ("a", "b", "a", "c", "large", "a", "b"):
        await read(workspace, path)
    found = workspace.files.statistics()["stored"]
    assert found == {"entries": 2, "bytes": 8, "hits": 2, "misses": 5, "evictions": 2}
    for line in (0, 0, 1, 2):
        with contextlib.suppress(FileProblem):
            await read_line(workspace, "a", line)
    assert workspace.files.statistics()["cached"]["entries"] == 1
    for path in "abc":
        await read_line(workspace, path, 0)
    assert workspace.files.statistics()["cached"]["entries"] == 2


@pytest.mark.parametrize("value", [-1, True, 1.5, "9", None, float("nan"), float("inf")])
def test_limit_that_is_no_number_of_0_or_more_is_refused(value):
    """The refusal names it; seconds may have a fraction, and None."""
    for field in attrs.fields(Limits):
        seconds = field.name == "kept_seconds"
        if seconds and value in (1.5, None):
            assert Limits(kept_seconds=value).kept_seconds == value
            continue
        with pytest.raises(
            DefinitionRefused, match=rf"^Limits\({field.name}=\): expected .*, got {value!r}$"
        ) as caught:
            Limits(**{field.name: value})
        assert caught.value.expected.startswith("seconds" if seconds else "a whole number")


async def test_limits_of_0_remember_nothing(clock):
    """A file is read each time, and no change is made, because none could be undone."""
    workspace = Workspace(MemoryDisk({"a": "one"}), limits=Limits(**{one.name: 0 for one in attrs.fields(Limits)}))
    assert [await read(workspace, "a") for _ in range(2)] == [b"one", b"one"]
    with pytest.raises(FileProblem, match="at most 0 versions"):
        await revise(workspace, "a", b"two")


async def test_somebody_elses_change_is_seen_through_the_caches(clock):
    """A file that was served from memory is one that was read: what came since is a conflict."""
    workspace = Workspace(disk := MemoryDisk({"a": "one"}))
    await trio.sleep(1)
    for _ in range(2):
        await read_line(workspace, "a", 0)
    disk.put("a", "theirs")
    with pytest.raises(FileProblem, match="another writer"):
        await revise(workspace, "a", b"mine")


async def test_caches_on_the_real_disk(tmp_path):
    """A file that is old enough is read once; one that was just written is read again."""
    (tmp_path / "a").write_text("one")
    os.utime(tmp_path / "a", (1_000_000_000, 1_000_000_000))
    (tmp_path / "b").write_text("one")
    future = LaterDisk(tmp_path).now_ns() + 10**12
    os.utime(tmp_path / "b", ns=(future, future))
    workspace = Workspace(LaterDisk(tmp_path))
    for _ in range(3):
        await read(workspace, "a")
        await read(workspace, "b")
    assert counted(workspace) == (2, 4)


PATHS = ["a", "b", "d/c", "l", "h", "./d/../a"]

steps = st.lists(
    st.one_of(
        st.tuples(st.just("read"), st.sampled_from(PATHS)),
        st.tuples(st.just("line"), st.sampled_from(PATHS), st.integers(0, 2)),
        st.tuples(st.just("scan"), st.sampled_from(PATHS)),
        st.tuples(st.just("revise"), st.sampled_from(PATHS), st.sampled_from([b"x\ny", b"xx\ny", b"z", None])),
        st.tuples(st.just("put"), st.sampled_from(["a", "b", "d/c"]), st.sampled_from(["x\ny", "y\nx", "zz\nz"])),
        st.tuples(st.just("scribble"), st.sampled_from(["b", "h"]), st.sampled_from([b"x\ny", b"y\nx", b"zz\nz"])),
        st.tuples(st.just("move"), st.sampled_from(["a", "b", "d", "l"]), st.sampled_from(["a", "e", "d/f"])),
        st.tuples(st.just("sleep"), st.sampled_from([0.0, 0.001, 0.02, 1.0])),
        st.tuples(st.just("undo")),
    ),
    max_size=25,
)


async def answers(steps: list[Any], limits: Limits) -> list[Any]:
    """What a session of these steps is answered, and what it leaves."""
    disk = MemoryDisk({"a": "x\ny", "b": "y\nx", "d/c": "zz\nz", "l": Symlink("d"), "h": HardLink("b")})
    workspace = Workspace(disk, limits=limits)
    told: list[Any] = []
    for step in steps:
        try:
            if step[0] == "sleep":
                await trio.sleep(step[1])
            elif step[0] == "put":
                try:
                    disk.put(step[1], step[2])
                except DefinitionRefused:  # d may be a file by now, written through the link l
                    told.append("refused")
            elif step[0] == "scribble":
                # In place while it has two names, so its number stays; its time may, too.
                await disk.revise((step[1],), 100, lambda found, step=step: step[2])
            elif step[0] == "undo":
                told.append(await workspace.history.undo("batch"))
            elif step[0] == "move":
                await workspace.files.move(
                    writer(), *(workspace.identify(path, None, Wanted.ENTRY) for path in step[1:])
                )
            else:
                identity = workspace.identify(step[1])
                if identity.problem is not None:
                    raise identity.problem
                if step[0] == "read":
                    told.append(await workspace.files.read(reader(workspace, step[1]), identity))
                elif step[0] == "line":
                    told.append(await read_line(workspace, step[1], step[2]))
                elif step[0] == "scan":
                    told.append(await workspace.files.scan(reader(workspace, step[1]), identity))
                else:
                    await revise(workspace, step[1], step[2])
        except FileProblem as problem:
            told.append(str(problem))
    return [*told, workspace.snapshot()]


@pytest.mark.seldom
@settings(max_examples=300)
@given(steps=steps)
def test_caches_never_change_an_answer(steps):
    """Reads, changes by this workspace and by others, waits: all is answered as without caches."""
    cached, uncached = (
        trio.run(answers, steps, limits, clock=trio.testing.MockClock(autojump_threshold=0))
        for limits in (Limits(stored=2, cached=2), NO_CACHE)
    )
    assert cached == uncached
