"""Language servers: what they are told, and in which order."""

from __future__ import annotations

from typing import Any

import pytest
import trio

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

from tests.plugins.lsp._language_servers import asks, double, edits, ran, told_to, writes
from toolrt import Diagnostic, MemoryDisk, Workspace
from toolrt.errors import DefinitionRefused
from toolrt.plugins.lsp import LanguageServers, _session


def test_servers_are_told_of_a_lane_in_call_order() -> None:
    """Open files with their text as of the lane's end, others as changed on the disk; before the next lane."""
    server = double()
    workspace = Workspace(MemoryDisk({"a.py": "1", "b.py": "1", "c.py": "1", "d.py": "1"}))
    opening = [asks("a.py"), ("change_dir", {"path": "."}), asks("b.py"), ("change_dir", {"path": "."}), asks("c.py")]
    lane = [
        edits("c.py", "1", "2"),
        edits("a.py", "1", "2"),
        edits("a.py", "2", "3"),
        writes("new.py", "x"),
        edits("d.py", "1", "2"),
        ("delete_path", {"path": "b.py"}),
    ]
    trio.run(ran, workspace, [server], opening, lane)
    assert told_to(server) == [
        ("didOpen", "a.py", "1"),
        ("didOpen", "b.py", "1"),
        ("didOpen", "c.py", "1"),
        ("didChange", "c.py", "2"),
        ("didChangeWatchedFiles", "c.py", "modified"),
        ("didChange", "a.py", "3"),
        ("didChangeWatchedFiles", "a.py", "modified"),
        ("didChangeWatchedFiles", "new.py", "created"),
        ("didChangeWatchedFiles", "d.py", "modified"),
        ("didClose", "b.py", None),
        ("didChangeWatchedFiles", "b.py", "deleted"),
    ]


def test_nothing_is_started_before_it_is_asked() -> None:
    """Changes alone start no server."""
    server = double()
    workspace = Workspace(MemoryDisk({"a.py": "1"}))
    trio.run(ran, workspace, [server], [edits("a.py", "1", "2")])
    assert told_to(server) == []


def test_servers_that_cannot_be_told_what_changed_are_started_anew() -> None:
    """After a call that may have changed anything, and said nothing."""
    server = double()
    workspace = Workspace(MemoryDisk({"a.py": "1"}))
    trio.run(ran, workspace, [server], [asks("a.py")], [("anything", {})], [asks("a.py")])
    assert told_to(server) == [("didOpen", "a.py", "1"), ("didOpen", "a.py", "1")]


def test_file_that_is_closed_and_opened_again_gets_a_later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what was published about its text before is not taken for later; open files are bounded."""
    monkeypatch.setattr(_session, "OPEN_MOST", 2)
    sent: list[tuple[str, int]] = []
    send = _session.LanguageSession._send

    def noted(self: _session.LanguageSession, message: Any) -> None:
        document = (message.get("params") or {}).get("textDocument", {})
        if "version" in document:
            sent.append((document["uri"].rpartition("/")[2], document["version"]))
        send(self, message)

    monkeypatch.setattr(_session.LanguageSession, "_send", noted)
    server = double(answers="published", seconds=0.01)
    workspace = Workspace(MemoryDisk({"a.py": "bad", "b.py": "", "c.py": ""}))
    questions = [[asks(name)] for name in ("a.py", "b.py", "c.py", "a.py")]
    answers = trio.run(ran, workspace, [server], *questions)
    assert answers[0] == answers[3] == "a.py:1:1: warning B1 'bad' in a.py (test)"
    assert sent == [("a.py", 1), ("b.py", 1), ("c.py", 1), ("a.py", 2)]
    assert [name for what, name, _ in told_to(server) if what == "didClose"] == ["a.py", "b.py"]


@pytest.mark.parametrize("answers", ["asked", "published"])
def test_findings_that_depend_on_another_file_are_asked_for_anew(answers: str) -> None:
    """Of a server that reads all of the workspace, though the text in question is the same."""
    workspace = Workspace(MemoryDisk({"a.py": "good", "b.py": "import a"}))

    def of_both(path: str, text: str) -> list[Diagnostic]:
        return [Diagnostic(1, 1, str(workspace.snapshot()["a.py"]))]

    server = double(findings=of_both, answers=answers, reads="workspace")
    contents = trio.run(ran, workspace, [server], [asks("b.py"), writes("a.py", "bad"), asks("b.py")])
    assert contents[::2] == ["b.py:1:1: error b'good'", "b.py:1:1: error b'bad'"]


def test_notify_is_for_programs_too() -> None:
    """What is told is told at once, in order; what is no path or content is refused."""
    server = double()
    workspace = Workspace(MemoryDisk({"a.py": "1"}))

    async def main() -> None:
        async with LanguageServers(workspace, [server]) as lsp:
            lsp.notify_file_changed("a.py", "before any start")
            assert (await lsp.diagnostics("a.py")).is_complete
            lsp.notify_file_changed("a.py", "2")
            lsp.notify_file_changed("a.py", b"3")
            lsp.notify_file_changed("a.py", None)
            for path, content in (("/a.py", "x"), ("", "x"), ("a.py", 7)):
                with pytest.raises(DefinitionRefused):
                    lsp.notify_file_changed(path, content)  # type: ignore[arg-type]

    trio.run(main)
    texts = [what for method, _, what in told_to(server) if method != "didChangeWatchedFiles"]
    assert texts == ["1", "2", "3", None]
