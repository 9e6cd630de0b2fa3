"""``--mount``: other directories at names of the workspace, in every command that works on one."""

from __future__ import annotations

import json
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from toolrt import invariants
from toolrt.cli.experiment._experiment import Experiment
from toolrt.cli.experiment._failure import FailureFile
from toolrt.workspace import Identity


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A directory beside the workspace."""
    path = tmp_path / "some docs"
    path.mkdir()
    (path / "x.md").write_text("one\n")
    return path


@pytest.fixture
def calls(written: Callable[..., Path], docs: Path) -> Path:
    """A response whose calls change files of both roots."""
    return written(
        ("edit_file", {"path": "docs/x.md", "old": "one", "new": "two"}),
        ("edit_file", {"path": f"{docs}/x.md", "old": "two", "new": "three"}),
        ("write_file", {"path": "new.txt", "content": "new\n"}),
        ("read_file", {"path": "docs/x.md"}),
    )


def test_run_works_on_all_roots_and_says_the_way_back(toolrt: Any, calls: Path, shop: Path, docs: Path) -> None:
    """The command that it prints knows the mounts, and puts back what was changed in each."""
    ran = toolrt("run", calls, "--workspace", shop, "--mount", f"docs={docs}")
    assert ran.code == 0
    assert (docs / "x.md").read_text() == "three\n"
    found = re.search(r"toolrt (undo .*) puts it back", ran.out.replace("\n", " "))
    assert found is not None
    undone = toolrt(*shlex.split(found[1]))
    assert undone.code == 0
    assert (docs / "x.md").read_text() == "one\n"
    assert not (shop / "new.txt").exists()


def test_history_and_restore_know_mounted_files(toolrt: Any, calls: Path, shop: Path, docs: Path) -> None:
    """By the name that they have in the workspace."""
    mount = ("--workspace", shop, "--mount", f"docs={docs}")
    toolrt("run", calls, *mount)
    listed = toolrt("history", "docs/x.md", *mount, "--json")
    assert [version["number"] for version in json.loads(listed.out)] == [1, 2]
    assert toolrt("restore", "docs/x.md", "1", *mount).code == 0
    assert (docs / "x.md").read_text() == "two\n"


@pytest.mark.seldom
def test_explore_copies_all_roots(
    toolrt: Any, calls: Path, shop: Path, docs: Path, tree: Callable[[Path], dict[str, str]]
) -> None:
    """Every law is checked on a copy of each, and none is written to."""
    before = tree(shop), tree(docs)
    ended = toolrt("explore", calls, "--workspace", shop, "--mount", f"docs={docs}", "--executions", 30)
    assert ended.code == 0
    assert "30 x 4 ok" in ended.out
    assert (tree(shop), tree(docs)) == before


@pytest.mark.seldom
def test_a_fault_names_its_file_with_the_mount(
    toolrt: Any, calls: Path, shop: Path, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which operation of the disk failed, and of which file, is an event, and a line of what explore prints."""
    check = Experiment.check
    named: set[str] = set()

    def complaining(self: Any, execution: Any, twice: bool = False) -> Any:
        found = check(self, execution, twice)
        failed = [event.fields for event in execution.trace.events if event.kind == "disk.failed"]
        named.update(fields["file"] for fields in failed)
        if any(fields["file"] == "docs/x.md" for fields in failed):
            found.append(invariants.Violation("mine", "No disk fails.", "one did"))
        return found

    monkeypatch.setattr(Experiment, "check", complaining)
    mount = ("--workspace", shop, "--mount", f"docs={docs}")
    options = ("--executions", 40, "--faults", "EIO", "--save", tmp_path / "failure.json")
    ended = toolrt("explore", calls, *mount, *options)
    assert ended.code == 1
    assert re.search(r"the disk fails \((read|write|move) docs/x\.md: EIO\)", ended.out), ended.out
    assert named <= {"docs/x.md", "new.txt"}
    monkeypatch.undo()
    again = toolrt("replay", tmp_path / "failure.json")
    assert "docs/x.md: EIO" in again.out


@pytest.mark.seldom
def test_replay_finds_the_mounts_again(
    toolrt: Any, calls: Path, shop: Path, docs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are in the file that explore wrote; without one of them it cannot be repeated."""
    failure = tmp_path / "failure.json"
    explored = ("explore", calls, "--workspace", shop, "--mount", f"docs={docs}", "--executions", 10, "--save", failure)
    with monkeypatch.context() as patched:
        patched.setattr(Identity, "claims", lambda self, mode, subtree=False: ())
        assert toolrt(*explored).code == 1
        assert FailureFile.load(str(failure)).mounts == {"docs": str(docs)}
        assert toolrt("replay", failure).code == 1
    docs.rename(tmp_path / "moved")
    ended = toolrt("replay", failure)
    assert ended.code == 2
    assert "some docs" in ended.err
    broken = json.loads(failure.read_text())
    broken["workspace"]["mounts"] = ["docs"]
    failure.write_text(json.dumps(broken))
    ended = toolrt("replay", failure)
    assert ended.code == 2
    assert "workspace.mounts: expected an object of strings" in ended.err


def test_nothing_is_written_into_a_mounted_directory(toolrt: Any, calls: Path, shop: Path, docs: Path) -> None:
    """Explore keeps its files out of every root."""
    mount = ("--workspace", shop, "--mount", f"docs={docs}")
    ended = toolrt("explore", calls, *mount, "--executions", 3, "--html", docs / "page.html")
    assert ended.code == 2
    assert "which explore never writes to" in ended.err


def test_a_language_server_is_refused_beside_mounts(toolrt: Any, calls: Path, shop: Path, docs: Path) -> None:
    """Its root is one directory: in one line, with exit code 2, and no call is run."""
    pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")
    server = f".py={shlex.quote(sys.executable)}"
    ended = toolrt("run", calls, "--workspace", shop, "--mount", f"docs={docs}", "--lsp", server)
    assert (ended.code, ended.out) == (2, "")
    assert "expected a workspace of one root, got 'one with mounts: docs'" in " ".join(ended.err.split())
    assert (docs / "x.md").read_text() == "one\n"


def test_telemetry_tells_mounted_paths_by_their_names(toolrt: Any, shop: Path, docs: Path, tmp_path: Path) -> None:
    """Wherever they stand in a text; a call's id is one of the texts that are told."""
    calls, lines = tmp_path / "calls.json", tmp_path / "lines.jsonl"
    call = {"id": f"-I{docs}/include", "name": "read_file", "input": {"path": "docs/x.md"}}
    calls.write_text(json.dumps([call]))
    mount = ("--workspace", shop, "--mount", f"docs={docs}")
    assert toolrt("run", calls, *mount, "--telemetry", lines).code == 0
    assert "-Idocs/include" in lines.read_text()
    assert str(docs) not in lines.read_text()


@pytest.mark.parametrize("command", ["run", "explore"])
@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (["docs"], "expected NAME=DIRECTORY"),
        (["=x"], "expected NAME=DIRECTORY"),
        (["docs={docs}", "docs={docs}"], "there is another 'docs'"),
        (["docs={docs}/none"], "expected a directory, got none"),
        (["shop={docs}"], "a name that is free at the workspace's root"),
        (["a/b={docs}"], "a name without a slash"),
        (["docs={shop}/shop"], "a directory apart from the workspace's root"),
    ],
)
def test_mounts_that_cannot_be_are_refused(
    toolrt: Any, calls: Path, shop: Path, docs: Path, command: str, given: list[str], wanted: str
) -> None:
    """With what was expected and got, before anything runs."""
    options = [part for text in given for part in ("--mount", text.format(docs=docs, shop=shop))]
    ended = toolrt(command, calls, "--workspace", shop, *options)
    assert (ended.code, ended.out) == (2, "")
    assert wanted in " ".join(ended.err.split())
    assert "Traceback" not in ended.err
