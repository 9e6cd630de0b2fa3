"""What an undo puts back, one batch after the other: every name, content, link and mode as it was, and back again."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import example, given
from hypothesis import strategies as st

import toolrt
from tests.workspace._hand import Hand
from toolrt import sim
from toolrt.workspace import Directory, FileProblem, Folding, HardLink, MemoryDisk, Planted, Symlink, Workspace
from toolrt.workspace.change._mutation import digest_of
from toolrt.workspace.change._version import EntryState
from toolrt.workspace.history._undo import planned

#: What a batch does: how, and to what.
Step = tuple[str, ...]


def write(path: str, content: str) -> Step:
    return "write", path, content


def move(source: str, target: str) -> Step:
    return "move", source, target


def delete(path: str) -> Step:
    return "delete", path


async def act(hand: Hand, *steps: Step) -> None:
    for what, *names in steps:
        if what == "write":
            await hand.write(names[0], names[1].encode())
        elif what == "clear":
            await hand.write(names[0], None)
        elif what == "move":
            await hand.move(*names)
        else:
            await hand.remove(*names)


def stands(workspace: Workspace) -> dict[str, Any]:
    """Everything there, and the modes of files and directories."""
    found: dict[str, Any] = dict(workspace.snapshot())
    for path in list(found):
        parts = path.rstrip("/").split("/")
        for depth in range(1, len(parts) + 1):
            name = "/".join(parts[:depth])
            stat = workspace.disk.lstat(os.path.join(workspace.disk.root, name))
            found[f"mode of {name}"] = 0 if stat.kind.name == "SYMLINK" else stat.mode
    return found


async def there_and_back(hand: Hand, *steps: Step) -> None:
    """An undo leaves what was there before, one of the undo what was there after, and so on."""
    history, before = hand.workspace.history, stands(hand.workspace)
    await act(hand, *steps)
    after = stands(hand.workspace)
    undone = await history.undo("batch")
    assert stands(hand.workspace) == before
    redone = await history.undo(undone.batch_id)
    assert stands(hand.workspace) == after
    await history.undo(redone.batch_id)
    assert stands(hand.workspace) == before


@pytest.mark.parametrize(
    ("there", "steps"),
    [
        ({"a": "0"}, [write("a", "1"), move("a", "b"), write("a", "2")]),
        ({"d/a": "0"}, [write("d/a", "1"), move("d", "e"), write("d/a", "2")]),
        ({"d/e/a": "0"}, [write("d/e/a", "1"), move("d", "f"), write("d/e/a", "2"), move("d", "g")]),
        ({"k": "0"}, [write("a", "1"), move("a", "b"), write("a", "2"), move("a", "c")]),
    ],
    ids=["file", "directory", "directory again", "twice"],
)
async def test_a_name_that_a_move_left_may_be_taken_anew(
    tree, hand: Hand, there: dict[str, Planted], steps: Sequence[Step]
) -> None:
    """What is put back at the name is what the move brings, and nobody else's doing."""
    for path, what in there.items():
        tree.put(path, what)
    await there_and_back(hand, *steps)


@pytest.mark.parametrize(
    "steps",
    [
        [delete("d"), write("d", "x")],
        [write("d/a", "1"), move("d", "e"), write("d", "x")],
        [write("d/a", "1"), delete("d"), move("b", "d")],
        [write("d/a", "1"), move("d", "e"), move("l", "d")],
        [delete("d"), write("d", "x"), delete("d"), write("d/a", "1")],
        [delete("b"), write("b/a", "1"), delete("b"), write("b", "2")],
        [delete("b"), move("d/a", "b"), move("b", "c"), write("b", "2")],
    ],
    ids=["deleted", "moved", "deleted, another moved", "moved, a link moved", "back", "forth", "another in between"],
)
async def test_a_file_may_stand_where_the_batch_took_a_directory_away(tree, hand: Hand, steps: Sequence[Step]) -> None:
    """The batch's own doing is no reason to refuse."""
    tree.put("d/a", "0", mode=0o640)
    tree.put("d/in/a", "0")
    tree.put("b", "0")
    tree.put("l", Symlink("b"))
    await there_and_back(hand, *steps)


@pytest.mark.parametrize("whose", ["the batch's", "another's"])
async def test_a_directory_that_somebody_else_took_away_is_missed(tree, hand: Hand, whose: str) -> None:
    """What now stands at its name is his, whatever is below it."""
    if whose == "another's":
        tree.put("d", Directory())
    await act(hand, write("d/a", "1"))
    tree.put("e/a", "1")
    await hand.move("d", "f", batch="another")
    tree.put("d", Symlink("e"))
    with pytest.raises(FileProblem, match="the directory it was in"):
        await hand.workspace.history.undo("batch")
    assert hand.workspace.snapshot() == {"d": "-> e", "e/a": b"1", "f/a": b"1"}


async def test_a_file_may_stand_where_the_batch_took_a_link_away(tree, hand: Hand) -> None:
    """A link is no file that was written: it goes, or comes, by a step of its own."""
    tree.put("l", Symlink("gone"))
    await there_and_back(hand, delete("l"), write("l", "x"))
    tree.put("m", Symlink("gone"))
    await act(hand, write("n", "0"))
    hand.batch = "second"
    before = stands(hand.workspace)
    await act(hand, delete("n"), move("m", "n"), delete("n"), write("n", "1"))
    await hand.workspace.history.undo("second")
    assert stands(hand.workspace) == before


async def test_a_directory_may_stand_where_the_batch_took_a_link_away(tree, hand: Hand) -> None:
    """Nothing is behind the link by the time that something is put into the directory."""
    tree.put("d/k", "other")
    tree.put("l", Symlink("d"))
    tree.put("k", "0")
    await there_and_back(hand, delete("l"), move("k", "l/k"), write("l/k", "1"))


async def test_a_file_that_was_made_anew_has_its_mode_again(tree, hand: Hand) -> None:
    """And the new one's where that is wanted back."""
    tree.put("f", "0", mode=0o750)
    await there_and_back(hand, delete("f"), write("f", "1"))


async def test_a_mode_that_somebody_set_meanwhile_stays(tree, hand: Hand) -> None:
    """What the batch changed is put back, and that was the content."""
    tree.put("f", "0", mode=0o644)
    await act(hand, write("f", "1"))
    await tree.disk.set_mode(("f",), 0o755)
    await hand.workspace.history.undo("batch")
    assert stands(hand.workspace) == {"f": b"0", "mode of f": 0o755}


LATE = {
    "beside a move": (
        {"l": "1"},
        [("move_path", {"source": "l", "target": "n/y/z"}), ("make_dir", {"path": "n/x"})],
    ),
    "beside a move, with a file": (
        {"l": "1"},
        [("write_file", {"path": "n/x", "content": "1"}), ("move_path", {"source": "l", "target": "n/y/z"})],
    ),
    "two moves": (
        {"l": "1", "m": "2"},
        [
            ("move_path", {"source": "l", "target": "n/y/z"}),
            ("move_path", {"source": "m", "target": "n/y/a"}),
            ("make_dir", {"path": "n/y/b/c"}),
        ],
    ),
    "that moves on": (
        {"l": "1"},
        [
            ("write_file", {"path": "n/x", "content": "1"}),
            ("move_path", {"source": "l", "target": "n/y/z"}),
            ("move_path", {"source": "n", "target": "o"}),
            ("make_dir", {"path": "o/y/e"}),
        ],
    ),
}


@pytest.mark.seldom
@pytest.mark.parametrize("name", LATE)
def test_no_directory_of_the_batch_stays_in_any_schedule(name: str) -> None:
    """Whichever call came first and made it."""
    content, steps = LATE[name]
    calls = [toolrt.ToolCall(f"id{number}", *step) for number, step in enumerate(steps)]

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(content))
        before = workspace.snapshot()
        done = await toolrt.Runtime(toolrt.Registry(workspace.tools())).run(calls)
        await workspace.history.undo("batch-1")
        assert workspace.snapshot() == before
        return [result.outcome.value for result in done.results]

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 100))
    assert report.verdict is sim.PASS, report
    assert list(report.outcomes) == [str(["ok"] * len(calls))]


HARD = {
    "edited, the other deleted": [write("a", "1"), delete("h")],
    "edited by the one that is deleted": [write("h", "1"), delete("h"), write("a", "2")],
    "deleted, then edited": [delete("h"), write("a", "1")],
    "edited twice between": [write("h", "1"), write("a", "2"), delete("h"), write("a", "3"), write("a", "4")],
    "both deleted": [write("a", "1"), delete("h"), delete("a")],
    "edited, then deleted": [write("a", "1"), delete("a")],
    "edited, then deleted and made anew": [write("a", "1"), delete("a"), write("a", "2")],
    "edited, then moved and deleted": [write("a", "1"), move("a", "n/b"), delete("n")],
    "edited, deleted, then edited by the other": [write("a", "1"), delete("a"), write("h", "2")],
    "edited, then its directory deleted, a name outside": [write("d/a", "1"), move("d/h", "out"), delete("d")],
    "deleted with their directory": [write("d/a", "1"), delete("d")],
    "the other moved": [write("a", "1"), move("h", "n/h"), delete("n/h")],
    "moved and made anew": [write("a", "1"), move("a", "b"), delete("h"), write("a", "2"), write("b", "3")],
    "both moved with their directory": [write("d/a", "1"), move("d", "e"), write("e/h", "2"), delete("e/a")],
    "deleted and made anew": [write("h", "1"), delete("h"), write("h", "2"), write("a", "3")],
    "deleted, and another took the name": [write("h", "1"), delete("h"), move("k", "h"), write("a", "2")],
}


@pytest.mark.parametrize("name", HARD)
async def test_all_names_of_a_file_have_their_content_again(tree, hand: Hand, name: str) -> None:
    """Whichever of them the batch changed it by, and whichever of them it took away."""
    for directory in ("", "d/"):
        tree.put(f"{directory}a", "0")
        tree.put(f"{directory}h", HardLink(f"{directory}a"))
    tree.put("k", "0")
    await there_and_back(hand, *HARD[name])


_PLACES = ["a", "h", "d/a", "d/h"]
_STEPS = st.one_of(
    st.builds(write, st.sampled_from(_PLACES), st.sampled_from("12")),
    st.builds(delete, st.sampled_from([*_PLACES, "d"])),
    st.builds(move, st.sampled_from([*_PLACES, "d"]), st.sampled_from([*_PLACES, "d/n", "e"])),
)


@example(steps=[delete("d"), write("d/a", "1"), delete("d")])  # the undo makes one directory twice
@given(steps=st.lists(_STEPS, min_size=2, max_size=5))
def test_random_batches_over_names_of_one_file_are_taken_back(steps: list[Step]) -> None:
    """Every name has its content again; a step that the workspace refuses is none."""

    async def main() -> None:
        content = {"a": "0", "h": HardLink("a"), "d/a": "0", "d/h": HardLink("d/a"), "o": HardLink("d/a")}
        hand = Hand(Workspace(MemoryDisk(content)))
        before, changed = stands(hand.workspace), False
        for step in steps:
            with contextlib.suppress(FileProblem):
                await act(hand, step)
                changed = True
        if changed and hand.workspace.history.store.rows_of_batch("batch"):
            await hand.workspace.history.undo("batch")
        assert stands(hand.workspace) == before

    trio.run(main)


async def test_one_call_or_one_file_of_a_batch_is_taken_back(tree) -> None:
    """A call that a later one built on is refused; a file is known by the names that the batch gave it."""
    tree.put("a.txt", b"one")
    workspace = tree.workspace
    inputs = [
        ("edit_file", {"path": "a.txt", "old": "one", "new": "two"}),
        ("write_file", {"path": "b.txt", "content": "new"}),
        ("edit_file", {"path": "a.txt", "old": "two", "new": "three"}),
        ("move_path", {"source": "a.txt", "target": "c.txt"}),
    ]
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    done = await runtime.run([toolrt.ToolCall(str(n), *one) for n, one in enumerate(inputs)])
    batch = done.batch_id
    undo, changes = workspace.history.undo, workspace.history.changes
    for refused in ({"call_index": 0}, {"call_index": 7}, {"path": "none.txt"}):
        with pytest.raises(FileProblem, match=r"a\.txt|changes of what was named"):
            await undo(batch, **refused)
    assert workspace.snapshot() == {"b.txt": b"new", "c.txt": b"three"}
    assert [change.call_index for change in await changes(batch)] == [0, 1, 2, 3]
    assert [change.call_index for change in await changes(batch, path="c.txt")] == [0, 2, 3]
    [created] = await changes(batch, call_index=1)
    assert (created.action, await workspace.history.content(created.after)) == ("created", b"new")
    one = await undo(batch, call_index=1)
    assert workspace.snapshot() == {"c.txt": b"three"}
    other = await undo(batch, path="c.txt")
    assert workspace.snapshot() == {"a.txt": b"one"}
    assert await workspace.history.batches() == (other.batch_id, one.batch_id, batch)


@pytest.mark.parametrize(
    ("steps", "parts"),
    [
        ((write("a", "1"), write("b", "1"), write("a", "2")), ({"call_index": 3},)),
        ((write("a", "1"), write("b", "1"), write("a", "2"), write("a", "3")), ({"path": "a"},)),
        ((write("a", "1"), write("a", "2"), write("a", "3")), ({"call_index": 3}, {"call_index": 2})),
        ((write("d/x", "1"), write("d/y", "1")), ({"path": "d/x"},)),
        ((write("a", "1"), move("a", "c"), write("c", "2"), write("b", "1")), ({"path": "c"},)),
        ((write("a", "1"), move("a", "c"), write("c", "2"), write("b", "1")), ({"call_index": 3}, {"call_index": 2})),
        ((delete("e"), write("a", "1")), ({"call_index": 1},)),
    ],
)
async def test_undo_of_a_batch_takes_back_what_an_undo_of_a_part_left(
    tree, hand: Hand, steps: Sequence[Step], parts: Sequence[dict[str, Any]]
) -> None:
    """It tells what had been put back; undoing what it did, and then the parts, leaves what the batch left."""
    for name in ("a", "b", "e/x"):
        tree.put(name, "0")
    history, before = hand.workspace.history, stands(hand.workspace)
    await act(hand, *steps)
    after = stands(hand.workspace)
    undone = [await history.undo("batch", **part) for part in (*parts, {})]
    assert stands(hand.workspace) == before
    assert set(undone[-1].already) >= set(undone[0].paths)
    assert not set(undone[-1].paths) & {"e", "e/x"}
    for one in reversed(undone):
        if one.paths:
            await history.undo(one.batch_id)
    assert stands(hand.workspace) == after
    assert (await history.undo("batch")).already == ()
    assert stands(hand.workspace) == before


@pytest.mark.parametrize("parts", [({},), ({"call_index": 1}, {"call_index": 2})])
async def test_a_batch_of_which_nothing_stands_is_refused(tree, hand: Hand, parts: Sequence[dict[str, Any]]) -> None:
    """It was undone, as a whole or in parts; the refusal names the files, and changes nothing."""
    await act(hand, write("a", "1"), write("b", "1"))
    for part in parts:
        await hand.workspace.history.undo("batch", **part)
    with pytest.raises(
        FileProblem, match=r"^a, b: expected a change of the batch that stands, got none: earlier undos"
    ):
        await hand.workspace.history.undo("batch")
    assert tree.workspace.snapshot() == {}


async def test_what_was_changed_after_it_was_put_back_stays(tree, hand: Hand) -> None:
    """The rest of the batch is taken back; what came after is another batch's, also where it was undone and redone."""
    tree.put("a", "0")
    tree.put("b", "0")
    await act(hand, write("a", "1"), write("b", "1"))
    history = hand.workspace.history
    part = await history.undo("batch", call_index=1)
    await hand.write("a", b"other", batch="later")
    undone = await history.undo("batch")
    assert (undone.paths, undone.already) == (("b",), ("a",))
    assert tree.workspace.snapshot() == {"a": b"other", "b": b"0"}
    await history.undo("later")
    await history.undo(part.batch_id)
    assert tree.workspace.snapshot() == {"a": b"1", "b": b"0"}
    assert (await history.undo("batch")).paths == ("a",)


async def test_what_another_program_changed_after_it_was_put_back_stays(tree, hand: Hand) -> None:
    """The rest of the batch is taken back; where the program changed what was not put back, nothing is."""
    for name in ("a", "b"):
        tree.put(name, "0")
    await act(hand, write("a", "1"), write("b", "1"), write("c", "1"))
    await hand.workspace.history.undo("batch", call_index=1)
    tree.put("a", "mine")
    tree.put("b", "mine")
    with pytest.raises(FileProblem, match=r"^b: .*another writer changed it since"):
        await hand.workspace.history.undo("batch")
    tree.put("b", "1")
    assert (await hand.workspace.history.undo("batch")).paths == ("b", "c")
    assert tree.workspace.snapshot() == {"a": b"mine", "b": b"0"}


async def test_a_file_is_taken_back_by_its_name_before_the_batch(tree, hand: Hand) -> None:
    """With what was done to it under a later name."""
    tree.put("a", "0")
    await act(hand, move("a", "b"), write("b", "1"), move("b", "c"))
    await hand.workspace.history.undo("batch", path="a")
    assert tree.workspace.snapshot() == {"a": b"0"}


async def test_a_file_that_took_a_name_over_is_taken_back_alone(tree, hand: Hand) -> None:
    """The file that had the name before is where the batch has put it."""
    tree.put("a", "0")
    await act(hand, write("a", "1"), move("a", "b"), write("a", "2"))
    await hand.workspace.history.undo("batch", path="a")
    assert tree.workspace.snapshot() == {"b": b"1"}


async def test_undo_and_restore_name_what_they_made_anew(tree, hand: Hand) -> None:
    """A file that was deleted is another one when it is back; one that was changed is the same."""
    tree.put("a", "0")
    tree.put("k", "0")
    await act(hand, write("a", "1"), delete("k"))
    undone = await hand.workspace.history.undo("batch")
    assert (undone.paths, undone.made_anew) == (("a", "k"), ("k",))
    await hand.remove("k", batch="later")
    assert (await hand.workspace.history.restore("k", 0)).made_anew == ("k",)
    assert (await hand.workspace.history.restore("a", 1)).made_anew == ()


async def test_names_that_are_left_stay_one_file(tree, hand: Hand) -> None:
    """Only the one that was removed comes back as another."""
    tree.put("a", "0")
    tree.put("b", HardLink("a"))
    tree.put("h", HardLink("a"))
    await there_and_back(hand, write("h", "1"), delete("h"), write("b", "2"))
    assert tree.workspace.identify("a").found.inode == tree.workspace.identify("b").found.inode


async def test_a_number_that_was_given_to_another_file_tells_nothing(tree, hand: Hand) -> None:
    """As a disk may give that of a file that is gone; what was changed by the one is not taken back for the other."""
    tree.put("a", "0")
    tree.put("h", HardLink("a"))
    await act(hand, write("a", "1"), delete("h"), delete("a"), write("k", "1"))
    rows = tree.workspace.history.store.rows_of_batch("batch")
    number = rows[0].before.number
    found = tree.workspace.disk.lstat(tree.workspace.disk.root + "/k")
    again = [
        attrs.evolve(row, before=with_number(row.before, number, (found.device, found.inode)),
                     after=with_number(row.after, number, (found.device, found.inode)))
        for row in rows
    ]  # fmt: skip
    plan = await planned(tree.workspace.disk, again, tree.workspace.files.stays_one, {})
    assert [(row.path, None if row.after is None else row.after.digest) for row in plan] == [
        ("k", None),
        ("a", digest_of(b"0")),
        ("h", digest_of(b"0")),
    ]


def with_number(standing: EntryState | None, number: Any, other: Any) -> EntryState | None:
    """The same of another file, where it was of that one."""
    return attrs.evolve(standing, number=other) if standing is not None and standing.number == number else standing


async def test_batches_of_several_runtimes_on_one_workspace_have_ids_of_their_own() -> None:
    """So that an undo is of one of them; no other process gives one of them."""
    workspace, other = Workspace(MemoryDisk({"a": "0", "b": "0"})), Workspace(MemoryDisk())
    batch_ids = []
    for path in ("a", "b"):
        call = toolrt.ToolCall("id", "write_file", {"path": path, "content": "1"})
        batch_ids.append((await toolrt.Runtime(toolrt.Registry(workspace.tools())).run([call])).batch_id)
    assert [(await workspace.history.versions(path))[0].batch_id for path in ("a", "b")] == batch_ids

    @toolrt.tool(owner=other)
    async def of_the_other(ctx: Any) -> str:
        """Nothing."""
        await trio.lowlevel.checkpoint()
        return ""

    both = toolrt.Runtime(toolrt.Registry([*workspace.tools(), of_the_other]))
    alone = toolrt.Runtime(toolrt.Registry(other.tools()))
    opened = [runtime.open_batch().batch_id for runtime in (alone, both, alone)]
    assert [batch_id.split("-")[1] for batch_id in (*batch_ids, *opened)] == ["1", "2", "1", "3", "4"]
    await workspace.history.undo(batch_ids[0])
    assert workspace.snapshot() == {"a": b"0", "b": b"1"}


async def test_of_two_sessions_at_one_time_each_undoes_its_own(tmp_path: Path) -> None:
    """Who is neither of them is refused: which one is meant cannot be told."""
    (tmp_path / "root").mkdir()
    first, second, third = (Workspace(tmp_path / "root", state_dir=tmp_path / "state") for _ in range(3))
    hands = Hand(first), Hand(second)
    for path in ("a", "b"):
        for number, hand in enumerate(hands):
            await hand.write(f"{path}{number}", b"1")
    before = first.snapshot()
    with pytest.raises(FileProblem, match="two sessions used at one time"):
        await third.history.undo("batch")
    assert third.snapshot() == before
    assert (await first.history.undo("batch")).paths == ("a0", "b0")
    assert first.snapshot() == {"a1": b"1", "b1": b"1"}
    assert (await second.history.undo("batch")).paths == ("a1", "b1")
    assert second.snapshot() == {}


FOLDED = {
    "deleted": [delete("A")],
    "moved": [move("A", "q")],
    "moved in its directory": [move("DIR", "q"), write("Q/A", "1")],
    "deleted with its directory": [write("dir/b", "1"), delete("DIR")],
    "deleted as a file is": [("clear", "A")],
    "spelled anew": [move("A", "A")],
    "edited, then deleted": [write("A", "1"), delete("a")],
}


@pytest.mark.parametrize("name", FOLDED)
async def test_a_name_comes_back_as_the_disk_spelled_it(name: str) -> None:
    """Whatever spelling the batch used, where a directory folds names."""
    workspace = Workspace(MemoryDisk({"a": "0", "Dir/a": "0"}, fold=Folding(case=True, unicode=True)))
    await there_and_back(Hand(workspace), *FOLDED[name])


@pytest.mark.parametrize("how", ["parted", "removed", "brought back by an undo"])
async def test_a_file_that_lost_a_name_since_is_not_as_the_batch_left_it(tree, hand: Hand, how: str) -> None:
    """What was changed by one name was changed by the others: all of them are put back, or none."""
    tree.put("a", "0")
    tree.put("h", HardLink("a"))
    await act(hand, write("a", "1"))
    if how == "parted":
        tree.put("h", "1")
    else:
        await hand.remove("h", batch="later")
    if how == "brought back by an undo":
        await hand.workspace.history.undo("later")
    before = stands(hand.workspace)
    with pytest.raises(FileProblem, match=r"^a: .*another writer changed it since"):
        await hand.workspace.history.undo("batch")
    assert stands(hand.workspace) == before


@pytest.mark.parametrize("how", ["fails", "cancelled"])
def test_undo_of_many_files_that_cannot_end_changes_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """Files are written at the same time; where one fails, or the undo is cancelled, those written are taken back."""
    root = tmp_path.resolve() / "work"
    root.mkdir()
    for number in range(60):
        (root / f"{number}.txt").write_text("before")
    workspace = Workspace(root, state_dir=tmp_path / "state")
    edits = [
        toolrt.ToolCall(str(number), "edit_file", {"path": f"{number}.txt", "old": "before", "new": f"after {number}"})
        for number in range(60)
    ]
    batch_id = trio.run(toolrt.Runtime(toolrt.Registry(workspace.tools())).run, edits).batch_id
    after = workspace.snapshot()
    revise, begun, busy, most = workspace.disk.revise, 0, 0, 0

    scope = trio.CancelScope()

    async def counted(entry: Any, *more: Any) -> Any:
        nonlocal begun, busy, most
        begun, busy = begun + 1, busy + 1
        most = max(most, busy)
        try:
            if begun == 30 and how == "fails":
                raise OSError(28, "No space left on device")
            if begun == 30:
                scope.cancel()
            return await revise(entry, *more)
        finally:
            busy -= 1

    async def program() -> None:
        expected = pytest.raises(FileProblem, match="room on the disk") if how == "fails" else contextlib.nullcontext()
        with scope, expected:
            await workspace.history.undo(batch_id)

    monkeypatch.setattr(workspace.disk, "revise", counted)
    trio.run(program)
    monkeypatch.undo()
    assert scope.cancelled_caught is (how == "cancelled")
    assert workspace.snapshot() == after
    assert most > 1
    trio.run(workspace.history.undo, batch_id)
    assert set(workspace.snapshot().values()) == {b"before"}
