"""Language servers: what they are told and in which order, and that the double answers as the real ones do."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")

import toolrt
from toolrt import (
    Diagnostic,
    Diagnostics,
    MemoryDisk,
    Outcome,
    Progress,
    Registry,
    Runtime,
    Services,
    State,
    ToolCall,
    ToolContext,
    Workspace,
    sim,
)
from toolrt.errors import DefinitionRefused, MissingExtra, NotSimulated
from toolrt.invariants import patched, require
from toolrt.model import Severity
from toolrt.runtime import _after_lane
from toolrt.services.lsp import LanguageServer, LanguageServers, RecordedServer, _session
from toolrt.testing import schedules


def calls_of(*named: tuple[str, dict[str, Any]]) -> list[ToolCall]:
    return [ToolCall(f"id{number}", name, input) for number, (name, input) in enumerate(named)]


def asks(path: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return "diagnostics", {"path": path, **more}


def edits(path: str, old: str, new: str) -> tuple[str, dict[str, Any]]:
    return "edit_file", {"path": path, "old": old, "new": new}


def writes(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


def found(path: str, text: str) -> list[Diagnostic]:
    """Each line that says "bad", by the text's own words."""
    return [
        Diagnostic(number, line.index("bad") + 1, f"{line!r} in {path}", Severity.WARNING, "test", "B1")
        for number, line in enumerate(text.split("\n"), 1)
        if "bad" in line
    ]


@toolrt.tool()
async def anything(ctx: ToolContext) -> str:
    """May change everything, and says nothing of it."""
    await trio.lowlevel.checkpoint()
    return "done"


async def ran(
    workspace: Workspace,
    servers: Sequence[LanguageServer],
    *batches: Sequence[tuple[str, dict[str, Any]]],
    limit: int = 10,
) -> list[Any]:
    """The contents of all results."""
    async with LanguageServers(workspace, servers) as lsp:
        registry = Registry([*workspace.tools(), *lsp.tools(), anything])
        given = Services(lsp=lsp, after_lane=[lsp.after_lane])
        runtime = Runtime(registry, limit=limit, services=given)
        contents: list[Any] = []
        for batch in batches:
            done = await runtime.run(calls_of(*batch))
            contents.extend(result.content if result.outcome is Outcome.OK else result.error for result in done.results)
        return contents


def double(**options: Any) -> LanguageServer:
    given = {name: options.pop(name) for name in ("answers", "seconds", "lost_after") if name in options}
    record = RecordedServer(options.pop("findings", found), **given)
    return LanguageServer("double", suffixes=[".py"], server=record, **{"reads": "file", **options})


# The double against the real servers

CONTRACT_FILES = {"a.py": "import os\n", "b.py": "from a import x\n\nx.nope\n"}
CONTRACT_CALLS = [
    asks("a.py"),
    edits("a.py", "import os\n", "x: int = 'é', y\n"),
    asks("a.py"),
    asks("b.py"),
    writes("a.py", "class X:\n    nope = 1\n\n\nx = X()\n"),
    asks("a.py"),
    asks("b.py"),
    writes("c.txt", "no code"),
    asks("c.txt"),
    asks("d.py"),
]


def _ruff(**options: Any) -> LanguageServer:
    return LanguageServer("ruff", ["ruff", "server"], suffixes=[".py"], reads="file", wait=60.0, **options)


def _ty(**options: Any) -> LanguageServer:
    return LanguageServer("ty", ["ty", "server"], suffixes=[".py"], wait=60.0, **options)


@pytest.mark.parametrize("make", [_ruff, _ty])
def test_double_answers_as_the_real_server(tmp_path: Path, make: Callable[[], LanguageServer]) -> None:
    """What a real server found, recorded, gives the same results in a simulation."""
    server = make()
    assert server.command is not None
    if shutil.which(server.command[0]) is None:
        pytest.skip(f"{server.name} is not installed")
    (tmp_path / "w").mkdir()
    for path, text in CONTRACT_FILES.items():
        (tmp_path / "w" / path).write_text(text)
    workspace = Workspace(tmp_path / "w", state_dir=tmp_path)
    record: dict[tuple[str, str], list[tuple[Diagnostic, ...]]] = {}
    check = LanguageServers.check

    async def recorded(self: LanguageServers, path: str, content: bytes) -> Any:
        checked = await check(self, path, content)
        record.setdefault((path, content.decode()), []).append(checked.findings)
        return checked

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LanguageServers, "check", recorded)
        real = trio.run(ran, workspace, [server], CONTRACT_CALLS)
    assert real[0] != real[2] != real[5]
    # ty looks at what another file has become; ruff looks at one file at a time.
    assert (real[3] != real[6]) is (server.reads == "workspace")
    assert not any("not known" in str(answer) for answer in real)
    # What ty finds in one text depends on the other: those questions run alone, so they come in call order.
    replayed = RecordedServer(lambda path, text: record[path, text].pop(0))
    twin = LanguageServer(server.name, suffixes=[".py"], reads=server.reads, server=replayed)
    assert sim.run(lambda: ran(Workspace(MemoryDisk(CONTRACT_FILES)), [twin], CONTRACT_CALLS)).value == real


def test_columns_are_characters_whatever_the_server_counts() -> None:
    """Of UTF-8 and UTF-16 as well."""
    from toolrt.services.lsp._wire import Wire

    item = {"range": {"start": {"line": 0, "character": 0}, "end": {"line": 0, "character": 0}}, "message": "m"}
    text = "é\N{GRINNING FACE}x"
    for encoding, column in (("utf-8", 6), ("utf-16", 3), ("utf-32", 2)):
        item["range"]["start"]["character"] = column  # type: ignore[index]
        (finding,), unread = Wire().findings([item], text, encoding)
        assert (finding.line, finding.column, unread) == (1, 3, 0)


# What servers are told


def _told(server: LanguageServer) -> list[tuple[str, str, str | None]]:
    assert isinstance(server.server, RecordedServer)
    return [(method.rpartition("/")[2], path, what) for method, path, what in server.server.told]


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
    assert _told(server) == [
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
    assert _told(server) == []


def test_servers_that_cannot_be_told_what_changed_are_started_anew() -> None:
    """After a call that may have changed anything, and said nothing."""
    server = double()
    workspace = Workspace(MemoryDisk({"a.py": "1"}))
    trio.run(ran, workspace, [server], [asks("a.py")], [("anything", {})], [asks("a.py")])
    assert _told(server) == [("didOpen", "a.py", "1"), ("didOpen", "a.py", "1")]


def test_file_that_is_closed_and_opened_again_gets_a_later_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what was published about its text before is not taken for later; open files are bounded."""
    monkeypatch.setattr(_session, "OPEN_MOST", 2)
    sent: list[tuple[str, int]] = []
    send = _session.Session._send

    def noted(self: _session.Session, message: Any) -> None:
        document = (message.get("params") or {}).get("textDocument", {})
        if "version" in document:
            sent.append((document["uri"].rpartition("/")[2], document["version"]))
        send(self, message)

    monkeypatch.setattr(_session.Session, "_send", noted)
    server = double(answers="published", seconds=0.01)
    workspace = Workspace(MemoryDisk({"a.py": "bad", "b.py": "", "c.py": ""}))
    questions = [[asks(name)] for name in ("a.py", "b.py", "c.py", "a.py")]
    answers = trio.run(ran, workspace, [server], *questions)
    assert answers[0] == answers[3] == "a.py:1:1: warning B1 'bad' in a.py (test)"
    assert sent == [("a.py", 1), ("b.py", 1), ("c.py", 1), ("a.py", 2)]
    assert [name for what, name, _ in _told(server) if what == "didClose"] == ["a.py", "b.py"]


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
    texts = [what for method, _, what in _told(server) if method != "didChangeWatchedFiles"]
    assert texts == ["1", "2", "3", None]


# What is answered


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
    assert message == Diagnostics("a.py", found("a.py", "bad"), batch_id="batch-1", call_index=0, call_id="c")


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
    for workspace, servers in ((7, []), (memory, [7]), (memory, [double(), double()]), (memory, [_ruff()])):
        with pytest.raises(DefinitionRefused):
            LanguageServers(workspace, servers)  # type: ignore[arg-type]


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is started."""
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"toolrt\[lsp\]"):
        LanguageServers(Workspace(MemoryDisk({})), [double()])


def test_simulation_refuses_a_program_and_says_what_to_do(tmp_path: Path) -> None:
    """No process is started; the text names the double."""
    workspace = Workspace(tmp_path)
    execution = sim.run(lambda: ran(workspace, [_ruff()], []))
    assert isinstance(execution.error, NotSimulated)
    assert "RecordedServer" in str(execution.error)


# The laws, and what does not depend on timing

FILES = {"a.py": "bad\n", "b.py": "good\n", "c.py": "bad bad\n"}

MIX = [
    asks("a.py"),
    edits("a.py", "bad", "good\nbad"),
    asks("a.py"),
    edits("b.py", "good", "bad"),
    asks("b.py"),
    writes("c.py", "bad\nbad\n"),
    edits("a.py", "good", "bad"),
    asks("c.py"),
    asks("a.py"),
]


def explored(batches: Sequence[Sequence[Any]], executions: int = 30, **options: Any) -> Any:
    """The one ending that the batches have under every schedule; all laws hold."""

    async def program() -> Any:
        server = double(**options)
        workspace = Workspace(MemoryDisk(FILES))
        answers = await ran(workspace, [server], *batches)
        return answers, workspace.snapshot(), _told_at_lane_ends(server)

    def check(execution: sim.Execution) -> list[Any]:
        assert execution.error is None, execution.error
        require(execution.trace)
        return []

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=7), executions), check)
    assert report.verdict is sim.PASS, f"{report}\n{report.failures[0].explain() if report.failures else ''}"
    assert len(report.outcomes) == 1, report.outcomes
    return sim.run(program).value


def _told_at_lane_ends(server: LanguageServer) -> list[tuple[str, str, str | None]]:
    return [one for one in _told(server) if one[0] == "didChangeWatchedFiles"]


def expected_answers() -> list[str]:
    files = dict(FILES)
    answers = []
    for name, input in MIX:
        path = input["path"]
        if name == "diagnostics":
            lines = [
                f"{path}:{one.line}:{one.column}: warning B1 {one.message} (test)" for one in found(path, files[path])
            ]
            answers.append("\n".join(lines) or f"{path}: nothing found by double")
        else:
            files[path] = (
                input["content"] if name == "write_file" else files[path].replace(input["old"], input["new"], 1)
            )
    return answers


@pytest.mark.parametrize("answers", ["asked", "published", "unversioned"])
@pytest.mark.parametrize("reads", ["file", "workspace"])
def test_answers_do_not_depend_on_the_schedule(answers: str, reads: str) -> None:
    """Edits and questions of one batch end as one at a time, and all laws hold."""
    given, _, _ = explored([MIX], answers=answers, reads=reads, seconds=0.5)
    assert [answer for answer, (name, _) in zip(given, MIX, strict=True) if name == "diagnostics"] == expected_answers()


def test_server_that_dies_again_and_again_decides_nothing() -> None:
    """It is started anew, and the answers are what they would have been."""
    given, _, _ = explored([[asks("a.py")], [asks("b.py")], [asks("c.py")]], lost_after=4, restarts=100)
    assert [str(answer).split(":")[0] for answer in given] == ["a.py", "b.py", "c.py"]
    assert not any("not known" in answer for answer in given)


@settings(max_examples=30, deadline=None)
@given(
    mix=st.lists(
        st.one_of(
            st.sampled_from(["a.py", "b.py", "c.py"]).map(asks),
            st.tuples(st.sampled_from(["a.py", "b.py", "c.py"]), st.sampled_from(["bad", "ok\nbad", "ok"])).map(
                lambda pair: writes(*pair)
            ),
        ),
        max_size=8,
    ),
    answers=st.sampled_from(["asked", "published", "unversioned"]),
    seconds=st.sampled_from([0.0, 0.3]),
    lost_after=st.sampled_from([None, 6, 9]),
    schedule=schedules(max_size=120),
)
def test_any_mix_is_answered_as_one_at_a_time(
    mix: list[Any], answers: str, seconds: float, lost_after: int | None, schedule: list[int]
) -> None:
    """Whatever the schedule, and however often the server is lost on the way."""

    async def program() -> Any:
        server = double(answers=answers, seconds=seconds, lost_after=lost_after, restarts=1000, wait=1e6)
        # As many at once as such a server can answer before it is lost.
        limit = 10 if lost_after is None else 2
        return await ran(Workspace(MemoryDisk(FILES)), [server], mix, limit=limit)

    execution = sim.run(program, sim.Choices(schedule))
    assert execution.error is None, execution.error
    require(execution.trace)
    files = dict(FILES)
    for (name, input), answer in zip(mix, execution.value, strict=True):
        if name == "write_file":
            files[input["path"]] = input["content"]
        else:
            path = input["path"]
            lines = [
                f"{path}:{one.line}:{one.column}: warning B1 {one.message} (test)" for one in found(path, files[path])
            ]
            assert answer == ("\n".join(lines) or f"{path}: nothing found by double")


def test_slow_server_is_not_waited_for_longer_than_stated() -> None:
    """In the simulator's time, so exactly."""

    async def program() -> Any:
        answers = await ran(
            Workspace(MemoryDisk(FILES)), [double(seconds=9.0, wait=10.0)], [asks("a.py")], [asks("a.py")]
        )
        return answers, trio.current_time()

    (first, second), _ = sim.run(program).value
    assert first == "[not known from double: it gave no findings within 10 s]"
    assert second == "a.py:1:1: warning B1 'bad' in a.py (test)"


# Caught variants


def _by_completion(changes_of: Any) -> Any:
    """Each call's changes are noted as it ends, not by call_index."""
    ended: list[Any] = []

    def noted(self: Any, event: Any) -> None:
        ended.append(event.path)
        keep(self, event)

    keep = ToolContext._keep

    def as_ended(lane: Any, owner: Any = None) -> Any:
        changes = changes_of(lane, owner)
        if changes is None:
            return None
        order = {path: place for place, path in enumerate(ended)}
        by_end = sorted(changes.changes, key=lambda change: order.get(change.path, 0))
        return attrs.evolve(changes, changes=tuple(by_end))

    as_ended.noted = noted  # type: ignore[attr-defined]
    return as_ended


def _that_was_told(scan: Any) -> Any:
    """A question trusts what lane ends told, and does not look at the file."""

    async def check(self: LanguageServers, path: str, content: bytes) -> Any:
        first = self.__dict__.setdefault("_first", {}).setdefault(path, content)
        return await scan(self, path, first)

    return check


def _that_comes(hear: Any) -> Any:
    """Whatever is published counts, whichever version it names."""

    def hear_all(self: Any, params: Any) -> None:
        path = self._path_of(params.get("uri"))
        document = self._documents.get(path)
        hear(self, {**params, "version": None if document is None else document.version})

    return hear_all


def told_in_call_order() -> None:
    workspace_calls = [asks("a.py"), asks("b.py"), asks("c.py")]
    changing = [writes("c.py", "1"), writes("a.py", "2"), writes("b.py", "3")]
    _, _, told = explored([workspace_calls, changing])
    assert [path for _, path, _ in told] == ["c.py", "a.py", "b.py"]


def asked_about_what_stands_there() -> None:
    given, _, _ = explored([MIX], executions=20)
    assert [answer for answer, (name, _) in zip(given, MIX, strict=True) if name == "diagnostics"] == expected_answers()


def matched_to_versions() -> None:
    """A text is told, then another before the first was answered; the answer is about the second."""

    async def program() -> Any:
        disk = MemoryDisk({"a.py": "bad one"})
        workspace = Workspace(disk)
        async with LanguageServers(workspace, [double(answers="published", seconds=1.0)]) as lsp:
            assert (await lsp.check("a.py", b"bad zero")).findings[0].message == "'bad zero' in a.py"
            lsp.notify_file_changed("a.py", "bad one")
            return (await lsp.check("a.py", b"bad two")).findings[0].message

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 60), lambda execution: [])
    assert sim.run(program).error is None
    assert len(report.outcomes) == 1, report.outcomes
    assert sim.run(program).value == "'bad two' in a.py"


RULES = [told_in_call_order, asked_about_what_stands_there, matched_to_versions]


@pytest.mark.parametrize("rule", RULES)
def test_rule_holds(rule: Callable[[], None]) -> None:
    """As it is, under every schedule."""
    rule()


def _completion() -> AbstractContextManager[Any]:
    stack = ExitStack()
    made = _by_completion(_after_lane.changes_of)
    stack.enter_context(patched(_after_lane, "changes_of", lambda _: made))
    stack.enter_context(patched(ToolContext, "_keep", lambda _: made.noted))
    return stack


VARIANTS: list[tuple[str, Callable[[], None], Callable[[], AbstractContextManager[Any]]]] = [
    ("told in completion order", told_in_call_order, _completion),
    (
        "a question trusts what was told",
        asked_about_what_stands_there,
        lambda: patched(LanguageServers, "check", _that_was_told),
    ),
    ("any version counts", matched_to_versions, lambda: patched(_session.Session, "_hear", _that_comes)),
]


@pytest.mark.parametrize(("rule", "variant"), [variant[1:] for variant in VARIANTS], ids=[one[0] for one in VARIANTS])
def test_variant_is_caught(rule: Callable[[], None], variant: Callable[[], AbstractContextManager[Any]]) -> None:
    """The race that a rule removes, put back."""
    with variant(), pytest.raises(AssertionError):
        rule()
