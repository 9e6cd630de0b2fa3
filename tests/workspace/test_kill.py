"""A process that edits is killed, again and again: nothing is ever half, and history agrees with the disk."""

from __future__ import annotations

import itertools
import random
from pathlib import Path
from typing import Any

import pytest

from tests._forked import forked, pipe
from tests._profile import FULL
from tests.workspace._killed import SIZE, content, edit_until_killed, tell_variable
from toolrt.workspace import Workspace
from toolrt.workspace.change._mutation import digest_of

pytestmark = pytest.mark.process

#: How often it is killed: 200 times in the full run.
KILLS = 200 if FULL else 20


def kill_after(root: Path, state: Path, start: int, wait: float) -> None:
    """Let a child edit for `wait` seconds, and kill it."""
    ours, theirs = pipe()
    child = forked(edit_until_killed, str(root), str(state), start, theirs)
    theirs.close()
    try:
        # It has begun to edit once it says so; a child that fails ends, and prints why.
        assert ours.recv() == "ready"
        assert not ours.poll(wait), "the child ended before it was killed"
    finally:
        child.kill()
        child.join()
        ours.close()


def number_of(found: bytes | str) -> int:
    """Which version this is; it has to be a whole one."""
    assert isinstance(found, bytes)
    assert len(found) == SIZE
    number = int(found[:8])
    assert found == content(number)
    return number


def test_forked_process_has_the_environment_of_its_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not of the test that started the fork server: names are signed with a key that a variable leads to."""
    for value in ("one", "two"):
        monkeypatch.setenv("TOOLRT_STATE_DIR", value)
        ours, theirs = pipe()
        child = forked(tell_variable, "TOOLRT_STATE_DIR", theirs)
        theirs.close()
        told = ours.recv()
        child.join()
        ours.close()
        assert told == value


@pytest.mark.slow
@pytest.mark.timeout(3600)
async def test_killed_at_any_moment_nothing_is_half(tmp_path: Path) -> None:
    """Every file is a whole version, groups are whole, no temporary file stays, and history knows what is there."""
    root, state = tmp_path / "root", tmp_path / "state"
    root.mkdir()
    (root / "linked").write_bytes(content(0))
    (root / "link").hardlink_to(root / "linked")
    chance = random.Random(7)
    highest = 0
    seen: list[int] = []
    for _ in range(KILLS):
        kill_after(root, state, highest, chance.uniform(0, 0.15))
        workspace = Workspace(root, state_dir=state)
        assert workspace.history.problem is None
        files: dict[str, Any] = workspace.snapshot()
        assert {path for path in files if not path.endswith("/")} <= {
            "a", "d/b", "linked", "link", "x/one", "y/two"
        }  # fmt: skip
        numbers = {path: number_of(found) for path, found in files.items() if not path.endswith("/")}
        assert numbers["linked"] == numbers["link"]
        assert numbers.get("x/one") == numbers.get("y/two")
        for path in ("a", "d/b", "linked", "x/one", "y/two"):
            versions = await workspace.history.versions(path)
            standing = digest_of(files[path]).hex() if path in files else None
            first = digest_of(content(0)).hex() if path == "linked" else None
            assert (versions[-1].after if versions else first) == standing, path
            for earlier, later in itertools.pairwise(versions):
                assert earlier.after == later.before, (path, later.number)
        highest = max([highest, *numbers.values()])
        seen.append(highest)
        workspace.history.store.close()  # type: ignore[attr-defined]
    assert seen[-1] > seen[0] > -1
