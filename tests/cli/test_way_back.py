"""``toolrt history``, ``undo`` and ``restore``."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def batch_of(out: str) -> str:
    found = re.search(r"toolrt undo (\S+) --workspace", out)
    assert found is not None
    return found[1]


def test_undo_puts_back_exactly_what_a_run_changed(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """The command that run prints leaves the directory as it was."""
    before = tree(shop)
    ran = toolrt("run", response, "--workspace", shop)
    assert tree(shop) != before
    undone = toolrt("undo", batch_of(ran.out), "--workspace", shop)
    assert (undone.code, tree(shop)) == (0, before)
    assert "shop/cart.py" in undone.out


def test_undo_can_be_undone(toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]) -> None:
    """An undo is a batch too."""
    ran = toolrt("run", response, "--workspace", shop)
    after = tree(shop)
    undone = toolrt("undo", batch_of(ran.out), "--workspace", shop)
    toolrt("undo", batch_of(undone.out), "--workspace", shop)
    assert tree(shop) == after


def test_undo_of_a_batch_says_what_an_undo_of_one_call_had_put_back(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """It puts back the rest, in another process."""
    before = tree(shop)
    batch = batch_of(toolrt("run", response, "--workspace", shop).out)
    part = toolrt("undo", batch, "--file", "CHANGES.md", "--workspace", shop)
    assert (part.code, "earlier undo" in part.out) == (0, False)
    undone = toolrt("undo", batch, "--workspace", shop)
    assert (undone.code, tree(shop)) == (0, before)
    assert "CHANGES.md: put back already by an earlier undo" in undone.out


def test_undo_refuses_where_somebody_else_changed_a_file(
    toolrt: Any, response: Path, shop: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """All stays as it is, the other's change too; the file is named, and no path of the machine."""
    ran = toolrt("run", response, "--workspace", shop)
    (shop / "CHANGES.md").write_text("mine\n")
    before = tree(shop)
    ended = toolrt("undo", batch_of(ran.out), "--workspace", shop)
    assert (ended.code, tree(shop)) == (1, before)
    assert "CHANGES.md" in ended.err
    assert str(shop) not in ended.err


def test_undo_shows_line_ends_and_what_history_does_not_hold(toolrt: Any, shop: Path, tmp_path: Path) -> None:
    """As diff does; a file that is too large is not said to be lost, because an undo puts it back."""
    (shop / "ends.txt").write_bytes(b"one\r\ntwo\n")
    (shop / "large").write_bytes(b"0" * 11 * 1024 * 1024)
    patch = "--- a/ends.txt\n+++ b/ends.txt\n@@ -1,2 +1,2 @@\n-one\r\n-two\n+one\n+two\n\\ No newline at end of file\n"
    calls = [("apply_patch", {"patch": patch}), ("delete_path", {"path": "large"})]
    blocks = [{"type": "tool_use", "id": name, "name": name, "input": input} for name, input in calls]
    (tmp_path / "calls.json").write_text(json.dumps({"content": blocks}))
    ran = toolrt("run", tmp_path / "calls.json", "--workspace", shop)
    shown = toolrt("undo", batch_of(ran.out), "--show", "--workspace", shop)
    assert (shop / "ends.txt").read_bytes() == b"one\ntwo"
    assert "@@ -1,2 +1,2 @@\n-one\\r\n-two\n+one\n+two\n\\ No newline at end of file\n" in shown.out
    assert "\n-(not in history: it is too large, or was dropped for later versions)\n" in shown.out
    assert toolrt("undo", batch_of(ran.out), "--workspace", shop).code == 0
    assert (shop / "large").stat().st_size == 11 * 1024 * 1024


def test_undo_lists_batches_and_shows_what_it_would_take_back(toolrt: Any, response: Path, shop: Path) -> None:
    """Neither changes anything; one file and one call can be named, and a batch or --list has to be."""
    ran = toolrt("run", response, "--workspace", shop)
    batch, cart = batch_of(ran.out), (shop / "shop" / "cart.py").read_text()
    listed = toolrt("undo", "--list", "--workspace", shop)
    assert (listed.code, batch in listed.out, "shop/cart.py" in listed.out) == (0, True, True)
    shown = toolrt("undo", batch, "--show", "--file", "shop/cart.py", "--workspace", shop)
    assert shown.code == 0
    assert shown.out.count("shop/cart.py changed\n--- a/shop/cart.py\n+++ b/shop/cart.py\n@@ ") == 5
    assert "CHANGES.md" not in shown.out
    assert (shop / "shop" / "cart.py").read_text() == cart
    undone = toolrt("undo", batch, "--file", "shop/cart.py", "--workspace", shop)
    assert (undone.code, "CHANGES.md" in undone.out) == (0, False)
    assert (shop / "shop" / "cart.py").read_text() != cart
    for options, refused in (
        (("--show",), "toolrt undo --show: expected a batch or --list, got no batch."),
        ((batch, "--list"), "toolrt undo: expected a batch or --list, got both."),
    ):
        ended = toolrt("undo", *options, "--workspace", shop)
        assert (ended.code, ended.out) == (2, "")
        assert refused in ended.err
        assert "toolrt undo --list --workspace DIR names the batches; give one of them." in ended.err
    assert toolrt("undo", batch, "--call", "99", "--workspace", shop).code == 1


def test_undo_of_an_unknown_batch_is_refused(toolrt: Any, shop: Path) -> None:
    """It says so in one line."""
    ended = toolrt("undo", "run-0", "--workspace", shop)
    assert (ended.code, ended.out) == (1, "")
    assert "none of this id" in ended.err


def test_history_lists_the_versions_of_a_file(toolrt: Any, response: Path, shop: Path) -> None:
    """One line for each mutation, in call order, whatever name it was reached by."""
    ran = toolrt("run", response, "--workspace", shop)
    ended = toolrt("history", "shop/../shop/cart.py", "--workspace", shop)
    lines = ended.out.splitlines()
    assert ended.code == 0
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5"]
    assert all(line.endswith(f"of {batch_of(ran.out)}") for line in lines)


def test_history_prints_json(toolrt: Any, response: Path, shop: Path) -> None:
    """Each version's content is named before and after, and one's after is the next one's before."""
    toolrt("run", response, "--workspace", shop)
    versions = json.loads(toolrt("history", "shop/cart.py", "--workspace", shop, "--json").out)
    assert [version["number"] for version in versions] == [1, 2, 3, 4, 5]
    assert [version["after"] for version in versions[:-1]] == [version["before"] for version in versions[1:]]


def test_history_of_a_file_nobody_changed_says_so(toolrt: Any, shop: Path) -> None:
    """That is no error."""
    ended = toolrt("history", "README.md", "--workspace", shop)
    assert (ended.code, ended.out) == (0, "no version of README.md is known\n")


def test_restore_puts_back_one_version(toolrt: Any, response: Path, shop: Path) -> None:
    """Version 0 is what was there first."""
    before = (shop / "shop" / "cart.py").read_bytes()
    toolrt("run", response, "--workspace", shop)
    assert toolrt("restore", "shop/cart.py", "0", "--workspace", shop).code == 0
    assert (shop / "shop" / "cart.py").read_bytes() == before


@pytest.mark.parametrize("version", ["99", "-1"])
def test_restore_of_a_version_that_is_not_there_is_refused(
    toolrt: Any, response: Path, shop: Path, version: str
) -> None:
    """It says which there are."""
    toolrt("run", response, "--workspace", shop)
    ended = toolrt("restore", "shop/cart.py", version, "--workspace", shop)
    assert ended.code == 1
    assert "from 0 to 5" in ended.err


@pytest.mark.seldom
@pytest.mark.process
def test_run_keeps_going_where_history_cannot_be_kept(toolrt: Any, response: Path, shop: Path, tmp_path: Path) -> None:
    """A state directory that cannot be made costs the way back and nothing else, and that is said."""
    blocked = tmp_path / "blocked"
    blocked.write_text("a file")
    ended = toolrt.spawned("run", response, "--workspace", shop, env={"TOOLRT_STATE_DIR": str(blocked)})
    assert ended.code == 1
    assert "12 ok, 1 error, 1 invalid" in ended.out
    assert "not kept for undo" in ended.out
    assert "toolrt undo" not in ended.out
