"""The third seed: the fourteen fields of a tool's context, and its methods.

Rules.  One test or more for each field, with the sentences that its documentation has, quoted.  Where the seed shares a
value behind a lock, the rule of `docs/explanation/tool-context.md` holds: no timing decides what a tool sees.  Public
names only: the inside may change, and these tests stay as they are.

Limits.  `semantic`, `file_history` and `graph` have no sentence in the seed but their names.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from tests.contract._every import calls_of, edit, every, read, streamed, write
from toolrt import (
    WRITE,
    Claim,
    Diagnostic,
    MemoryDisk,
    Outcome,
    OutputChunk,
    Progress,
    Registry,
    Runtime,
    Services,
    State,
    ToolCall,
    ToolContext,
    Workspace,
    plugins,
    services,
    sim,
)

LONG = "".join(f"line {number}\n" for number in range(1, 4001))


def contents(outcome: toolrt.BatchOutcome) -> list[Any]:
    """The contents that the calls answered; each call ended OK."""
    assert [(result.outcome, result.error) for result in outcome.results] == [(Outcome.OK, None)] * len(outcome.results)
    return [result.content for result in outcome.results]


class Reads:
    """Counts the reads of a disk in memory."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, effect: str, path: str) -> None:
        self.count += effect == "read"


# working_dir


def test_working_dir_is_read_by_tools_and_written_by_one() -> None:
    """A call after `change_dir` starts there, one before it does not, and the state that comes back has it.

    Seed: "Holds a shared working directory that tools can read (and CdTool can write)."
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"x.txt": "top", "d/x.txt": "below"}))
        named = (read("x.txt"), ("change_dir", {"path": "d"}), read("x.txt"))
        done = await Runtime(Registry(workspace.tools())).run(calls_of(*named))
        found = contents(done)
        return found[0], found[2]

    assert every(program) == ("top", "below")


def test_working_dir_is_that_of_the_session_and_not_of_the_process(tmp_path: Path) -> None:
    """The state that a batch leaves starts the next one in that directory; the process stays where it is."""
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "x.txt").write_text("below")
    runtime = Runtime(Registry(Workspace(tmp_path).tools()))
    here = Path.cwd()
    moved = trio.run(runtime.run, calls_of(("change_dir", {"path": "d"})))
    assert contents(trio.run(runtime.run, calls_of(read("x.txt")), moved.state)) == ["below"]
    assert Path.cwd() == here


# semantic, graph


def test_semantic_searches_symbols_and_text() -> None:
    """Search finds definitions and usages, and sees the edits that come before it in the batch.

    Seed: "semantic: SemanticSearcher"
    """
    pytest.importorskip("tree_sitter", reason="the extra code is not installed")
    workspace = Workspace(MemoryDisk({"a.py": "def total(rows):\n    return sum(rows)\n"}))
    index = plugins.code.CodeIndex(workspace)
    runtime = Runtime(Registry([*workspace.tools(), *index.tools()]), services=Services(search=index))
    named = (write("b.py", "from a import total\n\nprint(total([1]))\n"), ("search_code", {"query": "total"}))
    found = contents(trio.run(runtime.run, calls_of(*named)))[1]
    assert "a.py:1" in found
    assert "b.py" in found


def test_graph_knows_callers_after_each_edit() -> None:
    """Who calls what is answered from the files as they are when the question's turn comes.

    Seed: "graph: CodeGraph"
    """
    pytest.importorskip("tree_sitter", reason="the extra code is not installed")
    workspace = Workspace(MemoryDisk({"a.py": "def low():\n    pass\n"}))
    index = plugins.code.CodeIndex(workspace)
    runtime = Runtime(Registry([*workspace.tools(), *index.tools()]))
    ask = ("find_callers", {"symbol": "low"})
    named = (ask, write("b.py", "from a import low\n\n\ndef high():\n    low()\n"), ask)
    before, _, after = contents(trio.run(runtime.run, calls_of(*named)))
    assert "high" not in before
    assert "high" in after


@pytest.mark.parametrize("name", ["search", "graph", "lsp"])
async def test_service_is_handed_to_every_tool_and_is_none_where_there_is_none(name: str) -> None:
    """A context has the very object that the runtime was given.

    Seed: "semantic", "graph" and "lsp" are shared handles of the context.
    """
    service = object()

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> bool:
        return getattr(ctx, name) is service

    @toolrt.tool(safe=True)
    async def look_for_none(ctx: ToolContext) -> bool:
        return getattr(ctx, name) is None

    given = Runtime(Registry([look]), services=Services().replace(**{name: service}))
    assert contents(await given.run(calls_of(("look", {}), ("look", {})))) == [True, True]
    assert contents(await Runtime(Registry([look_for_none])).run(calls_of(("look_for_none", {})))) == [True]


# file_history


def test_file_history_has_a_version_for_each_mutation_and_gives_them_back() -> None:
    """Versions are in call order, each can be restored, and a batch can be undone as a whole.

    Seed: "file_history: FileHistory"
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a.txt": "<0>"}))
        named = [edit("a.txt", f"<{number}>", f"<{number + 1}>") for number in range(3)]
        async with Runtime(Registry(workspace.tools())).open_batch(batch_id="b") as batch:
            for call in calls_of(*named):
                batch.submit(call)
        versions = await workspace.history.versions("a.txt")
        told = tuple((version.number, version.batch_id, version.call_index) for version in versions)
        found = []
        for number in (2, 0):
            await workspace.history.restore("a.txt", number)
            found.append(workspace.snapshot()["a.txt"])
        await workspace.history.restore("a.txt", 3)
        await workspace.history.undo("b")
        return told, (*found, workspace.snapshot()["a.txt"])

    told, found = every(program, 15)
    assert told == ((1, "b", 0), (2, "b", 1), (3, "b", 2))
    assert found == (b"<2>", b"<0>", b"<0>")


# ctx_budget_hint and read_budget_tokens


async def test_context_budget_decides_between_content_and_skeleton() -> None:
    """A file over the budget is answered by a skeleton; without a budget it is answered whole.

    Seed: "Remaining context tokens budget. Set by TurnRunner before each tool batch. read_file uses this to
    decide full content vs skeleton."
    """
    runtime = Runtime(Registry(Workspace(MemoryDisk({"long.txt": LONG, "short.txt": "short\n"})).tools()))
    calls = calls_of(read("long.txt"), read("short.txt"))
    whole = contents(await runtime.run(calls))
    cut = contents(await runtime.run(calls, State(context_budget=100)))
    assert whole == [LONG, "short\n"]
    assert cut[0] != LONG
    assert "4000 lines" in cut[0].splitlines()[0]
    assert cut[1] == "short\n"


@pytest.mark.parametrize(("reads", "wanted"), [(1, 20_000), (2, 10_000), (5, 4_000), (50, 2_000)])
def test_read_budget_is_the_share_of_each_read(reads: int, wanted: int) -> None:
    """Each read of a batch is given the same share, at least 2,000, whatever the schedule.

    Seed: "Per-file token budget for read_file. Set before each tool batch: ctx_budget / (5 * num_reads).
    Defaults to ctx_budget/5 (single file)."
    """

    @toolrt.tool(safe=True, shares_read_budget=True)
    async def look(ctx: ToolContext) -> int | None:
        await trio.lowlevel.checkpoint()
        return ctx.read_budget

    async def program() -> Any:
        calls = calls_of(*[("look", {})] * reads)
        return tuple(contents(await Runtime(Registry([look])).run(calls, State(context_budget=100_000))))

    assert every(program, 5) == (wanted,) * reads


def test_reads_of_one_batch_decide_alike() -> None:
    """Of several reads of one long file all are cut or none is.

    Seed: "read.rs compares file_tokens against this to decide full vs skeleton."
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"long.txt": LONG}))
        calls = calls_of(*[read("long.txt")] * 3)
        done = await Runtime(Registry(workspace.tools())).run(calls, State(context_budget=60_000))
        return tuple(len(content) for content in contents(done))

    assert len(set(every(program, 10))) == 1


# read_cache and file_store


def test_read_cache_is_valid_while_the_file_is_as_it_was() -> None:
    """A file that another program changes is read again; one that does not change is not.

    Seed: "Per-session read-file output cache. Hit is valid only when on-disk mtime still matches."
    """
    reads = Reads()
    disk = MemoryDisk({"a.txt": "one\n"}, fault=reads)
    runtime = Runtime(Registry(Workspace(disk).tools()))
    answers = [contents(trio.run(runtime.run, calls_of(read("a.txt"))))[0]]
    before = reads.count
    answers.append(contents(trio.run(runtime.run, calls_of(read("a.txt"))))[0])
    again = reads.count - before
    disk.put("a.txt", "two\n")
    answers.append(contents(trio.run(runtime.run, calls_of(read("a.txt"))))[0])
    assert answers == ["one\n", "one\n", "two\n"]
    assert again <= before


def test_read_cache_never_changes_a_result() -> None:
    """Reads of one file with and without a share of the budget, again and again, answer as the first ones did.

    Seed: "Avoids redoing UTF-8 parsing + semantic skeleton generation when the model re-reads the same file."
    """
    runtime = Runtime(Registry(Workspace(MemoryDisk({"long.txt": LONG})).tools()))

    def answer(budget: int | None) -> Any:
        return contents(trio.run(runtime.run, calls_of(read("long.txt")), State(context_budget=budget)))[0]

    first = [answer(budget) for budget in (None, 100, None, 60_000)]
    assert [answer(budget) for budget in (None, 100, None, 60_000)] == first
    assert first[0] == first[2] == LONG != first[1]


def test_file_store_serves_any_range_after_one_read() -> None:
    """The first read of a large file goes to the disk; other ranges of it do not.

    Seed: "read_file pushes large file content here transparently and consults it on subsequent reads of any
    range: disk hit only on first read or after edit."
    """
    reads = Reads()
    runtime = Runtime(Registry(Workspace(MemoryDisk({"long.txt": LONG}, fault=reads)).tools()))

    def lines(offset: int) -> Any:
        call = ("read_file", {"path": "long.txt", "offset": offset, "limit": 1})
        return contents(trio.run(runtime.run, calls_of(call)))[0]

    assert lines(1) == "line 1\n"
    once = reads.count
    assert once >= 1
    assert [lines(offset) for offset in (2, 4000, 77)] == ["line 2\n", "line 4000\n", "line 77\n"]
    assert reads.count == once


@pytest.mark.parametrize("change", [edit("a.txt", "old", "new"), write("a.txt", "new\n")])
def test_file_store_never_serves_what_an_edit_replaced(change: Any) -> None:
    """A read after a mutation has the new text, in the same batch and in the next.

    Seed: "edit_file / write_file invalidate entries on success so a stale entry cannot serve outdated bytes."
    """

    async def program() -> Any:
        runtime = Runtime(Registry(Workspace(MemoryDisk({"a.txt": "old\n"})).tools()))
        first = contents(await runtime.run(calls_of(read("a.txt"), change, read("a.txt"))))
        second = contents(await runtime.run(calls_of(read("a.txt"))))
        return first[0], first[2], second[0]

    assert every(program) == ("old\n", "new\n", "new\n")


# first_error_signatures

_LINES = [f"error[E0{number}]: mismatched types in module number {'abcdefgh'[number]}" for number in range(7)]


def _shell(workspace: Workspace) -> toolrt.Tool:
    """Commands that fail, and commands of which a number of the first failure's lines are gone."""
    recorded: dict[str | tuple[str, str], Any] = {
        "fail": services.Recorded("\n".join([*_LINES, "warning: waiting for a file lock"]) + "\n", status=1),
        "fail otherwise": services.Recorded("Traceback: quite another failure here\n", status=1),
    }
    for gone in range(8):
        recorded[f"make {gone}"] = "\n".join(_LINES[gone:]) + "\n"
    return services.shell_tool(workspace, shell=services.RecordedShell(recorded))


def _run(*commands: str, state: State | None = None) -> toolrt.BatchOutcome:
    workspace = Workspace(MemoryDisk({}))
    calls = calls_of(*[("run_command", {"command": command}) for command in commands])
    execution = sim.run(lambda: Runtime(Registry([_shell(workspace)])).run(calls, State() if state is None else state))
    assert execution.error is None
    outcome: toolrt.BatchOutcome = execution.value
    return outcome


def test_first_error_keeps_five_distinctive_lines() -> None:
    """The first failed command leaves five of its lines.

    Seed: "Top-5 most-distinctive lines captured from the first failed bash call this session."
    """
    signatures = _run("fail").state.error_signatures
    assert len(signatures) == 5
    assert set(signatures) <= set(_LINES)


def test_first_error_stays() -> None:
    """A later failure does not replace it, nor does a success.

    Seed: "Stays set once captured: original failure anchor, not rolling."
    """
    first = _run("fail").state
    later = _run("fail otherwise", "make 7", "fail otherwise", state=first).state
    assert later.error_signatures == first.error_signatures


def test_first_error_is_resolved_when_three_of_five_lines_are_gone() -> None:
    """A success with all lines says nothing; one with none of them appends a hint, once.

    Seed: "When a later bash succeeds and >= 3 of these 5 lines no longer appear, the framework appends a hint
    nudging the model to summarize + stop."
    """
    signatures = _run("fail").state.error_signatures
    for gone in range(8):
        missing = sum(line in _LINES[:gone] for line in signatures)
        done = _run("fail", f"make {gone}", "make 7")
        answers = [len(result.content) for result in done.results]
        hinted = _run("fail", f"make {gone}").state.hints
        assert (len(hinted) == 1) is (missing >= 3), gone
        assert len(done.state.hints) == 1
        assert answers


def test_first_error_is_first_by_call_order() -> None:
    """Of two commands that fail side by side the one of the lower index is remembered, whichever ends first."""

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({}))
        runtime = Runtime(Registry([_shell(workspace)]), lanes=toolrt.parallel)
        named = [("run_command", {"command": command}) for command in ("fail", "fail otherwise")]
        return (await runtime.run(calls_of(*named))).state.error_signatures

    assert set(every(program)) <= set(_LINES)


# telemetry


async def test_telemetry_is_always_there() -> None:
    """Without an observer a tool can tell it all the same, and nothing happens.

    Seed: "Shared telemetry handle. Always present (possibly in disabled state)."
    """

    @toolrt.tool(safe=True)
    async def tell(ctx: ToolContext) -> str:
        with ctx.telemetry.span("work"):
            ctx.telemetry.event("done", {"rows": 3})
        return "told"

    assert contents(await Runtime(Registry([tell])).run(calls_of(("tell", {})))) == ["told"]


async def test_telemetry_gets_what_tools_and_runtime_tell() -> None:
    """With an observer the same calls are seen by it."""
    from toolrt.plugins.otel import Telemetry

    told = []

    class Sink:
        def event(self, kind: str, fields: Any) -> None:
            told.append((kind, str(fields)))

    @toolrt.tool(safe=True)
    async def tell(ctx: ToolContext) -> None:
        ctx.telemetry.event("rows.read", {"rows": 3})

    with Telemetry(Sink()) as telemetry:
        await Runtime(Registry([tell]), telemetry=telemetry).run(calls_of(("tell", {})))
    assert any("rows.read" in text for one in told for text in one)
    assert len(told) > 1


# lsp


def _diagnosed(*named: tuple[str, dict[str, Any]]) -> Any:
    pytest.importorskip("lsprotocol", reason="the extra lsp is not installed")
    from toolrt.plugins import lsp

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a.py": "bad\n"}))
        double = lsp.RecordedServer({"bad\n": [Diagnostic(1, 1, "this is bad")], "good\n": []})
        server = lsp.LanguageServer("double", suffixes=[".py"], reads="file", server=double)
        async with lsp.LanguageServers(workspace, [server]) as servers:
            runtime = Runtime(
                Registry([*workspace.tools(), *servers.tools()]),
                services=Services(lsp=servers, after_lane=[servers.after_lane]),
            )
            return tuple(contents(await runtime.run(calls_of(*named))))

    return every(program, 10)


@pytest.mark.seldom
def test_lsp_gives_diagnostics_of_the_text_that_stands_there() -> None:
    """A question before an edit has the findings of the old text, one after it those of the new.

    Seed: "Shared LSP manager for diagnostics tool."
    """
    ask = ("diagnostics", {"path": "a.py"})
    before, _, after = _diagnosed(ask, edit("a.py", "bad", "good"), ask)
    assert "this is bad" in before
    assert "this is bad" not in after


def test_lsp_is_notified_of_changed_files() -> None:
    """Language servers that are told of a change answer for the new text; a context without any has None.

    Seed: "Notify LSP that a file changed (if LSP is enabled). This is a convenience method for
    write/edit/search_replace tools." / "None when LSP is disabled."
    """
    pytest.importorskip("lsprotocol", reason="the extra lsp is not installed")
    from toolrt.plugins import lsp

    async def program() -> Any:
        disk = MemoryDisk({"a.py": "bad\n"})
        double = lsp.RecordedServer({"bad\n": [Diagnostic(1, 1, "this is bad")], "good\n": []})
        server = lsp.LanguageServer("double", suffixes=[".py"], reads="file", server=double)
        async with lsp.LanguageServers(Workspace(disk), [server]) as servers:
            before = await servers.diagnostics("a.py")
            disk.put("a.py", "good\n")
            servers.notify_file_changed("a.py", "good\n")
            after = await servers.diagnostics("a.py")
        return len(before.findings), len(after.findings)

    assert every(program, 10) == (1, 0)
    assert ToolContext.standalone(None).lsp is None


# event_tx


async def test_event_tx_streams_output_while_a_tool_runs() -> None:
    """Chunks of a command's output arrive before its result, in order, with its identity.

    Seed: "Optional event sender for real-time tool output streaming (e.g., bash stdout). When set, tools like
    bash can send output chunks as they're produced."
    """
    workspace = Workspace(MemoryDisk({}))
    shell = services.RecordedShell({"make": "one\ntwo\n"})
    runtime = Runtime(Registry([services.shell_tool(workspace, shell=shell)]))
    updates = await streamed(runtime, *calls_of(("run_command", {"command": "make"})), events=True)
    kinds = [type(update).__name__ for update in updates]
    messages = [update.message for update in updates if isinstance(update, Progress)]
    chunks = [message for message in messages if isinstance(message, OutputChunk)]
    assert kinds.index("Progress") < kinds.index("ResultReady")
    assert "".join(chunk.text for chunk in chunks) == "one\ntwo\n"
    assert {(chunk.call_index, chunk.call_id) for chunk in chunks} == {(0, "toolu_0")}


async def test_event_tx_takes_events_of_a_tools_own_and_never_blocks() -> None:
    """A tool emits more than any reader takes, with no reader there, and ends all the same."""

    @toolrt.tool(safe=True)
    async def talk(ctx: ToolContext) -> str:
        for number in range(5_000):
            ctx.emit(toolrt.FileChanged(f"{number}.txt"))
            ctx.progress(number)
        return "said"

    assert contents(await Runtime(Registry([talk])).run(calls_of(("talk", {})))) == ["said"]


# current_call_id


def test_current_call_id_is_that_of_the_call_whatever_runs_beside_it() -> None:
    """Each call has its own id at every step, though all of them run at once.

    Seed: "Current tool call ID for event correlation."
    """

    @toolrt.tool(safe=True)
    async def who(ctx: ToolContext) -> tuple[str, ...]:
        seen = []
        for _ in range(3):
            seen.append(ctx.call_id)
            await trio.lowlevel.checkpoint()
        return tuple(dict.fromkeys(seen))

    async def program() -> Any:
        return tuple(contents(await Runtime(Registry([who])).run(calls_of(("who", {}), ("who", {}), ("who", {})))))

    assert every(program) == (("toolu_0",), ("toolu_1",), ("toolu_2",))


# tool_registry


def test_tool_registry_lets_a_tool_dispatch_others() -> None:
    """`parallel_edit_files` finds the edit tools through its context and edits several files.

    Seed: "Shared registry handle for tools that dispatch fork sub-agents (currently only parallel_edit_files)."
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"a.txt": "one", "b.txt": "one"}))
        registry = Registry([*workspace.tools(), services.parallel_edit_tool(workspace)])
        parts = [{"path": path, "edits": [{"old": "one", "new": "two"}]} for path in ("a.txt", "b.txt")]
        done = await Runtime(registry).run(calls_of(("parallel_edit_files", {"parts": parts})))
        return done.results[0].outcome, tuple(sorted(workspace.snapshot().items()))

    assert every(program, 10) == (Outcome.OK, (("a.txt", b"two"), ("b.txt", b"two")))


async def test_tool_registry_is_read_through_the_context() -> None:
    """A tool sees the runtime's registry, itself included, without holding it; alone it is given none.

    Seed: "Reading the registry via ctx instead of holding it in the tool struct avoids creating a Tool <->
    Registry Arc cycle." / "None in headless / test contexts that don't need fork dispatch."
    """

    @toolrt.tool(safe=True)
    async def names(ctx: ToolContext) -> list[str]:
        return sorted(tool.name for tool in ctx.registry or ())

    assert contents(await Runtime(Registry([names])).run(calls_of(("names", {})))) == [["names"]]
    assert not ToolContext.standalone(None).registry


# Constructors, isolate, clone


def test_new_makes_a_context_with_telemetry_switched_off() -> None:
    """A context outside a batch has its working directory and can call a tool; telling does nothing.

    Seed: "new(working_dir): Create a ToolContext with a disabled (no-op) telemetry handle." /
    "with_session(working_dir, session_id)"
    """
    workspace = Workspace(MemoryDisk({"d/x.txt": "below"}))
    ctx = ToolContext.standalone("d", "my session", services=workspace.services)
    (read_file,) = [tool for tool in workspace.tools() if tool.name == "read_file"]
    assert trio.run(read_file, ctx, "x.txt") == "below"
    assert ctx.batch_id == "my session"
    ctx.telemetry.event("nothing", {})
    ctx.progress("nothing")


def test_with_telemetry_makes_a_context_that_tells() -> None:
    """What a tool tells outside a batch reaches the given observer.

    Seed: "Prefer with_telemetry in production so real events are emitted."
    """
    from toolrt.plugins.otel import Telemetry

    told = []

    class Sink:
        def event(self, kind: str, fields: Any) -> None:
            told.append((kind, str(fields)))

    with Telemetry(Sink()) as telemetry:
        ToolContext.standalone(None, "s", telemetry).telemetry.event("rows.read", {"rows": 1})
    assert any("rows.read" in text for one in told for text in one)


def test_isolate_has_the_same_working_directory_and_is_independent() -> None:
    """What a part changes in its own directory no other part sees, under every schedule.

    Seed: "Create an isolated copy: same working directory value, independent Arc." / "... independent
    working_dir."
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk({"x.txt": "top", "a/x.txt": "of a", "b/x.txt": "of b"}))

        @toolrt.tool(owner=workspace)
        async def parts(ctx: ToolContext) -> Any:
            found: dict[str, Any] = {}

            async def part(name: str) -> None:
                alone = ctx.isolate()
                assert alone.state.working_dir == ctx.state.working_dir
                calls = calls_of(read("x.txt"), ("change_dir", {"path": name}), read("x.txt"))
                found[name] = contents(await alone.run(calls))[::2]

            async with trio.open_nursery() as nursery:
                nursery.start_soon(part, "a")
                nursery.start_soon(part, "b")
            return found["a"], found["b"], contents(await ctx.run(calls_of(read("x.txt"))))

        done = await Runtime(Registry([*workspace.tools(), parts])).run(calls_of(("parts", {})))
        (found,) = contents(done)
        return repr(found)

    assert every(program, 20) == repr((["top", "of a"], ["top", "of b"], ["top"]))


async def test_isolate_shares_graph_store_and_claims_and_has_budgets_of_its_own() -> None:
    """The copy has the same services and may touch what the call claims; its read budget is its own.

    Seed: "Shares the same graph (read-only for tools) but independent working_dir."
    """
    graph = object()
    workspace = Workspace(MemoryDisk({"a.txt": "x"}))

    @toolrt.tool(claims=lambda input, state: workspace.claims("a.txt", state, WRITE), owner=workspace)
    async def look(ctx: ToolContext) -> Any:
        alone = ctx.isolate(context_budget=50_000)
        assert alone.graph is ctx.graph is graph
        assert alone.files is ctx.files is workspace.files
        assert alone.history is ctx.history
        assert alone.call_id == ctx.call_id
        done = await alone.run(calls_of(edit("a.txt", "x", "y"), write("b.txt", "")))
        return alone.read_budget, ctx.read_budget, [result.outcome.value for result in done.results]

    registry = Registry([*workspace.tools(), look])
    runtime = Runtime(registry, services=Services(graph=graph))
    assert contents(await runtime.run(calls_of(("look", {})))) == [(10_000, None, ["ok", "invalid"])]


async def test_clone_shares_what_it_holds() -> None:
    """Two calls of one batch are given contexts that differ in identity and share the services.

    Seed: "impl Clone for ToolContext" / fields are `Arc`s: a clone shares them.
    """
    seen = []

    @toolrt.tool(claims=lambda input, state: [Claim(("slot", input["number"]), WRITE)])
    async def keep(ctx: ToolContext, number: int) -> None:
        seen.append(ctx)

    graph = object()
    runtime = Runtime(Registry([keep]), services=Services(graph=graph))
    await runtime.run(calls_of(("keep", {"number": 1}), ("keep", {"number": 2})))
    assert {ctx.call_id for ctx in seen} == {"toolu_0", "toolu_1"}
    assert all(ctx.graph is graph for ctx in seen)


def test_all_fourteen_fields_have_their_name_here() -> None:
    """Each field of the seed is answered by a public attribute of the context or of its state.

    Seed: "Show 14 fields"
    """
    here = {
        "working_dir": "state.working_dir",
        "semantic": "search",
        "file_history": "history",
        "graph": "graph",
        "ctx_budget_hint": "state.context_budget",
        "read_budget_tokens": "read_budget",
        "read_cache": "files",
        "first_error_signatures": "state.error_signatures",
        "telemetry": "telemetry",
        "lsp": "lsp",
        "event_tx": "emit",
        "current_call_id": "call_id",
        "tool_registry": "registry",
        "file_store": "files",
    }
    assert len(here) == 14
    ctx = ToolContext.standalone(None, services=Workspace(MemoryDisk({})).services)
    for name in here.values():
        value: Any = ctx
        for part in name.split("."):
            assert hasattr(value, part), name
            value = getattr(value, part)
    assert isinstance(ToolCall("id", "name", {}).call_id, str)
