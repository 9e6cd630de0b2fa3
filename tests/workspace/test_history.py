"""Versions, restore and undo, alike in memory and in a state directory."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
import trio

from tests.workspace._hand import Hand, Interrupted, context
from toolrt.model import WRITE, Claim, State
from toolrt.workspace import (
    Directory,
    FileProblem,
    HardLink,
    Limits,
    MemoryDisk,
    RealDisk,
    Special,
    Symlink,
    Workspace,
)


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


# Versions


async def test_a_version_for_each_mutation(tree, hand):
    """With who made it and what was there before and after."""
    assert await tree.workspace.history.versions("a") == []
    for content in (b"one", b"two", None):
        await hand.write("a", content)
    found = await tree.workspace.history.versions("a")
    assert [(one.number, one.action, one.before, one.after) for one in found] == [
        (1, "created", None, digest(b"one")),
        (2, "changed", digest(b"one"), digest(b"two")),
        (3, "removed", digest(b"two"), None),
    ]
    assert [(one.batch_id, one.call_index, one.call_id) for one in found] == [
        ("batch", 1, "id1"),
        ("batch", 2, "id2"),
        ("batch", 3, "id3"),
    ]


async def test_versions_are_of_the_file_by_any_name(tree, hand):
    """Whatever spelling the mutation used."""
    tree.put("d", Directory())
    tree.put("l", Symlink("d"))
    await hand.write("l/../d/./a", b"one")
    assert [one.path for one in await tree.workspace.history.versions("l/a")] == ["d/a"]


async def test_refused_mutations_make_no_version(tree, hand):
    """Only what landed is history."""
    tree.put("a", "old")

    def refuse(found: bytes | None) -> bytes:
        raise ValueError

    with pytest.raises(ValueError):
        await tree.workspace.files.revise(context(), tree.workspace.identify("a"), refuse)
    with pytest.raises(FileProblem):
        await hand.write("a/b", b"")
    assert await tree.workspace.history.versions("a") == []


async def test_moves_are_versions_of_both_ends(tree, hand):
    """The file went here and came there."""
    await hand.write("a", b"one")
    await hand.move("a", "b")
    assert [one.action for one in await tree.workspace.history.versions("a")] == ["created", "moved to b"]
    assert [one.action for one in await tree.workspace.history.versions("b")] == ["moved from a"]


# Restore


async def test_restore_puts_any_version_back(tree, hand):
    """Also the one before the first, and a removed file; each is a version of its own."""
    tree.put("a", "zero")
    for content in (b"one", b"two", None):
        await hand.write("a", content)
    for number, content in ((1, b"one"), (0, b"zero"), (2, b"two")):
        done = await tree.workspace.history.restore("a", number)
        assert done.paths == ("a",)
        assert tree.workspace.snapshot() == {"a": content}
    await tree.workspace.history.restore("a", 3)
    assert tree.workspace.snapshot() == {}
    assert len(await tree.workspace.history.versions("a")) == 7
    assert (await tree.workspace.history.restore("a", 3)).paths == ()


async def test_restore_refuses_unknown_versions(tree, hand):
    """It says which there are."""
    await hand.write("a", b"one")
    with pytest.raises(FileProblem, match="a version from 0 to 1, got 2 of 1"):
        await tree.workspace.history.restore("a", 2)
    with pytest.raises(FileProblem, match="a file without versions"):
        await tree.workspace.history.restore("b", 0)


async def test_restore_is_no_way_around_freshness(tree, hand):
    """What somebody else wrote since is not overwritten."""
    await hand.write("a", b"one")
    await hand.write("a", b"two")
    tree.put("a", "theirs")
    with pytest.raises(FileProblem, match="another writer"):
        await tree.workspace.history.restore("a", 1)
    assert tree.workspace.snapshot() == {"a": b"theirs"}


async def test_restore_keeps_the_mode_of_a_removed_file(tree, hand, mode_of):
    """A script can be run again; one that is there keeps the mode it has."""
    tree.put("a", "old", mode=0o755)
    await hand.write("a", None)
    await tree.workspace.history.restore("a", 0)
    assert (tree.workspace.snapshot(), mode_of(tree, "a")) == ({"a": b"old"}, 0o755)
    await hand.write("a", b"new")
    await tree.disk.set_mode(("a",), 0o700)
    await tree.workspace.history.restore("a", 2)
    assert (tree.workspace.snapshot(), mode_of(tree, "a")) == ({"a": b"old"}, 0o700)


async def test_restore_follows_a_move(tree, hand):
    """What a move brought, or took away, is what the file had under its other name."""
    tree.put("a", "one")
    await hand.write("a", b"two")
    await hand.move("a", "b")
    await hand.move("b", "c")
    await hand.move("c", "b")
    await hand.write("b", None)
    for path, number in (("b", 1), ("c", 1), ("b", 3)):
        await tree.workspace.history.restore(path, number)
        assert tree.workspace.snapshot() == {path: b"two"}
        await tree.workspace.history.restore(path, 0)
    tree.put("e", "three")
    await hand.move("e", "f")
    await hand.write("f", b"four")
    await tree.workspace.history.restore("e", 0)
    assert tree.workspace.snapshot() == {"e": b"three", "f": b"four"}


async def test_restore_refuses_what_nobody_has_looked_into(tree, hand):
    """Nothing but a move ever happened to it."""
    tree.put("a", "one")
    await hand.move("a", "b")
    with pytest.raises(FileProblem, match="none that was kept"):
        await tree.workspace.history.restore("a", 0)
    assert tree.workspace.snapshot() == {"b": b"one"}


async def test_versions_and_restore_mean_the_same_by_a_link(tree, hand):
    """The file that it leads to; or the link itself, where it was changed."""
    tree.put("f", "one")
    tree.put("l", Symlink("f"))
    await hand.write("l", b"two")
    assert [one.path for one in await tree.workspace.history.versions("l")] == ["f"]
    assert (await tree.workspace.history.restore("l", 0)).paths == ("f",)
    await hand.remove("l")
    assert [one.action for one in await tree.workspace.history.versions("l")] == ["removed"]
    assert (await tree.workspace.history.restore("l", 0)).paths == ("l",)
    assert tree.workspace.snapshot() == {"f": b"one", "l": "-> f"}
    assert (await tree.workspace.history.restore("l", 0)).paths == ()
    assert (await tree.workspace.history.restore("l", 1)).paths == ("l",)
    assert tree.workspace.snapshot() == {"f": b"one"}
    await hand.write("l", b"three")
    with pytest.raises(FileProblem, match=r"^l: .*a file.*delete the file first"):
        await tree.workspace.history.restore("l", 0)
    await hand.write("l", None)
    await tree.workspace.history.restore("l", 2)
    undone = await tree.workspace.history.restore("l", 4)
    assert tree.workspace.snapshot() == {"f": b"one", "l": b"three"}
    await tree.workspace.history.undo(undone.batch_id)
    assert tree.workspace.snapshot() == {"f": b"one", "l": "-> f"}


# Undo


async def test_undo_puts_back_exactly_what_a_batch_changed(tree, hand):
    """Created, changed, removed, moved, made: all is as it was, and nothing else is touched."""
    tree.put("changed", "old")
    tree.put("removed", "old", mode=0o755)
    tree.put("moved", "old")
    tree.put("tree/d/x", "old")
    tree.put("tree/y", "old")
    tree.put("gone/deep/z", "old")
    tree.put("other", "old")
    before = tree.workspace.snapshot()
    await hand.write("changed", b"new")
    await hand.write("changed", b"newer")
    await hand.write("removed", None)
    await hand.write("made/e/created", b"new")
    await hand.move("moved", "made/f/moved")
    await hand.write("made/f/moved", b"new")
    await hand.move("tree", "made/tree")
    await hand.write("made/tree/d/x", b"new")
    await hand.remove("gone")
    await hand.make_dirs("empty/dir")
    await hand.write("other", b"new", batch="another")
    done = await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == before | {"other": b"new"}
    assert set(done.paths) >= {"changed", "removed", "moved", "tree", "gone/deep/z"}


async def test_undo_keeps_the_mode_of_a_removed_file(tree, hand, mode_of):
    """A script can be run again, also one from a directory that is gone."""
    for path in ("a", "d/b"):
        tree.put(path, "old", mode=0o755)
    await tree.disk.set_mode(("d",), 0o700)
    await hand.write("a", None)
    await hand.remove("d")
    await tree.workspace.history.undo("batch")
    assert [mode_of(tree, path) for path in ("a", "d/b", "d")] == [0o755, 0o755, 0o700]


async def test_undo_puts_links_back(tree, hand):
    """With their text, wherever that leads."""
    tree.put("d/l", Symlink("/nowhere/at/all"))
    await hand.remove("d")
    assert tree.workspace.snapshot() == {}
    await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"d/l": "-> /nowhere/at/all"}


async def test_undo_puts_back_what_cannot_be_made_again(tree, hand):
    """A pipe that was removed is kept aside, and comes back."""
    tree.put("p", Special())
    await hand.remove("p")
    assert tree.workspace.snapshot() == {}
    await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"p": "a named pipe"}


async def test_undo_can_be_undone(tree, hand):
    """It is a batch of its own."""
    await hand.write("d/a", b"one")
    undone = await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {}
    again = await tree.workspace.history.undo(undone.batch_id)
    assert tree.workspace.snapshot() == {"d/a": b"one"}
    await tree.workspace.history.undo(again.batch_id)
    assert tree.workspace.snapshot() == {}


async def test_undo_of_an_unknown_batch_is_refused(tree):
    """Also of one that changed nothing."""
    with pytest.raises(FileProblem, match="none of this id"):
        await tree.workspace.history.undo("batch")


async def test_undo_refuses_what_somebody_else_changed(tree, hand):
    """All such files are named, and nothing is changed."""
    for path in "abc":
        await hand.write(path, b"mine")
    tree.put("a", "theirs")
    tree.put("c", "theirs")
    with pytest.raises(FileProblem, match=r"^a, c: .*another writer changed it since"):
        await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"a": b"theirs", "b": b"mine", "c": b"theirs"}


async def test_undo_refuses_what_another_batch_changed(tree, hand):
    """After it, and also between two of its own changes; the other is undone first."""
    await hand.write("a", b"one", "first")
    await hand.write("b", b"one", "first")
    await hand.write("a", b"two", "second")
    await hand.write("b", b"two", "second")
    await hand.write("b", b"three", "first")
    with pytest.raises(FileProblem, match=r"^a, b: "):
        await tree.workspace.history.undo("first")
    with pytest.raises(FileProblem, match=r"^b: "):
        await tree.workspace.history.undo("second")
    assert tree.workspace.snapshot() == {"a": b"two", "b": b"three"}


async def test_undo_leaves_directories_with_other_files(tree, hand):
    """What the batch put there goes; what somebody else put there stays, and so does the directory."""
    await hand.write("d/a", b"mine")
    tree.put("d/b", "theirs")
    await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"d/b": b"theirs"}


async def test_undo_of_hard_links_keeps_them_one_file(tree, hand):
    """Whichever name each change went by; and who changes it next, by any name, meets what he may."""
    tree.put("a", "old")
    tree.put("b", HardLink("a"))
    for name, content in (("a", b"one"), ("b", b"two"), ("a", b"three")):
        await hand.write(name, content)
    await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"a": b"old", "b": b"old"}
    assert tree.workspace.identify("a").found.inode == tree.workspace.identify("b").found.inode
    await hand.write("b", b"next", batch="next")
    assert tree.workspace.snapshot() == {"a": b"next", "b": b"next"}
    await tree.workspace.history.undo("next")
    assert tree.workspace.snapshot() == {"a": b"old", "b": b"old"}


async def test_undo_refuses_hard_links_that_were_parted(tree, hand):
    """They are two files by then, and neither is as the batch left it."""
    tree.put("a", "old")
    tree.put("b", HardLink("a"))
    await hand.write("a", b"one")
    await hand.write("b", b"two")
    tree.put("a", "two")
    with pytest.raises(FileProblem, match=r"^a, b: "):
        await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"a": b"two", "b": b"two"}


async def test_undo_takes_one_name_of_a_file_and_leaves_the_other(tree, hand):
    """What somebody linked to in the meantime stays as he found it."""
    await hand.write("a", b"one")
    await hand.write("a", b"two")
    tree.put("b", HardLink("a"))
    await tree.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {"b": b"two"}


async def test_undo_waits_its_turn(tree, hand):
    """It takes claims behind whoever was ordered before, and gives them back."""
    await hand.write("a", b"one")
    table = tree.workspace.claim_table
    ticket = table.take(tree.workspace.claims("a", State(), WRITE), context())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(tree.workspace.history.undo, "batch")
        while not table.statistics()["waiting"]:
            await trio.lowlevel.checkpoint()
        assert tree.workspace.snapshot() == {"a": b"one"}
        ticket.release()
    assert tree.workspace.snapshot() == {}
    assert not table.busy


async def test_cancelled_undo_gives_its_claims_back(tree, hand):
    """Also while it waits."""
    await hand.write("a", b"one")
    table = tree.workspace.claim_table
    ticket = table.take(tree.workspace.claims("a", State(), WRITE), context())
    with trio.move_on_after(0.01) as scope:
        await tree.workspace.history.undo("batch")
    assert scope.cancelled_caught
    ticket.release()
    assert not table.busy
    assert tree.workspace.snapshot() == {"a": b"one"}


async def test_undo_inside_a_call_needs_its_claims(tree, hand):
    """It would wait for itself; so it uses what the call holds, or refuses."""
    await hand.write("a", b"one")
    with pytest.raises(FileProblem, match="a call that holds others"):
        await tree.workspace.history.undo("batch", ctx=context("other", claims=[Claim(("file", "b"), WRITE)]))
    done = await tree.workspace.history.undo("batch", ctx=context("other"))
    assert done.batch_id == "other"
    assert tree.workspace.snapshot() == {}


async def changed(hand: Hand) -> None:
    await hand.write("a", b"new")
    await hand.write("b", None)
    await hand.move("m", "d/m")
    await hand.write("c", b"new")


OLD_FILES = {"a": "old", "b": "old", "m": "old"}


def effects_of_undo() -> range:
    whole = Interrupted(OLD_FILES)
    trio.run(changed, Hand(whole.workspace))
    before = whole.effects
    trio.run(whole.workspace.history.undo, "batch")
    return range(before, whole.effects)


@pytest.mark.parametrize("at", effects_of_undo())
@pytest.mark.parametrize("how", ["fault", "cancel"])
async def test_undo_is_all_or_nothing_at_every_effect(at, how):
    """A disk that fails, or a cancel, at any effect of an undo."""
    interrupted = Interrupted(OLD_FILES, at, how)
    workspace = interrupted.workspace
    await changed(Hand(workspace))
    before = workspace.snapshot()
    done = await interrupted.done(lambda: workspace.history.undo("batch"))
    assert workspace.snapshot() == ({"a": b"old", "b": b"old", "m": b"old"} if done else before)
    assert not workspace.claim_table.busy


# Bounds


async def test_history_is_bounded_by_versions():
    """The oldest go first; numbers stay."""
    hand = Hand(Workspace(MemoryDisk(), limits=Limits(versions=3)))
    for number in range(5):
        await hand.write("a", b"%d" % number, batch=f"{number}")
    history = hand.workspace.history
    assert [one.number for one in await history.versions("a")] == [3, 4, 5]
    with pytest.raises(FileProblem, match="from 2 to 5"):
        await history.restore("a", 1)
    await history.restore("a", 2)
    assert hand.workspace.snapshot() == {"a": b"1"}


async def test_history_is_bounded_by_bytes():
    """A content that several versions mention counts once."""
    hand = Hand(Workspace(MemoryDisk(), limits=Limits(history_bytes=10)))
    for number in range(6):
        await hand.write("a", b"1234" if number % 2 else b"5678")
    assert hand.workspace.history.statistics() == {"versions": 6, "bytes": 8}
    await hand.write("b", b"abcd", batch="later")
    assert hand.workspace.history.statistics()["bytes"] <= 10


async def test_undo_refuses_what_was_not_kept():
    """A content that has gone from a bounded history."""
    hand = Hand(Workspace(MemoryDisk({"a": "12345678"}), limits=Limits(history_bytes=40)))
    await hand.remove("a")
    await hand.write("b", b"x" * 40, batch="later")
    with pytest.raises(FileProblem, match="a batch that changed files"):
        await hand.workspace.history.undo("batch")
    assert hand.workspace.snapshot() == {"b": b"x" * 40}


async def test_history_in_memory_is_not_persistent():
    """A disk in memory has its history there; that is no problem."""
    history = Workspace(MemoryDisk()).history
    assert (history.persistent, history.problem) == (False, None)


async def test_order_of_versions_does_not_depend_on_the_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A later session, or another one at the same time, may find the clock set back."""
    root = tmp_path / "work"
    root.mkdir()
    one = Workspace(root, state_dir=tmp_path / "state")
    await Hand(one).write("a", b"1")
    monkeypatch.setattr(RealDisk, "now_ns", lambda disk: 1)
    other = Workspace(root, state_dir=tmp_path / "state")
    await Hand(other).write("a", b"2", "second")
    monkeypatch.undo()
    await Hand(one).write("b", b"1")
    one.history.store.close()  # type: ignore[attr-defined]
    monkeypatch.setattr(RealDisk, "now_ns", lambda disk: 0)
    last = Workspace(root, state_dir=tmp_path / "state")
    await Hand(last).write("a", b"3", "third")
    assert [version.batch_id for version in await last.history.versions("a")] == ["batch", "second", "third"]
    await last.history.restore("a", 2)
    assert last.snapshot()["a"] == b"2"
