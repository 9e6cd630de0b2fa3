"""Every batch of two file calls at a few names, in every trace: each pair has one ending.

The names are a file and one below it, a directory and what is in it, one through a link, what does not exist yet and
what would be made below that, a link that leads nowhere, a second name of a file, the root, ``.gitignore``, and files
of another root that is mounted here.  The full run does all of them, and batches of three that meet at one place; the
other a share.
"""

from __future__ import annotations

import itertools
import os
import random
from typing import Any

import pytest

import toolrt
from toolrt import sim
from toolrt.workspace import Directory, HardLink, MemoryDisk, MountedDisk, Symlink, Workspace

FULL = os.environ.get("HYPOTHESIS_PROFILE") == "full"

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


def disk() -> MountedDisk:
    return MountedDisk(MemoryDisk(CONTENT), {"docs": MemoryDisk(MOUNTED, root="/srv/docs")})


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


def endings_of(calls: tuple[Call, ...]) -> list[str]:
    async def program() -> Any:
        workspace = Workspace(disk())
        runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()))
        done = await runtime.run([toolrt.ToolCall(f"id{number}", *call) for number, call in enumerate(calls)])
        return [(result.outcome.value, result.content, result.error) for result in done.results], workspace.snapshot()

    report = sim.explore(program, strategy=sim.DPOR(), max_executions=2_000)
    assert not report.failures, report
    assert report.complete, (calls, report.claim)
    return sorted(map(str, report.outcomes))


def require_one_ending(calls: tuple[Call, ...]) -> None:
    endings = endings_of(calls)
    assert len(endings) == 1, f"{calls}: what comes out depends on timing:\n" + "\n".join(endings)


@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("share", range(8))
def test_every_pair_has_one_ending(share: int) -> None:
    """Each call before and behind each other one; of these one in forty where not all are asked for."""
    pairs = list(itertools.product(EVERYWHERE, repeat=2))
    random.Random(1).shuffle(pairs)
    for pair in itertools.islice(pairs, share, None, 8 if FULL else 320):
        require_one_ending(pair)


@pytest.mark.timeout(3600 if FULL else 300)
@pytest.mark.parametrize("place", PLACES)
def test_three_calls_at_one_place_have_one_ending(place: str) -> None:
    """What a call finds may be what another left: so batches of three, any of those at the place's names."""
    names = PLACES[place]
    calls = [call for name in names for call in calls_at(name)] + moves(names, [*names, "later/x"])
    chosen = random.Random(2)
    for _ in range(4_000 if FULL else 60):
        require_one_ending((chosen.choice(calls), chosen.choice(calls), chosen.choice(calls)))


BELOW = [
    ("write_file", {"path": "later/new", "content": "1\n"}),
    ("make_dir", {"path": "later/deep"}),
    ("move_path", {"source": "d/b", "target": "later/b"}),
    ("apply_patch", {"patch": "--- /dev/null\n+++ b/later/new\n@@ -0,0 +1 @@\n+1\n"}),
]


@pytest.mark.parametrize("below", BELOW, ids=[name for name, _ in BELOW])
@pytest.mark.parametrize("spelled", ["later", "dangling", "e/../later"])
def test_who_reads_what_is_not_there_comes_before_who_makes_a_directory_of_it(below: Call, spelled: str) -> None:
    """The reader's error says what stood there in its turn, and no call behind it decides which."""
    [ending] = endings_of((("read_file", {"path": spelled}), below))
    assert "later: expected a file, got nothing of that name" in ending
    [ending] = endings_of((below, ("read_file", {"path": spelled})))
    assert "later: expected a file, got a directory" in ending


@pytest.mark.parametrize("behind", BELOW, ids=[name for name, _ in BELOW])
def test_a_file_that_is_deleted_is_told_alike_whatever_takes_its_place(behind: Call) -> None:
    """What stood there when the calls were ordered was a file: nothing below its name was claimed."""
    name, input = behind
    there = {key: value.replace("later", "f") for key, value in input.items()}
    [ending] = endings_of((("delete_path", {"path": "f"}), ("read_file", {"path": "f"}), (name, there)))
    assert "FileProblem: f: expected the file that stood there, got none by now. Check the name." in ending
