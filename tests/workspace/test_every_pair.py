"""Every batch of two file calls at a few names, in every trace: each pair has one ending.

The names are a file and one below it, a directory and what is in it, one through a link, what does not exist yet and
what would be made below that, a link that leads nowhere, a second name of a file, the root, ``.gitignore``, and files
of another root that is mounted here.  The full run does all of them, and batches of three that meet at one place; the
other a share.
"""

from __future__ import annotations

import errno
import itertools
import os
import random
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests._profile import FULL
from toolrt import sim
from toolrt.workspace import Directory, FileProblem, HardLink, MemoryDisk, MountedDisk, Symlink, Workspace

Call = tuple[str, dict[str, Any]]

CONTENT = {
    "f": "one\n",
    "hard": HardLink("f"),
    "d/b": "one\n",
    "d/.gitignore": "x\n",
    "e": Directory(),
    "way": Symlink("d"),
    "dangling": Symlink("later"),
}

#: What another root has, which is mounted as ``docs``.
MOUNTED = {"b": "one\n", "back": Symlink("/workspace/f")}

#: Names that have to do with each other.
PLACES = {
    "a file": ["f", "f/x", "hard"],
    "missing": ["later", "later/new", "later/deep/x", "dangling", "dangling/new", "later/../f"],
    "a directory": ["d", "d/b", "d/new", "way", "way/b"],
    "an empty one": ["e", "e/x", "e/m", "e/.."],
    "the root": [".", ".gitignore", ".gitignore/x", "d/.gitignore"],
    "another root": ["docs", "docs/b", "/srv/docs/b", "docs/new/x", "docs/new", "docs/back", "docs/../f"],
}

NAMES = [name for names in PLACES.values() for name in names]


@attrs.frozen
class NoRoom:
    """Every operation of this kind on this file fails."""

    effect: str
    path: str

    def __call__(self, effect: str, path: str) -> None:
        if (effect, path) == (self.effect, self.path):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def disk(fault: NoRoom | None = None) -> MountedDisk:
    return MountedDisk(MemoryDisk(CONTENT, fault=fault), {"docs": MemoryDisk(MOUNTED, root="/srv/docs")})


def calls_at(name: str) -> list[Call]:
    return [
        ("read_file", {"path": name}),
        ("write_file", {"path": name, "content": "new\n"}),
        ("edit_file", {"path": name, "old": "one", "new": "1"}),
        ("make_dir", {"path": name}),
        ("list_dir", {"path": name}),
        ("glob", {"path": name, "pattern": "**/*"}),
        ("search", {"path": name, "pattern": "e"}),
        ("delete_path", {"path": name}),
        ("delete_path", {"path": name, "recursive": True}),
        ("apply_patch", {"patch": f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-one\n+1\n"}),
        ("apply_patch", {"patch": f"--- /dev/null\n+++ b/{name}\n@@ -0,0 +1 @@\n+1\n"}),
    ]


def moves(sources: list[str], targets: list[str]) -> list[Call]:
    return [("move_path", {"source": one, "target": other}) for one in sources for other in targets]


EVERYWHERE = [call for name in NAMES for call in calls_at(name)] + moves(
    ["f", "d", "way", "hard", "e", "dangling", "docs/b"], ["later", "later/x", "e/m", "d/m", "f/q", "docs/m/n"]
)


def endings_of(calls: tuple[Call, ...], fault: NoRoom | None = None) -> list[str]:
    async def program() -> Any:
        workspace = Workspace(disk(fault))
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        done = await runtime.run([toolrt.ToolCall(f"id{number}", *call) for number, call in enumerate(calls)])
        return [(result.outcome.value, result.content, result.error) for result in done.results], workspace.snapshot()

    report = sim.explore(program, strategy=sim.DPOR(), max_executions=2_000)
    assert not report.failures, report
    # Three walks of one tree, which remember what they read, have more traces; what was run has to agree all the same.
    assert report.complete or len(calls) > 2, (calls, report.claim)
    return sorted(map(str, report.outcomes))


def require_one_ending(calls: tuple[Call, ...], fault: NoRoom | None = None) -> None:
    endings = endings_of(calls, fault)
    assert len(endings) == 1, f"{calls}, {fault}: what comes out depends on timing:\n" + "\n".join(endings)


@pytest.mark.seldom
@pytest.mark.drawn(3)
@pytest.mark.slow
@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("share", range(8))
def test_every_pair_has_one_ending(share: int) -> None:
    """Each call before and behind each other one; of these one in a thousand where not all are asked for."""
    pairs = list(itertools.product(EVERYWHERE, repeat=2))
    random.Random(1).shuffle(pairs)
    for pair in itertools.islice(pairs, share, None, 8 if FULL else 8_000):
        require_one_ending(pair)


@pytest.mark.drawn(2)
@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("place", PLACES)
def test_three_calls_at_one_place_have_one_ending(place: str) -> None:
    """What a call finds may be what another left: so batches of three, any of those at the place's names."""
    names = PLACES[place]
    calls = [call for name in names for call in calls_at(name)] + moves(names, [*names, "later/x"])
    chosen = random.Random(2)
    for _ in range(4_000 if FULL else 5):
        require_one_ending((chosen.choice(calls), chosen.choice(calls), chosen.choice(calls)))


FAULTS = {
    "a file": ["f", "hard"],
    "missing": ["later", "later/new", "later/deep", "later/deep/x", "later/x"],
    "a directory": ["d", "d/b", "d/new"],
    "an empty one": ["e", "e/x", "e/m"],
}
EFFECTS = ["read", "write", "move", "make directory", "overwrite", "look", "list", "remove"]


@pytest.mark.seldom
@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("place", FAULTS)
def test_calls_at_one_place_have_one_ending_where_the_disk_fails(place: str) -> None:
    """A call that fails, and takes back what it did, leaves nothing that another would rely on."""
    calls = [call for name in PLACES[place] for call in calls_at(name)]
    calls += moves([*PLACES[place], "d/b", "f"], [*PLACES[place], "later/x"])
    chosen = random.Random(3)
    for _ in range(4_000 if FULL else 10):
        several = tuple(chosen.choice(calls) for _ in range(chosen.choice((2, 3))))
        require_one_ending(several, NoRoom(chosen.choice(EFFECTS), chosen.choice(FAULTS[place])))


FAILING = [
    (("write_file", {"path": "later/new", "content": "1"}), NoRoom("write", "later/new")),
    (("move_path", {"source": "f", "target": "later/new"}), NoRoom("move", "f")),
    (("make_dir", {"path": "later/new"}), NoRoom("make directory", "later/new")),
    (("move_path", {"source": "docs/b", "target": "later/new"}), None),
]


@pytest.mark.seldom
@pytest.mark.drawn(3)
@pytest.mark.parametrize(("failing", "fault"), FAILING, ids=["write", "move", "make", "to another root"])
@pytest.mark.parametrize("made", ["later/deep/x", "later/y"])
def test_a_call_that_fails_takes_its_directory_from_nobody(failing: Call, fault: NoRoom | None, made: str) -> None:
    """It made the directory and takes it away again; who puts something there meanwhile has it."""
    good = ("write_file", {"path": made, "content": "1"})
    for calls in ((failing, good), (good, failing), (failing, failing, good)):
        [ending] = endings_of(calls, fault)
        assert f"('ok', 'created {made} (1 byte)', None)" in ending
    [ending] = endings_of((failing, failing), fault)
    assert "later" not in ending[ending.index("{'") :].replace("'dangling': '-> later'", "")


@pytest.mark.seldom
def test_directories_in_the_making_hold_nobody_up_when_a_batch_is_cancelled() -> None:
    """At whatever step it is: another batch makes them, and its undo takes all away."""
    first = [toolrt.ToolCall("0", *FAILING[0][0]), toolrt.ToolCall("1", *FAILING[1][0])]
    second = [toolrt.ToolCall("0", "write_file", {"path": "later/z/x", "content": "1"})]

    async def program() -> Any:
        workspace = Workspace(disk())
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        with sim.scope("first"):
            await runtime.run(first)
        before = workspace.snapshot()
        done = await runtime.run(second)
        assert done.results[0].ok, done.results
        [version] = await workspace.history.versions("later/z/x")
        await workspace.history.undo(version.batch_id)
        assert workspace.snapshot() == before

    report = sim.explore(program, strategy=sim.Random(sim.RandomWalk(seed=4), 300), cancel_at="first")
    assert report.verdict is sim.PASS, report


BELOW = [
    ("write_file", {"path": "later/new", "content": "1\n"}),
    ("make_dir", {"path": "later/deep"}),
    ("move_path", {"source": "d/b", "target": "later/b"}),
    ("apply_patch", {"patch": "--- /dev/null\n+++ b/later/new\n@@ -0,0 +1 @@\n+1\n"}),
]


@pytest.mark.drawn(4)
@pytest.mark.parametrize("below", BELOW, ids=[name for name, _ in BELOW])
@pytest.mark.parametrize("spelled", ["later", "dangling", "e/../later"])
def test_who_reads_what_is_no_file_is_not_told_what_else_it_is(below: Call, spelled: str) -> None:
    """A call that makes something below a name makes a directory of it, in no order with who reads the name."""
    for calls in (("read_file", {"path": spelled}), below), (below, ("read_file", {"path": spelled})):
        [ending] = endings_of(calls)
        assert "FileProblem: later: expected a file, got none: nothing of that name, or a directory." in ending


@pytest.mark.parametrize("behind", BELOW, ids=[name for name, _ in BELOW])
def test_a_file_that_is_deleted_is_told_alike_whatever_takes_its_place(behind: Call) -> None:
    """Also where the reader was ordered while the file stood there."""
    name, input = behind
    there = {key: value.replace("later", "f") for key, value in input.items()}
    [ending] = endings_of((("delete_path", {"path": "f"}), ("read_file", {"path": "f"}), (name, there)))
    assert "FileProblem: f: expected a file, got none: nothing of that name, or a directory." in ending


@pytest.mark.parametrize("steps", [0, 1, 5, 50])
def test_when_a_call_was_streamed_does_not_show_in_a_refusal(steps: int) -> None:
    """Whether the file still stood there when the model named it is nobody's business."""

    async def program() -> Any:
        workspace = Workspace(disk())
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        async with runtime.open_batch() as batch:
            batch.submit(toolrt.ToolCall("0", "delete_path", {"path": "f"}))
            for _ in range(steps):
                await trio.lowlevel.checkpoint()
            batch.submit(toolrt.ToolCall("1", "read_file", {"path": "f"}))
            batch.seal()
            async for _ in batch:
                pass
        return batch.outcome.results[1].error

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 30))
    [error] = report.outcomes
    assert "expected a file, got none: nothing of that name, or a directory." in str(error)


@pytest.mark.seldom
def test_an_undo_takes_away_every_directory_of_the_batch() -> None:
    """Whichever call came first and made it."""

    async def program() -> Any:
        workspace = Workspace(disk())
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        writes = [("write_file", {"path": f"later/n/{name}", "content": "1"}) for name in "abc"]
        before = workspace.snapshot()
        await runtime.run([toolrt.ToolCall(f"id{number}", *call) for number, call in enumerate(writes)])
        [version] = await workspace.history.versions("later/n/a")
        await workspace.history.undo(version.batch_id)
        assert workspace.snapshot() == before

    for strategy in (sim.DPOR(), sim.Random(sim.RandomWalk(seed=2), 200)):
        report = sim.explore(program, strategy, max_executions=2_000)
        assert report.verdict is sim.PASS, report


def test_an_undo_puts_back_what_was_in_a_directory_that_moved() -> None:
    """The directory that a file needs may be one that the undo itself moves back."""
    workspace = Workspace(MemoryDisk({"d/in/a": "1\n", "d/b": "1\n"}))
    before = workspace.snapshot()
    calls = [
        ("edit_file", {"path": "d/in/a", "old": "1", "new": "2"}),
        ("delete_path", {"path": "d/b"}),
        ("move_path", {"source": "d", "target": "later/e"}),
        ("edit_file", {"path": "later/e/in/a", "old": "2", "new": "3"}),
    ]
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
    done = toolrt.run_sync(runtime, [toolrt.ToolCall(f"id{number}", *call) for number, call in enumerate(calls)])
    assert [result.error for result in done.results] == [None] * 4

    async def undo() -> None:
        version = (await workspace.history.versions("later/e/in/a"))[-1]
        await workspace.history.undo(version.batch_id)

    trio.run(undo)
    assert workspace.snapshot() == before


@pytest.mark.seldom
def test_an_undo_relies_on_no_directory_in_the_making() -> None:
    """Its own is missing; that a failing call makes it, and takes it away again, at that moment does not help."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"d/a": "1\n"}, fault=NoRoom("write", "d/new")))
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        for path in ("d/a", "d"):
            await runtime.run([toolrt.ToolCall("0", "delete_path", {"path": path})])
        [version] = await workspace.history.versions("d/a")
        told: list[str] = []

        async def undo() -> None:
            try:
                await workspace.history.undo(version.batch_id)
            except FileProblem as problem:
                told.append(str(problem))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(undo)
            nursery.start_soon(runtime.run, [toolrt.ToolCall("0", "write_file", {"path": "d/new", "content": "1"})])
        return told, workspace.snapshot()

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=3), 300))
    assert report.verdict is sim.PASS, report
    [ending] = report.outcomes
    assert "d: expected the directory that was there, got none by now." in str(ending)
    assert str(ending).endswith(", {})")
