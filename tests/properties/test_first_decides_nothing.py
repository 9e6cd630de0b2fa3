"""Nothing is decided by who is first: every mutable thing that a tool can reach ends the same under every schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests._profile import FULL
from tests.properties._reachable import Moment, things_reached
from toolrt import (
    Diagnostic,
    MemoryDisk,
    Registry,
    Runtime,
    Services,
    State,
    Tool,
    ToolCall,
    ToolContext,
    Workspace,
    sim,
)
from toolrt.invariants import MUTANTS
from toolrt.plugins.code import CodeIndex
from toolrt.plugins.lsp import LanguageServer, LanguageServers, RecordedServer
from toolrt.services import Recorded, RecordedShell, parallel_edit_tool, shell_tool

#: Made once, and never changed.
FIXED = """
BareValidator.schema DerivedValidator.schema GivenValidator.schema LanguageServer.env LanguageServer.settings
RecordedShell._answers Registry._tools SchemaCheck._schema
Runtime._services_by_owner State._values Tool._defaults Tool._wish ToolCall.input ToolResult.content
CallRecord.input WatchedState._values Workspace._tools _Parameters.defaults _ShellTool._defaults _ShellTool._wish
"""

#: Made when it is first asked for, out of what is fixed.
MADE_LATE = "DerivedValidator._check Tool._validator"

#: A batch's own books: what they say in the end follows from call order, and law 12 sees that nothing is left in them.
BATCH = """
Admission.runtime_tables BatchRun._nursery BatchRun.applied BatchRun.outcome BatchRun.records BatchRun.settings
BatchRun.state
CallRecord.changes CallRecord.missing CallRecord.modifiers CallRecord.opened CallRecord.pending_progress
CallRecord.siblings CallRecord.state CallRecord.tickets Cursor._calls Cursor._lanes
Cursor._merges Cursor._merges_due Cursor._slot Cursor.progress LanePlace.index LaneRecord.calls
LaneRecord.gated LaneRecord.modified LaneRecord.ready LaneRecord.running LaneRecord.start LaneRecord.state
LaneRecord.unfinished Lease._changes Lease._ended Lease._open Lease._opened Lease._tables LentSlot.running
Machine.calls Machine.current Machine.lanes Machine.state Reader._calls Reader._reading Reader.news Reader.unread
Runtime._open_batches Settings.open_batches Slots.starved
"""

#: What a batch that is over lets go of (`Machine.let_go`): it is the same nothing in each.
LET_GO = """
CallRecord.inside LaneRecord.slots Machine.admission Machine.questions Machine.verbs Siblings.cancel Siblings.limit
"""

#: What one call, or one modifier, read of the state that it was given: that state is the same under every schedule.
READS = "StateReads.parts"

#: Tickets, and directories and groups of changes in the making: they order all else, and none is left in the end.
TICKETS = """
ClaimTable._capacities ClaimTable._counted ClaimTable._outside ClaimTable._said
ClaimTable._taken ClaimTable.tenure ClaimTree._nodes ClaimTree._subtrees ClaimTree.living
ClaimTree.serial Group.dependents Group.predecessors Group.since Group.tickets MemoryStore._groups
PendingDirectories._groups
_Node.children _Node.reads _Node.subtree_reads _Node.write
"""

#: When calls of each rate began: that follows from call order, and what lies behind a rate's window goes.
RATES = "Rates._starts"

#: Files, and what is known of them: whoever may change one holds its ticket.
FILES = """
Branch.names FileNode.changes FileNode.content FileNode.ctime_ns FileNode.mtime_ns
MemoryStore._bytes MemoryStore._serial
NodeTree.inodes
"""

#: Of these only a part can be seen by anybody, and that part is in `VIEWS`: an order among things that nobody orders
#: (versions of different files, which entry of a cache is the oldest) and numbers that only tell things apart.
SEEN_IN_PART = """
NameMemory._in Cache._bytes Cache._kept Cache._misses FileNode.inode FileNode.made_as
Freshness._seen FactIndex.files
MemoryStore._by_batch MemoryStore._by_file MemoryStore._contents MemoryStore._dropped MemoryStore._rows
MemoryStore._used
"""

#: The index of code: what it says follows from the files, whenever it reads them.
CODE = """
CodeIndex._facts CodeIndex._tools FactIndex._store FactIndex.age FactStore._idle FactStore._made
"""

#: Language servers: what they are told follows from call order, and their answers belong to versions of texts.
SERVERS = """
Attempt.session LanguageConnection.starts LanguageServers._noted LanguageServers._tools
LanguageServers._untold RecordedServer.told LanguageSession._documents LanguageSession._names_versions
LanguageSession._pending LanguageSession._told LanguageSession._unasked LanguageSession._versions
_RecordedChannel._texts _Document.published
"""

LISTED = frozenset(
    " ".join((FIXED, MADE_LATE, CODE, SERVERS, BATCH, LET_GO, READS, TICKETS, RATES, FILES, SEEN_IN_PART)).split()
)


def _versions(rows: Any) -> Any:
    """Of each file its versions, in their order; a file's number is one of those that only tell things apart."""

    def unnumbered(standing: Any) -> Any:
        return None if standing is None else attrs.evolve(standing, number=None)

    found: dict[Any, list[Any]] = {}
    for row in rows.values():
        version = row.batch_id, row.call_index, unnumbered(row.before), unnumbered(row.after)
        found.setdefault(row.key, []).append(version)
    return found


#: What of a value can be seen from outside; of all others it is the value itself.
VIEWS: dict[str, Callable[[Any], Any]] = {
    # Keys are addresses.
    "Runtime._services_by_owner": lambda services: list(services.values()),
    "MemoryStore._rows": _versions,
    "MemoryStore._by_file": lambda rows: {key: len(found) for key, found in rows.items()},
    # Which of two batches brought a content that both have is not seen.
    "MemoryStore._used": lambda used: {batch: rows for batch, (rows, _) in used.items()},
    "MemoryStore._by_batch": lambda rows: {batch: len(found) for batch, found in rows.items()},
    # What is kept of a file is valid as long as the file shows its stamp, in which its number is.
    "Cache._kept": lambda kept: {key: (one.digest, one.value) for key, one in kept.items()},
    "FileNode.inode": lambda number: None,
    # The directory's number and the name under which the disk made the file: compared with where it stands, no more.
    "FileNode.made_as": lambda made: None if made is None else made[1],
    "FactIndex.files": lambda rows: {
        path: (row.digest, row.language, row.lines, row.note) for path, row in rows.items()
    },
    # Which is the oldest decides only what is forgotten first, beyond 100,000 files.
    "Freshness._seen": dict,
}


def call(name: str, **input: Any) -> ToolCall:
    return ToolCall(name, name, input)


def looking(moments: list[Moment] | None) -> tuple[list[ToolContext], Tool]:
    """A tool that looks twice at all it is given, where somebody wants the moments; and the contexts it was given."""
    kept: list[ToolContext] = []
    if moments is not None:
        moments.clear()

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext) -> None:
        kept.append(ctx)
        for _ in range(2):
            if moments is not None:
                moments.append(things_reached(ctx, VIEWS))
            await trio.sleep(1)

    return kept, look


async def run_through(runtime: Runtime, calls: Iterable[ToolCall], **options: Any) -> None:
    """One batch of these calls, with a reader."""
    async with runtime.open_batch(batch_id="b", **options) as batch:
        for one in calls:
            batch.submit(one)
        batch.seal()
        async for _ in batch:
            pass


def parts(*paths: str) -> list[dict[str, str]]:
    return [{"path": path, "instructions": "x"} for path in paths]


def program_for(
    moments: list[Moment] | None, limit: int | None = 2, lanes: toolrt.LanePolicy = toolrt.by_claims, extra: Any = None
) -> Callable[[], Any]:
    """A batch that uses what a tool is given; `moments` has what is reached while it runs, the value what in the end.

    Args:
        extra: called with the workspace before it is used.
    """

    async def program() -> Moment:
        seen: list[Moment] = [] if moments is None else moments
        seen.clear()
        kept: list[ToolContext] = []

        def note(ctx: ToolContext) -> None:
            if moments is not None:
                seen.append(things_reached(ctx, VIEWS))

        @toolrt.tool(safe=True)
        async def look(ctx: ToolContext) -> None:
            kept.append(ctx)
            note(ctx)
            ctx.progress("looks")
            await trio.sleep(1)
            note(ctx)

        async def edit(ctx: Any, path: str, instructions: str) -> str:
            calls = [call("read_file", path=path), call("edit_file", path=path, old="o", new=instructions)]
            await ctx.run(calls)
            note(ctx)
            return "done"

        workspace = Workspace(MemoryDisk({"a.txt": "one", "b.txt": "one"}))
        if extra is not None:
            extra(workspace)
        shell = RecordedShell({"make": Recorded("gcc: fatal error: no input files\n", status=2, seconds=0.5)})
        tools = [*workspace.tools(), look, parallel_edit_tool(workspace, edit), shell_tool(workspace, shell=shell)]
        runtime = Runtime(Registry(tools), lanes, limit)
        calls = [
            call("read_file", path="a.txt"),
            call("read_file", path="b.txt"),
            call("edit_file", path="a.txt", old="e", new="f"),
            call("look"),
            call("parallel_edit_files", parts=parts("a.txt", "b.txt")),
            call("search", pattern="x"),
            call("run_command", command="make"),
            call("change_dir", path="."),
            call("read_file", path="a.txt"),
            call("nobody"),
        ]
        await run_through(runtime, calls, state=State({"k": 1}), events=True)
        return things_reached(kept[0], VIEWS)

    return program


def program_with_code(moments: list[Moment] | None, limit: int | None = None) -> Callable[[], Any]:
    """The same with a service that keeps up with the files: an index of code, `ctx.graph` and `ctx.search` in one."""

    async def program() -> Moment:
        kept, look = looking(moments)
        workspace = Workspace(MemoryDisk({"a.py": "def f():\n    g()\n", "b.py": "def g():\n    pass\n"}))
        code = CodeIndex(workspace)
        edits = [("a.py", "f", "h"), ("b.py", "g", "k")]
        tools = [*workspace.tools(), *code.tools(), look, parallel_edit_tool(workspace)]
        given = Services(graph=code, search=code, after_lane=[code.after_lane])
        runtime = Runtime(Registry(tools), limit=limit, services=given)
        calls = [
            call(
                "parallel_edit_files",
                parts=[{"path": path, "edits": [{"old": old, "new": new}]} for path, old, new in edits],
            ),
            call("edit_file", path="a.py", old="g", new="k"),
            call("write_file", path="c.py", content="import a\n"),
            call("find_callers", symbol="k"),
            call("look"),
            call("change_dir", path="."),
            call("edit_file", path="c.py", old="a", new="b"),
            call("file_dependencies", path="c.py"),
            call("look"),
        ]
        await run_through(runtime, calls)
        return things_reached(kept[0], VIEWS)

    return program


def program_with_servers(moments: list[Moment] | None, limit: int | None = None) -> Callable[[], Any]:
    """The same with a service that others keep up: language servers that are told between lanes what changed."""

    async def program() -> Moment:
        kept, look = looking(moments)

        def found(path: str, text: str) -> list[Diagnostic]:
            return [Diagnostic(1, 1, text)] if "x" in text else []

        workspace = Workspace(MemoryDisk({"a.py": "x = 1\n", "b.py": "y = 1\n"}))
        double = RecordedServer(found, seconds=0.5, answers="published")
        server = LanguageServer("double", suffixes=[".py"], reads="file", server=double)
        async with LanguageServers(workspace, [server]) as lsp:
            tools = [*workspace.tools(), *lsp.tools(), look]
            runtime = Runtime(Registry(tools), limit=limit, services=Services(lsp=lsp, after_lane=[lsp.after_lane]))
            calls = [
                call("diagnostics", path="a.py"),
                call("look"),
                call("change_dir", path="."),
                call("edit_file", path="b.py", old="y", new="x"),
                call("edit_file", path="a.py", old="x", new="y"),
                call("diagnostics", path="b.py"),
                call("write_file", path="c.py", content="x\n"),
                call("change_dir", path="."),
                call("diagnostics", path="a.py"),
                call("look"),
            ]
            await run_through(runtime, calls)
            return things_reached(kept[0], VIEWS)

    return program


def by_name(values: Iterable[str]) -> dict[str, list[str]]:
    """The values of each instance, by its name."""
    found: dict[str, list[str]] = {}
    for value in values:
        name, _, text = value.partition(" ")
        found.setdefault(name, []).append(text)
    return found


def changed(before: Moment, after: Moment) -> set[str]:
    """The labels under which an instance that is in both has another value."""
    found = set()
    for label in before.values.keys() & after.values.keys():
        mine, theirs = by_name(before.values[label]), by_name(after.values[label])
        # Of a name that several have, it is not known which is which.
        if any(
            mine[name] != theirs[name] for name in mine.keys() & theirs.keys() if len(mine[name]) == len(theirs[name])
        ):
            found.add(label)
    return found


def mutable_things(program: Callable[[], Any], moments: list[Moment]) -> tuple[set[str], set[str]]:
    """The labels of all containers that are reached and of attributes that have another value at another moment.

    Then those of all attributes.
    """
    found: set[str] = set()
    there: set[str] = set()
    for seed in range(3):
        execution = sim.run(program, sim.RandomWalk(seed=seed))
        assert execution.error is None, execution.error
        for moment in (*moments, execution.value):
            found |= moment.containers | changed(moment, execution.value)
            there |= moment.values.keys()
    return found, there


def test_every_mutable_thing_is_listed() -> None:
    """What a tool can reach and what can change is in the list above, and the list has nothing else."""
    moments: list[Moment] = []
    found, there = mutable_things(program_for(moments), moments)
    pytest.importorskip("tree_sitter", reason="the code extra is not installed")
    more, also_there = mutable_things(program_with_code(moments), moments)
    found |= more
    there |= also_there
    pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")
    more, also_there = mutable_things(program_with_servers(moments), moments)
    found |= more
    there |= also_there
    assert found - LISTED == set(), "new: say which rule makes its final value the same under every schedule"
    assert LISTED - there == set(), "gone: take them from the list"


def test_a_new_mutable_thing_is_noticed() -> None:
    """The list is no list of what somebody thought of: an attribute more, and the test above fails."""
    moments: list[Moment] = []

    def more(workspace: Workspace) -> None:
        workspace.files.__dict__["_latest"] = {}

    found, _ = mutable_things(program_for(moments, extra=more), moments)
    assert found - LISTED == {"Files._latest"}


def test_what_is_fixed_never_changes() -> None:
    """Neither while calls run nor in the end."""
    moments: list[Moment] = []
    execution = sim.run(program_for(moments))
    assert moments
    for moment in moments:
        assert changed(moment, execution.value) & set(FIXED.split()) == set()


#: How many schedules of each program are tried.
EACH = 200 if FULL else 9


def first_decides(program: Callable[[], Any], executions: int) -> set[str]:
    """The labels whose final value is not the same in all of so many schedules."""
    expected = sim.run(program).value
    found: set[str] = set()

    def check(execution: sim.Execution) -> None:
        assert execution.error is None, execution.error
        ends = execution.value
        labels = expected.values.keys() | ends.values.keys()
        found.update(label for label in labels if expected.values.get(label) != ends.values.get(label))

    report = sim.explore(program, sim.Portfolio(executions), check)
    assert not report.failures, report.failures[0].explain()
    return found


@pytest.mark.drawn(3)
@pytest.mark.parametrize("limit", [1, 2, None])
@pytest.mark.parametrize("lanes", [toolrt.by_claims, toolrt.parallel, toolrt.by_safety])
def test_final_values_do_not_depend_on_the_schedule(limit: int | None, lanes: toolrt.LanePolicy) -> None:
    """Of everything that is reached, listed or not."""
    assert first_decides(program_for(None, limit, lanes), EACH) == set()


@pytest.mark.parametrize("limit", [1, 2, None])
def test_final_values_of_an_index_do_not_depend_on_the_schedule(limit: int | None) -> None:
    """Also where a service reads the files whenever somebody asks it."""
    pytest.importorskip("tree_sitter", reason="the code extra is not installed")
    assert first_decides(program_with_code(None, limit), EACH) == set()


@pytest.mark.seldom
@pytest.mark.parametrize("limit", [1, 2, None])
def test_final_values_of_language_servers_do_not_depend_on_the_schedule(limit: int | None) -> None:
    """What they know of files, and what they were told: also where answers take their time."""
    pytest.importorskip("lsprotocol", reason="the lsp extra is not installed")
    assert first_decides(program_with_servers(None, limit), EACH) == set()


@pytest.mark.seldom
def test_a_runtime_in_which_the_first_decides_is_noticed() -> None:
    """Where claims on files are not taken, files and their versions depend on the schedule."""
    with MUTANTS["files are not ordered"].apply():
        assert {"FileNode.content", "MemoryStore._rows"} <= first_decides(program_for(None, None), 60)
