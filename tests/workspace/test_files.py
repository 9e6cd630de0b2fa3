"""The files service: reading and changing files, with freshness and all-or-nothing, alike on both disks."""

from __future__ import annotations

import errno
import threading
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from tests.workspace._called import Told
from tests.workspace._hand import Interrupted, entry
from toolrt import probe
from toolrt.model import EVERYTHING, WRITE, State
from toolrt.workspace import FileProblem, HardLink, Limits, MemoryDisk, Symlink, Workspace


def context(workspace: Workspace, *paths: str, batch_id: str = "batch", call_index: int = 0, mode=WRITE) -> Any:
    """What a call has that holds the claims on these files; none given: on everything."""
    claims = [claim for path in paths for claim in workspace.claims(path, State(), mode)] or [EVERYTHING]
    return SimpleNamespace(
        batch_id=batch_id, call_index=call_index, call_id=f"id{call_index}", state=State(), claims=tuple(claims)
    )


async def revise(workspace: Workspace, path: str, content: bytes | None, **where: Any) -> Any:
    return await workspace.files.revise(
        context(workspace, path, **where), workspace.identify(path), lambda found: content
    )


async def read(workspace: Workspace, path: str) -> bytes:
    found = await workspace.files.read(context(workspace, path), workspace.identify(path))
    return found.content


async def test_revise_is_given_what_stands_there(tree):
    """The change is computed from the content, once."""
    tree.put("a", "one")
    seen = []

    def change(found: bytes | None) -> bytes:
        seen.append(found)
        return b"two"

    workspace = tree.workspace
    revised = await workspace.files.revise(context(workspace, "a"), workspace.identify("a"), change)
    assert (revised.before, revised.after, seen) == (b"one", b"two", [b"one"])
    assert workspace.snapshot() == {"a": b"two"}


async def test_refused_creation_leaves_no_directory(tree):
    """What the change raises is raised, and nothing was made for it."""

    def refuse(found: bytes | None) -> bytes:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        await tree.workspace.files.revise(context(tree.workspace, "d/a"), tree.workspace.identify("d/a"), refuse)
    assert tree.workspace.snapshot() == {}


async def test_revise_to_the_same_writes_nothing(tree):
    """The file keeps its number and its time, and no version is made."""
    tree.put("a", "one")
    before = tree.disk.lstat(f"{tree.root}/a")
    revised = await revise(tree.workspace, "a", b"one")
    assert (revised.before, revised.after) == (b"one", b"one")
    assert tree.disk.lstat(f"{tree.root}/a") == before
    assert await tree.workspace.history.versions("a") == []


# Freshness


async def test_somebody_elses_change_is_a_conflict(tree):
    """What was read is not what is there: nothing is changed, and reading it again is the way out."""
    tree.put("a", "one")
    await read(tree.workspace, "a")
    tree.put("a", "theirs")
    with pytest.raises(FileProblem, match=r"another writer changed it since.*read it again"):
        await revise(tree.workspace, "a", b"mine")
    assert tree.workspace.snapshot() == {"a": b"theirs"}
    assert await read(tree.workspace, "a") == b"theirs"
    await revise(tree.workspace, "a", b"mine")
    assert tree.workspace.snapshot() == {"a": b"mine"}


async def test_somebody_elses_change_after_an_own_one_is_a_conflict(tree):
    """What this workspace wrote is what it last saw."""
    await revise(tree.workspace, "a", b"one")
    tree.put("a", "theirs")
    with pytest.raises(FileProblem, match="another writer"):
        await revise(tree.workspace, "a", b"two")
    assert tree.workspace.snapshot() == {"a": b"theirs"}


async def test_file_that_came_unseen_is_a_conflict(tree):
    """Who looked and found nothing does not overwrite what somebody made meanwhile."""
    with pytest.raises(FileProblem):
        await read(tree.workspace, "a")
    tree.put("a", "theirs")
    with pytest.raises(FileProblem, match="another writer"):
        await revise(tree.workspace, "a", b"mine")
    assert tree.workspace.snapshot() == {"a": b"theirs"}


async def test_file_that_went_unseen_is_a_conflict_until_it_is_looked_for(tree):
    """Reading it says that it is gone; then it may be written again."""
    tree.put("a", "one")
    await read(tree.workspace, "a")
    await tree.disk.remove(("a",))
    with pytest.raises(FileProblem, match="another writer"):
        await revise(tree.workspace, "a", b"mine")
    with pytest.raises(FileProblem, match="nothing of that name"):
        await read(tree.workspace, "a")
    await revise(tree.workspace, "a", b"mine")
    assert tree.workspace.snapshot() == {"a": b"mine"}


async def test_never_seen_file_has_no_condition(tree):
    """A whole write needs no read before."""
    tree.put("a", "theirs")
    await revise(tree.workspace, "a", b"mine")
    assert tree.workspace.snapshot() == {"a": b"mine"}


async def test_removal_of_a_changed_file_is_a_conflict(tree):
    """A deletion overwrites, too; in a directory as well."""
    tree.put("d/a", "one")
    await read(tree.workspace, "d/a")
    tree.put("d/a", "theirs")
    for path, recursive in (("d/a", False), ("d", True)):
        with pytest.raises(FileProblem, match=r"d/a: .*another writer"):
            await tree.workspace.files.remove(context(tree.workspace), entry(tree.workspace, path), recursive)
    assert tree.workspace.snapshot() == {"d/a": b"theirs"}


async def test_removal_sees_siblings_through_every_name(tree):
    """An edit under one name is no stranger's to who removes another name of that file."""
    tree.put("a", "one")
    tree.put("b", HardLink("a"))
    tree.put("d/c", HardLink("a"))
    workspace = tree.workspace
    for path in ("b", "d/c"):
        await read(workspace, path)
    await revise(workspace, "a", b"two")
    await workspace.files.remove(context(workspace), entry(workspace, "b"))
    await workspace.files.remove(context(workspace), entry(workspace, "d"), recursive=True)
    assert workspace.snapshot() == {"a": b"two"}


async def test_siblings_never_conflict_when_names_go(tree):
    """A file whose other name was edited and removed is what this workspace made it."""
    tree.put("a", "one")
    tree.put("b", HardLink("a"))
    await read(tree.workspace, "a")
    await revise(tree.workspace, "b", b"two")
    await tree.workspace.files.remove(context(tree.workspace), entry(tree.workspace, "b"))
    await revise(tree.workspace, "a", b"three")
    assert tree.workspace.snapshot() == {"a": b"three"}


async def test_memory_of_contents_moves_with_the_file(tree):
    """A change under the old name, unseen, conflicts under the new one; the old name is known to be free."""
    tree.put("a", "one")
    await read(tree.workspace, "a")
    await tree.workspace.files.move(context(tree.workspace), entry(tree.workspace, "a"), entry(tree.workspace, "b"))
    tree.put("b", "theirs")
    tree.put("a", "theirs")
    for path in "ab":
        with pytest.raises(FileProblem, match="another writer"):
            await revise(tree.workspace, path, b"mine")


async def test_scanned_files_are_not_seen(tree):
    """Who searched has not read: somebody else's change is a conflict still, and none where nothing was read."""
    tree.put("a", "one")
    tree.put("b", "one")
    workspace = tree.workspace
    await read(workspace, "a")
    for path in "ab":
        tree.put(path, "theirs")
        found = await workspace.files.scan(context(workspace, path), workspace.identify(path))
        assert found.content == b"theirs"
    with pytest.raises(FileProblem, match="another writer"):
        await revise(workspace, "a", b"mine")
    tree.put("b", "theirs again")
    await revise(workspace, "b", b"mine")
    assert workspace.snapshot() == {"a": b"theirs", "b": b"mine"}


async def test_memory_of_contents_is_bounded():
    """The file that was seen longest ago has no condition any more."""
    workspace = Workspace(disk := MemoryDisk(dict.fromkeys("abc", "one")), limits=Limits(seen=2))
    for path in "abc":
        await read(workspace, path)
    assert workspace.files.statistics()["seen"] == {"entries": 2}
    for path in "abc":
        disk.put(path, "theirs")
    await revise(workspace, "a", b"mine")
    with pytest.raises(FileProblem):
        await revise(workspace, "c", b"mine")


# Several files


async def revise_all(workspace: Workspace, **contents: bytes | None) -> Any:
    revisions = [(workspace.identify(path), lambda found, new=new: new) for path, new in contents.items()]
    return await workspace.files.revise_all(context(workspace), revisions)


async def test_revise_all_checks_freshness_of_all(tree):
    """One file that somebody else changed, and none is written."""
    for path in "ab":
        tree.put(path, "one")
        await read(tree.workspace, path)
    tree.put("b", "theirs")
    with pytest.raises(FileProblem, match=r"b: .*another writer"):
        await revise_all(tree.workspace, a=b"mine", b=b"mine")
    assert tree.workspace.snapshot() == {"a": b"one", "b": b"theirs"}


async def test_revise_all_takes_each_file_once(tree):
    """Two changes of one file, by whatever names, have no order."""
    tree.put("a", "one")
    tree.put("l", Symlink("a"))
    with pytest.raises(FileProblem, match="named twice"):
        await revise_all(tree.workspace, a=b"mine", l=b"mine")
    assert await read(tree.workspace, "a") == b"one"


OLD = {"a": "old", "c": "old"}


async def revise_three(workspace: Workspace) -> None:
    await revise_all(workspace, a=b"new", **{"d/b": b"new"}, c=None)


def effects_of_revise_all() -> range:
    whole = Interrupted(OLD)
    trio.run(revise_three, whole.workspace)
    return range(whole.effects)


@pytest.mark.parametrize("at", effects_of_revise_all())
@pytest.mark.parametrize("how", ["fault", "cancel"])
async def test_revise_all_is_all_or_nothing_at_every_effect(at, how):
    """A disk that fails, or a cancel, at any effect: everything happened, or nothing; history agrees."""
    interrupted = Interrupted(OLD, at, how)
    workspace = interrupted.workspace
    done = await interrupted.done(lambda: revise_three(workspace))
    assert workspace.snapshot() == ({"a": b"new", "d/b": b"new"} if done else {"a": b"old", "c": b"old"})
    for path in ("a", "d/b", "c"):
        assert len(await workspace.history.versions(path)) == done


async def test_group_leaves_what_somebody_else_made_of_a_file():
    """It cannot be put back then, and the refusal names it."""
    disk = MemoryDisk({"a": "old", "b": "old"})
    moves = 0

    def fault(name: str, path: str) -> None:
        nonlocal moves
        if name == "move":
            moves += 1
            if moves == 2:
                disk.put("a", "theirs")
                raise OSError(errno.ENOSPC, "full")

    disk._fault = fault
    workspace = Workspace(disk)
    with pytest.raises(FileProblem, match=r"a: .*what another writer has made of it since"):
        await revise_all(workspace, a=b"new", b=b"new")
    assert workspace.snapshot() == {"a": b"theirs", "b": b"old"}


# Directories, removing, moving


async def test_remove_takes_full_directories_only_when_told(tree):
    """The refusal says how many names are in it and what to do."""
    tree.put("d/a", "one")
    tree.put("d/e/b", "two")
    workspace = tree.workspace
    with pytest.raises(FileProblem, match=r"2 names in it\. Use recursive=true"):
        await workspace.files.remove(context(workspace), entry(workspace, "d"))
    await workspace.files.remove(context(workspace), entry(workspace, "d"), recursive=True)
    assert workspace.snapshot() == {}


# What is reported


async def test_every_mutation_begins_and_ends(tree):
    """Also of groups, directories and moves; a mutation that failed says so, with what is there."""
    tree.put("a", "one")
    tree.put("b", "one")
    workspace, events = tree.workspace, Told()
    with probe.observed_by(events):
        await revise_all(workspace, a=b"two", b=None)
        await workspace.files.move(context(workspace), entry(workspace, "a"), entry(workspace, "c"))
        await workspace.files.remove(context(workspace), entry(workspace, "c"))
        tree.put("c", "theirs")
        with pytest.raises(FileProblem):
            await revise(workspace, "c", b"mine")
    told = [
        (kind.removeprefix("file.mutation_"), fields["file"], fields.get("version"), fields.get("ok"))
        for kind, fields in events.events
        if kind.startswith("file.mutation")
    ]
    assert told == [
        ("began", "a", None, None),
        ("began", "b", None, None),
        ("ended", "a", "3fc4ccfe7458", True),
        ("ended", "b", None, True),
        ("began", "a", None, None),
        ("began", "c", None, None),
        ("ended", "a", None, True),
        ("ended", "c", None, True),
        ("began", "c", None, None),
        ("ended", "c", None, True),
        ("began", "c", None, None),
        ("ended", "c", "4c55a8552a2c", False),
    ]


async def test_different_files_touch_nothing_in_common():
    """Per file, never per table: two calls at two files have no access in common that one of them writes."""
    workspace = Workspace(MemoryDisk({"a": "one", "b": "one"}))
    touched = []
    for path in "ab":
        events = Told()
        with probe.observed_by(events):
            await read(workspace, path)
            await revise(workspace, path, b"two", call_index=ord(path))
        touched.append(events.accesses)
    first, second = touched
    for mine, theirs in ((first, second), (second, first)):
        written = {resource for resource, write in mine if write}
        assert not written & {resource for resource, _ in theirs}


async def test_readers_of_one_file_touch_nothing_that_one_writes():
    """So a simulation need not try both orders of two reads."""
    workspace = Workspace(MemoryDisk({"a": "one"}))
    events = Told()
    with probe.observed_by(events):
        await read(workspace, "a")
    assert not [resource for resource, write in events.accesses if write]


@pytest.mark.parametrize("size", [1000, 1_000_000])
async def test_long_file_is_rendered_off_trios_thread(tmp_path, size):
    """What takes long holds up nobody; what is short is not worth a thread."""
    (tmp_path / "a").write_text("x" * size)
    workspace = Workspace(tmp_path)
    here = threading.get_ident()
    where = await workspace.files.read_as(
        context(workspace), workspace.identify("a"), ("thread",), lambda found: threading.get_ident()
    )
    assert (where == here) is (size == 1000)


async def test_no_thread_on_the_twin(monkeypatch):
    """A simulated run would have to refuse it."""

    def refuse(*args: Any, **options: Any) -> None:
        raise AssertionError("a thread")

    monkeypatch.setattr(trio.to_thread, "run_sync", refuse)
    workspace = Workspace(disk := MemoryDisk({"a": "x" * 2_000_000}))
    await read(workspace, "a")
    await revise_all(workspace, a=b"two", **{"d/b": b"new"})
    await workspace.files.move(context(workspace), entry(workspace, "a"), entry(workspace, "c"))
    await workspace.files.remove(context(workspace), entry(workspace, "d"), recursive=True)
    await workspace.history.undo("batch")
    assert disk.listdir("/workspace") == ["a"]
