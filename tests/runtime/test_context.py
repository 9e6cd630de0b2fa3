"""What a tool is given: events, services, what they are told, and a context outside a batch."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import attrs
import pytest
import trio

import toolrt
from tests.runtime._tools import call, runtime
from toolrt import (
    DirectoryChanged,
    FileChanged,
    LaneChanges,
    MemoryDisk,
    OutputChunk,
    Progress,
    Registry,
    Runtime,
    Services,
    State,
    ToolCall,
    ToolContext,
    Workspace,
    services,
    sim,
)
from toolrt.errors import DefinitionRefused
from toolrt.model import SILENT, Diagnostic, Diagnostics, FileChange, Severity


async def updates_of(runtime: Runtime, *calls: ToolCall, **options: Any) -> list[Any]:
    async with runtime.open_batch(**options) as batch:
        for one in calls:
            batch.submit(one)
        batch.seal()
        return [update async for update in batch]


def messages(updates: list[Any]) -> list[Any]:
    return [update.message for update in updates if isinstance(update, Progress)]


# Events


def test_event_has_its_calls_identity() -> None:
    """What the tool leaves open is filled in, also in a kind of the user's own."""

    @attrs.frozen
    class Cloned(toolrt.Event):
        url: str

    @toolrt.tool(safe=True)
    async def clone(ctx: ToolContext) -> None:
        ctx.emit(Cloned("somewhere", call_id="of another"))
        ctx.emit(Diagnostics("a.py", [Diagnostic(1, 2, "no")]))

    found = messages(trio.run(lambda: updates_of(runtime(clone), call("clone"), batch_id="b")))
    identity = {"batch_id": "b", "call_index": 0, "call_id": "clone"}
    assert found == [
        Cloned("somewhere", **identity),
        Diagnostics("a.py", (Diagnostic(1, 2, "no", Severity.ERROR),), **identity),
    ]


def test_what_is_no_event_arrives_as_it_is() -> None:
    """A mistake in what is told fails no call."""

    @toolrt.tool(safe=True)
    async def odd(ctx: ToolContext) -> str:
        ctx.emit({"kind": "mine"})  # type: ignore[arg-type]
        ctx.emit(OutputChunk)  # type: ignore[arg-type]
        return "done"

    updates = trio.run(lambda: updates_of(runtime(odd), call("odd")))
    assert messages(updates) == [{"kind": "mine"}, OutputChunk]
    assert updates[-2].result.content == "done"


def test_event_comes_from_the_thread_of_a_sync_tool() -> None:
    """As progress does."""

    @toolrt.tool(safe=True)
    def sync(ctx: ToolContext) -> None:
        ctx.emit(OutputChunk(0, "from a thread"))

    [found] = messages(trio.run(lambda: updates_of(runtime(sync), call("sync"))))
    assert (found.text, found.call_id) == ("from a thread", "sync")


def workspace_runtime(root: Path | None = None, **options: Any) -> Runtime:
    files = {"a.txt": "one\n", "d/b.txt": "two\n"}
    for path, text in files.items() if root is not None else ():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    workspace = Workspace(MemoryDisk(files) if root is None else root)
    shell = services.shell_tool(workspace, shell=services.RecordedShell({"make": ["first\n", "second\n"]}))
    return Runtime(Registry([*workspace.tools(), shell]), **options)


CALLS = [
    call("write_file", path="new/c.txt", content="c"),
    call("edit_file", path="a.txt", old="one", new="1"),
    call("edit_file", path="a.txt", old="nowhere", new="1"),
    call("write_file", path="d/b.txt", content="two\n"),
    call("move_path", source="a.txt", target="d/a.txt"),
    call("delete_path", path="d", recursive=True),
    call("change_dir", path="new"),
    call("run_command", command="cd . && make"),
]


@pytest.mark.parametrize("real", [False, True], ids=["twin", "real"])
def test_file_and_shell_tools_say_what_they_did_where_it_is_wanted(real: bool, tmp_path: Path) -> None:
    """Typed events, in each call's order; a call that changed nothing says nothing."""
    updates = trio.run(lambda: updates_of(workspace_runtime(tmp_path if real else None), *CALLS, events=True))
    said: dict[int, list[Any]] = {}
    events = [update.message for update in updates if isinstance(update, Progress)]
    [batch_id] = {event.batch_id for event in events if isinstance(event, toolrt.Event)}
    for update in updates:
        if isinstance(update, Progress) and isinstance(update.message, toolrt.Event):
            event = update.message
            assert (event.call_index, event.call_id, event.batch_id) == (update.call_index, update.call_id, batch_id)
            bare = attrs.evolve(event, call_index=None, call_id=None, batch_id=None)
            said.setdefault(update.call_index, []).append(bare)
    assert said == {
        0: [FileChanged("new", FileChange.CREATED, is_directory=True), FileChanged("new/c.txt", "created")],
        1: [FileChanged("a.txt", "modified")],
        4: [FileChanged("a.txt", "moved", "d/a.txt")],
        5: [FileChanged("d", "deleted", is_directory=True)],
        6: [DirectoryChanged("new")],
        7: [OutputChunk(0, "first\n"), OutputChunk(6, "second\n"), DirectoryChanged("new")],
    }


def test_reader_who_did_not_ask_sees_what_it_always_saw() -> None:
    """Without ``events=True`` toolrt's own tools tell the shell's chunks alone."""
    updates = trio.run(lambda: updates_of(workspace_runtime(), *CALLS))
    assert messages(updates) == [{"offset": 0, "output": "first\n"}, {"offset": 6, "output": "second\n"}]
    told: list[LaneChanges] = []
    kept_up = workspace_runtime(services=Services(after_lane=[told.append]))
    assert messages(trio.run(lambda: updates_of(kept_up, *CALLS))) == messages(updates)
    assert told
    done = trio.run(workspace_runtime().run, CALLS)
    assert [result.progress_dropped for result in done.results] == [0] * 7 + [2]


def test_event_survives_pickling() -> None:
    """Events are values: those of an execution cross a process boundary."""
    event = FileChanged("a", "moved", "b")
    assert pickle.loads(pickle.dumps(event)) == event
    assert event.paths == ("a", "b")


# Services


def test_services_are_those_given_and_else_the_owners() -> None:
    """What is None there comes from the workspace; a tool that nobody owns has those of the only workspace."""
    one, two = Workspace(MemoryDisk()), Workspace(MemoryDisk())
    graph = object()
    seen: list[Any] = []

    def looking(name: str, owner: Any = None) -> toolrt.Tool:
        @toolrt.tool(name=name, safe=True, owner=owner)
        async def look(ctx: ToolContext) -> None:
            seen.append((ctx.files, ctx.graph))

        return look

    async def run(*tools: toolrt.Tool) -> list[Any]:
        seen.clear()
        await Runtime(Registry(tools), services=Services(graph=graph)).run([call(tool.name) for tool in tools])
        return list(seen)

    assert sim.run(lambda: run(looking("a", one), looking("b"))).value == [(one.files, graph)] * 2
    assert sim.run(lambda: run(looking("a", one), looking("b", two), looking("c"))).value == [
        (one.files, graph),
        (two.files, graph),
        (None, graph),
    ]
    given = Services(files=two.files, graph=graph).filled_from(one.services)
    assert (given.files, given.history, given.telemetry) == (two.files, one.history, SILENT)


def test_service_that_is_given_twice_hears_once() -> None:
    """By the runtime and by the workspace, say."""
    told: list[LaneChanges] = []
    hook = told.append
    both = Services(after_lane=[hook]).filled_from(Services(after_lane=[hook, print]))
    assert both.after_lane == (hook, print)


@pytest.mark.parametrize(
    ("define", "says"),
    [
        (lambda: Services(telemetry=None), "event(kind, fields)"),
        (lambda: Services(after_lane=[1]), "functions of a LaneChanges"),
        (lambda: Services(after_lane=1), "functions of a LaneChanges"),
        (lambda: Services().replace(grahp=1), "one of files, history, search, graph, lsp"),
        (lambda: runtime(services={}), "a toolrt.Services or None"),
        (lambda: runtime().open_batch(events=1), "True or False"),
        (lambda: ToolContext.standalone(None, session_id=1), "a string or None"),
        (lambda: ToolContext.standalone(1), "a path or None"),
        (lambda: ToolContext.standalone(None, services={}), "a toolrt.Services or None"),
        (lambda: ToolContext.standalone(None, registry=[]), "a toolrt.Registry or None"),
        (lambda: Workspace(MemoryDisk(), skeleton="x"), "a function"),
        (lambda: State(hints="abc"), "a sequence of strings"),
    ],
)
def test_what_cannot_be_given_is_refused(define: Any, says: str) -> None:
    """The text names what was expected."""

    async def defined() -> None:
        with pytest.raises(DefinitionRefused) as refused:
            define()
        assert says in str(refused.value)

    trio.run(defined)


# What a lane changed


def test_service_of_a_workspace_hears_of_its_own_calls() -> None:
    """Two workspaces, each with a service: paths of one mean nothing to the other."""
    heard: dict[str, list[Any]] = {"one": [], "two": []}

    class Owner:
        def __init__(self, name: str) -> None:
            self.claim_table = toolrt.ClaimTable(name)
            self.services = Services(after_lane=[heard[name].append])

    def changing(name: str, owner: Any) -> toolrt.Tool:
        @toolrt.tool(name=name, safe=True, owner=owner)
        async def change(ctx: ToolContext) -> None:
            ctx.emit(FileChanged(name))

        return change

    one, two = Owner("one"), Owner("two")
    tools = [changing("a", one), changing("b", two), changing("c", None)]
    trio.run(runtime(*tools).run, [call(tool.name) for tool in tools])
    assert [told.paths for told in heard["one"]] == [("a", "c")]
    assert [told.paths for told in heard["two"]] == [("b", "c")]


def noted(paths: list[str], seconds: float = 0.0) -> toolrt.Tool:
    @toolrt.tool(name="change", safe=True)
    async def change(ctx: ToolContext) -> str:
        for path in paths:
            ctx.emit(FileChanged(path))
        await trio.sleep(seconds)
        return "changed"

    return change


@pytest.mark.parametrize("how", ["inside", "outside", "before"])
def test_service_takes_note_also_when_the_batch_is_cancelled(how: str) -> None:
    """It gets as far as its first checkpoint, and holds the cancel up no longer."""
    began: list[Any] = []
    ended: list[Any] = []

    async def slow(changes: LaneChanges) -> None:
        began.append(changes.paths)
        await trio.sleep(100)
        ended.append(changes.paths)

    async def program() -> Any:
        given = runtime(noted(["a"], 50 if how == "before" else 0), services=Services(after_lane=[slow, slow]))
        with trio.move_on_after(5 if how == "outside" else 1000):
            async with given.open_batch() as batch, trio.open_nursery() as nursery:
                batch.submit(call("change"))
                batch.seal()
                if how != "outside":
                    nursery.start_soon(trio.sleep, 5)
                    await trio.sleep(5)
                    batch.cancel("enough")
        return trio.current_time(), [result.outcome.value for result in batch.outcome.results]

    execution = sim.run(program)
    assert execution.error is None, execution.error
    assert execution.value == (5, ["interrupted" if how == "before" else "ok"])
    assert began == [("a",), ("a",)]
    assert ended == []


def test_service_that_fails_is_told_of_and_fails_nothing() -> None:
    """Neither what it raises nor a cancellation that it makes up reaches the batch."""

    async def group(changes: LaneChanges) -> None:
        async with trio.open_nursery() as nursery:
            nursery.cancel_scope.cancel()
            nursery.start_soon(trio.sleep_forever)
            raise ValueError("inside")

    def plain(changes: LaneChanges) -> None:
        raise OSError("outside")

    given = Services(after_lane=[group, plain])
    execution = sim.run(lambda: runtime(noted(["a"]), services=given).run([call("change")]))
    assert [result.outcome.value for result in execution.value.results] == ["ok"]
    failures = [(event.fields["lane"], event.fields["error"]) for event in execution.trace.of_kind("service.failed")]
    assert failures == [(0, "ValueError: inside"), (0, "OSError: outside")]


def test_exit_in_a_service_ends_the_batch() -> None:
    """Ctrl-C is nobody's failure: who leaves the batch gets it, and every call has its answer."""

    def leaves(changes: LaneChanges) -> None:
        raise KeyboardInterrupt

    async def program() -> Any:
        @toolrt.tool
        async def later(ctx: ToolContext) -> None:
            pass

        given = runtime(noted(["a"]), later, services=Services(after_lane=[leaves]))
        batch = given.open_batch()
        with pytest.raises(KeyboardInterrupt):
            async with batch:
                batch.submit(call("change"))
                batch.submit(call("later"))
        return [result.outcome.value for result in batch.outcome.results]

    assert trio.run(program) == ["ok", "not_started"]


def test_service_sees_the_files_as_the_lane_left_them() -> None:
    """It may read them: nothing of the batch runs meanwhile, and the next lane waits."""
    workspace = Workspace(MemoryDisk({"a": "1"}))
    seen: list[Any] = []

    async def refresh(changes: LaneChanges) -> None:
        await trio.sleep(1)
        seen.append({path: workspace.snapshot().get(path) for path in changes.paths})

    async def program() -> None:
        given = Runtime(Registry(workspace.tools()), services=Services(after_lane=[refresh]))
        await given.run(
            [
                call("write_file", path="a", content="2"),
                call("edit_file", path="a", old="2", new="3"),
                call("change_dir", path="."),
                call("write_file", path="a", content="4"),
            ]
        )

    assert sim.run(program).error is None
    assert seen == [{"a": b"3"}, {"a": b"4"}]


# Outside a batch


def test_standalone_context_runs_a_tool_outside_a_batch() -> None:
    """With a working directory, services and a budget; nothing is taken and nobody listens."""
    workspace = Workspace(MemoryDisk({"src/a.txt": "one\n" * 10_000}))
    tools = {tool.name: tool for tool in workspace.tools()}
    ctx = ToolContext.standalone("src", services=workspace.services, context_budget=0)

    async def program() -> Any:
        ctx.progress("into the void")
        ctx.emit(OutputChunk(0, "likewise"))
        whole = await tools["read_file"](ctx, "a.txt")
        await tools["write_file"](ctx, "b.txt", "two\n")
        return whole

    answer = trio.run(program)
    assert "this read may answer 2000" in answer
    assert workspace.snapshot()["src/b.txt"] == b"two\n"
    assert (ctx.batch_id, ctx.call_index, ctx.call_id) == ("standalone", 0, "standalone")
    assert (ctx.files, ctx.history, ctx.registry) == (workspace.files, workspace.history, None)
    assert (ctx.read_budget, ctx.alone, ctx.telemetry) == (2000, True, SILENT)
    assert workspace.claim_table.statistics()["groups"] == 0


def test_standalone_context_names_its_session_and_its_observer() -> None:
    """What a session made can be told, and undone, by its name."""
    workspace = Workspace(MemoryDisk())
    tools = {tool.name: tool for tool in workspace.tools()}
    told: list[Any] = []

    class Watching:
        def event(self, kind: str, fields: Any) -> None:
            told.append((fields.get("batch"), fields.get("name")))

    ctx = ToolContext.standalone(None, "a session", Watching(), services=workspace.services)

    async def program() -> Any:
        ctx.telemetry.event("looked")
        await tools["write_file"](ctx, "a", "1")
        return await workspace.history.changed_by("a session")

    assert trio.run(program) == ("a",)
    assert ("a session", "looked") in told


# The read budget


def sharing(name: str, **options: Any) -> toolrt.Tool:
    @toolrt.tool(name=name, shares_read_budget=name == "read", **options)
    async def budget(ctx: ToolContext) -> Any:
        changed = [lambda state: state.replace(context_budget=7)]
        return toolrt.ToolOutput(ctx.read_budget, modifiers=changed)

    return budget


@pytest.mark.parametrize(
    ("state", "options", "budget"),
    [
        (State(context_budget=100_000), {}, 20_000),
        (State(context_budget=100_000), {"expected_reads": 4}, 5_000),
        (State(context_budget=100_000), {"expected_reads": 11}, 2_000),
        (State(context_budget=0), {}, 2_000),
        (State(), {"expected_reads": 4}, None),
    ],
)
def test_read_budget_of_an_open_batch_is_what_was_expected(state: State, options: Any, budget: int | None) -> None:
    """Whatever is submitted, and whenever."""
    updates = trio.run(
        lambda: updates_of(runtime(sharing("read")), *[call("read")] * 3, state=state, **options),
    )
    assert [update.result.content for update in updates if isinstance(update, toolrt.ResultReady)] == [budget] * 3


def test_read_budget_of_a_sub_batch_is_of_its_own_reads() -> None:
    """It is a batch: what it is given decides."""

    @toolrt.tool
    async def parent(ctx: ToolContext) -> Any:
        inside = await ctx.run([call("read"), call("read")])
        apart = ctx.isolate(context_budget=50_000)
        return ctx.read_budget, [result.content for result in inside.results], apart.read_budget

    done = trio.run(runtime(parent, sharing("read", safe=True)).run, [call("parent")], State(context_budget=100_000))
    assert done.results[0].content == (20_000, [10_000, 10_000], 10_000)
