"""A call beside one that makes directories on the way to its file: the answers are those of one call after the other.

`read_file later` beside `write_file later/new.txt`, where the write makes `later`, was the known gap of law 7.  Here it
is drawn every time, with every other pair of that shape: whatever looks at, changes, removes or moves a name, beside
whatever makes a directory of it.
"""

from __future__ import annotations

import errno
import itertools
import os
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests._profile import FULL
from toolrt import sim
from toolrt.workspace import Directory, Fault, MemoryDisk, Symlink, Workspace

Call = tuple[str, dict[str, Any]]

CONTENT = {"f": "one\n", "e": Directory(), "dangling": Symlink("later"), "way": Symlink(".")}

#: What is missing, what is on the way to it, and names that go through it.
NAMES = [
    "later",
    "later/",
    "later/.",
    "later/new",
    "later/deep",
    "later/../f",
    "later/deep/../../f",
    "dangling",
    "way/later",
    ".",
]

#: The calls that make directories on the way.
MAKERS: list[Call] = [
    ("write_file", {"path": "later/new", "content": "new\n"}),
    ("write_file", {"path": "later/deep/new", "content": "new\n"}),
    ("write_file", {"path": "dangling/new", "content": "new\n"}),
    ("apply_patch", {"patch": "--- /dev/null\n+++ b/later/deep/new\n@@ -0,0 +1 @@\n+1\n"}),
    ("move_path", {"source": "f", "target": "later/deep/f"}),
    ("make_dir", {"path": "later/deep"}),
]


def others_at(name: str) -> list[Call]:
    return [
        ("read_file", {"path": name}),
        ("edit_file", {"path": name, "old": "one", "new": "1"}),
        ("write_file", {"path": name, "content": "x\n"}),
        ("make_dir", {"path": name}),
        ("change_dir", {"path": name}),
        ("list_dir", {"path": name}),
        ("glob", {"path": name, "pattern": "**/*"}),
        ("search", {"path": name, "pattern": "n"}),
        ("delete_path", {"path": name, "recursive": True}),
        ("move_path", {"source": name, "target": "moved/to"}),
        ("move_path", {"source": "e", "target": name}),
    ]


#: Every how many pairs one is tried where not all are asked for; no divisor of the number of makers.
STRIDE = 7


@attrs.frozen
class NoRoom:
    """The file cannot be written, so the directories on the way are taken back."""

    def __call__(self, effect: str, path: str) -> None:
        if effect == "write" and path.endswith("new"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def ended(calls: tuple[Call, ...], lanes: str, fault: Fault | None) -> Any:
    workspace = Workspace(MemoryDisk(CONTENT, fault=fault))
    runtime = toolrt.Runtime(toolrt.Registry(workspace.tools()), lanes=getattr(toolrt, lanes))
    done = await runtime.run([toolrt.ToolCall(f"id{number}", *call) for number, call in enumerate(calls)])
    return [(result.outcome.value, result.content, result.error) for result in done.results], workspace.snapshot()


def require_serial(calls: tuple[Call, ...], lanes: str, fault: Fault | None = None) -> None:
    """Every trace of the batch ends as its calls do one after the other."""
    report = sim.explore(lambda: ended(calls, lanes, fault), strategy=sim.DPOR(), max_executions=2_000)
    assert report.complete, (calls, report)
    assert not report.failures, (calls, report)
    serial = str(trio.run(ended, calls, "serial", fault))
    assert {str(outcome) for outcome in report.outcomes} == {serial}, calls


@pytest.mark.seldom
@pytest.mark.parametrize("lanes", ["by_claims", "parallel"])
def test_a_read_beside_a_write_that_makes_a_directory_of_its_name(lanes: str) -> None:
    """The pair itself, both ways round, also where the write fails and takes the directory back."""
    pair = (("read_file", {"path": "later"}), ("write_file", {"path": "later/new.txt", "content": "new\n"}))
    for fault in (None, NoRoom()):
        require_serial(pair, lanes, fault)
        require_serial((pair[1], pair[0]), lanes, fault)


@pytest.mark.seldom
@pytest.mark.drawn(3)
@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", NAMES)
def test_every_call_beside_every_maker_of_directories(name: str) -> None:
    """Both ways round; whatever is asked about the missing name, or done to it: in the full run all, else a share.

    The share of each name begins one pair later than that of the name before, so that no pair is left out of all.
    """
    pairs = list(itertools.product(others_at(name), MAKERS))
    for one, maker in pairs if FULL else pairs[NAMES.index(name) % STRIDE :: STRIDE]:
        require_serial((maker, one), "by_claims")
        # A name that leads through a link which the call before takes away is another subject.
        if not (
            one[1].get("path", one[1].get("source")) == "dangling" == maker[1].get("path", "")[:8] and is_removal(one)
        ):
            require_serial((one, maker), "by_claims")


def is_removal(call: Call) -> bool:
    """Whether it takes the name itself away."""
    return call[0] in ("delete_path", "move_path")
