"""Language servers: what a question is answered, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

import toolrt
from tests.plugins.lsp._language_servers import asks, calls_of, double, found, ran, ruff, writes
from toolrt import (
    Diagnostic,
    Diagnostics,
    MemoryDisk,
    Progress,
    Registry,
    Runtime,
    State,
    ToolCall,
    Workspace,
    sim,
)
from toolrt.errors import DefinitionRefused, MissingExtra, NotSimulated
from toolrt.plugins.lsp import LanguageServer, LanguageServers, RecordedServer


def test_answers_are_in_the_order_of_places() -> None:
    """Of several servers together; an answer that is cut short says by how much."""
    second = LanguageServer("other", suffixes=[".py"], reads="file", server=RecordedServer(lambda *_: [_AT_START]))
    workspace = Workspace(MemoryDisk({"a.py": "bad 1\nbad 2\nbad 3\n"}))
    everything, two = trio.run(ran, workspace, [double(), second], [asks("a.py"), asks("a.py", limit=2)])
    assert everything.splitlines() == [
        "a.py:1:1: error start",
        "a.py:1:1: warning B1 'bad 1' in a.py (test)",
        "a.py:2:1: warning B1 'bad 2' in a.py (test)",
        "a.py:3:1: warning B1 'bad 3' in a.py (test)",
    ]
    assert two.splitlines() == [*everything.splitlines()[:2], "(2 more are not shown)"]


_AT_START = Diagnostic(1, 1, "start")


def test_tool_tells_its_findings_as_an_event() -> None:
    """To who asked for events."""
    workspace = Workspace(MemoryDisk({"a.py": "bad"}))

    async def main() -> list[Any]:
        async with (
            LanguageServers(workspace, [double()]) as lsp,
            Runtime(Registry(lsp.tools())).open_batch(events=True) as batch,
        ):
            batch.submit(ToolCall("c", "diagnostics", {"path": "a.py"}))
            batch.seal()
            messages = [update.message async for update in batch if isinstance(update, Progress)]
        return messages

    [message] = trio.run(main)
    expected = Diagnostics("a.py", found("a.py", "bad"), batch_id=message.batch_id, call_index=0, call_id="c")
    assert message == expected


def test_what_is_no_file_to_ask_about_is_refused_in_words() -> None:
    """A missing file, a directory, no text, a limit out of range; and a file that no server is for is told so."""
    workspace = Workspace(MemoryDisk({"a.py": b"\xff", "d/b": "", "c.txt": ""}))
    questions = [asks("none.py"), asks("d"), asks("a.py"), asks("c.txt", limit=0), asks("c.txt")]
    errors = trio.run(ran, workspace, [double()], questions)
    for error, part in zip(
        errors,
        ("nothing of that name", "a directory", "UTF-8", "from 1 to 1000", "no language server is for this file"),
        strict=True,
    ):
        assert part in str(error)


def test_servers_outside_of_their_block_are_not_there() -> None:
    """The answer says so."""
    workspace = Workspace(MemoryDisk({"a.py": ""}))
    lsp = LanguageServers(workspace, [double()])
    [result] = trio.run(Runtime(Registry(lsp.tools())).run, calls_of(asks("a.py"))).results
    assert result.content == (
        "[not known from double: it was not started: the block of its LanguageServers was not entered]"
    )


def test_question_of_a_server_that_reads_all_runs_alone() -> None:
    """The others share a lane with what does not touch the file."""
    workspace = Workspace(MemoryDisk({"a.py": ""}))
    calls = calls_of(writes("b.py", ""), asks("a.py"), writes("c.py", ""))
    for reads, lanes in (("file", 1), ("workspace", 3)):
        lsp = LanguageServers(workspace, [double(reads=reads)])
        registry = Registry([*workspace.tools(), *lsp.tools()])
        assert len(toolrt.partition(calls, registry, State())) == lanes


@pytest.mark.process
def test_bad_definitions_are_refused(tmp_path: Path) -> None:
    """Each says what was expected."""
    record = RecordedServer({})
    options: dict[str, Any]
    for options in (
        {"name": "a b", "server": record},
        {"command": ["x"], "server": record},
        {},
        {"command": "ruff server"},
        {"command": []},
        {"server": 7},
        {"server": record, "suffixes": ["py"]},
        {"server": record, "suffixes": ".py"},
        {"server": record, "reads": "all"},
        {"server": record, "wait": 0},
        {"server": record, "restarts": -1},
        {"server": record, "settings": 7},
        {"server": record, "env": {"a": 1}},
    ):
        with pytest.raises(DefinitionRefused):
            LanguageServer(**{"name": "x", "suffixes": [".py"], **options})  # type: ignore[arg-type]
    for wrong in ({"answers": "never"}, {"seconds": -1}, {"findings": 7}):
        with pytest.raises(DefinitionRefused):
            RecordedServer(**{"findings": {}, **wrong})  # type: ignore[arg-type]
    memory = Workspace(MemoryDisk({}))
    for workspace, servers in ((7, []), (memory, [7]), (memory, [double(), double()]), (memory, [ruff()])):
        with pytest.raises(DefinitionRefused):
            LanguageServers(workspace, servers)  # type: ignore[arg-type]


@pytest.mark.process
def test_a_program_is_refused_beside_mounts(tmp_path: Path) -> None:
    """Its root is one directory; the refusal names the mounts.  A double answers for them, by their names."""
    for name in ("repo", "docs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.py").write_text("bad\n")
    workspace = Workspace(tmp_path / "repo", mounts={"docs": tmp_path / "docs"})
    with pytest.raises(DefinitionRefused) as refused:
        LanguageServers(workspace, [double(), ruff()])
    assert refused.value.what == "language server 'ruff'"
    assert refused.value.expected == "a workspace of one root"
    assert refused.value.got == "one with mounts: docs"
    where = f"{tmp_path.resolve()}/docs/a.py"
    told = double(findings={"bad\n": [Diagnostic(1, 1, f"see {where}")]})
    assert trio.run(ran, workspace, [told], [asks("docs/a.py")]) == ["docs/a.py:1:1: error see docs/a.py"]


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"toolrt\[lsp\]"):
        LanguageServers(Workspace(MemoryDisk({})), [double()])


@pytest.mark.process
def test_simulation_refuses_a_program_and_says_what_to_do(tmp_path: Path) -> None:
    """No process is started; the text names the double."""
    workspace = Workspace(tmp_path)
    execution = sim.run(lambda: ran(workspace, [ruff()], []))
    assert isinstance(execution.error, NotSimulated)
    assert "RecordedServer" in str(execution.error)
