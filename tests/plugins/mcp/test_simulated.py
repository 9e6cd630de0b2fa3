"""MCP servers in the simulator: one of this process, and the record that stands for a program."""

from __future__ import annotations

import os
from typing import Any

import pytest
import trio

from tests._profile import FULL
from toolrt import MemoryDisk, Outcome, Progress, Registry, Runtime, ToolCall, Workspace, invariants, sim
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.plugins import mcp
from toolrt.plugins.mcp import Hints, Offered, RecordedAnswer, RecordedMcpServer

pytest.importorskip("mcp", reason="the mcp extra is not installed")

from tests.plugins.mcp._mcp import FIRST, SERVERS, calls_of, connected, proper, run

_TEXT = {"type": "string"}
_NUMBER = {"type": "integer"}


def _schema(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


#: What the proper server offers, as far as the record stands for it.
TOOLS = [
    Offered("add", _schema(a=_NUMBER, b=_NUMBER), "The sum of two numbers.", Hints(read_only=True)),
    Offered("get", _schema(key=_TEXT), "What was put there.", Hints(read_only=True)),
    Offered("put", _schema(key=_TEXT, value=_TEXT), "Keep a value.", Hints(idempotent=True, destructive=False)),
    Offered("fail", _schema()),
    Offered("nap", _schema(seconds={"type": "number"})),
    Offered("die", _schema(status=_NUMBER)),
]
_STEPS = [{"progress": step, "total": 3, "message": f"step {step}"} for step in range(3)]


def _record() -> RecordedMcpServer:
    return RecordedMcpServer(
        TOOLS,
        {
            "add": lambda given: RecordedAnswer(str(given["a"] + given["b"]), progress=_STEPS),
            "get": [({"key": "k"}, "v")],
            "put": [({"key": "k", "value": "v"}, "kept")],
            "fail": lambda given: RecordedAnswer("there is no such thing", is_error=True),
            "nap": lambda given: RecordedAnswer(
                "slept", seconds=given["seconds"], progress=[{"progress": 0, "message": "sleeping"}]
            ),
            "die": lambda given: RecordedAnswer(crash=True),
        },
    )


#: What the contract is held on.
CONTRACT = [
    ("x__add", {"a": 1, "b": 2}),
    ("x__add", {"a": 1, "b": "2"}),
    ("x__put", {"key": "k", "value": "v"}),
    ("x__get", {"key": "k"}),
    ("x__fail", {}),
    ("x__nap", {"seconds": 0.01}),
    ("x__die", {"status": 3}),
    ("x__add", {"a": 3, "b": 4}),
]


async def _told(tools: mcp.McpTools) -> Any:
    """Everything that a batch's reader sees of the contract's calls, and what the tools are."""
    seen = []
    async with Runtime(Registry(tools)).open_batch() as batch:
        for call in calls_of(*CONTRACT):
            batch.submit(call)
        batch.seal()
        async for update in batch:
            if isinstance(update, Progress):
                seen.append((update.call_index, update.message))
    kept = [tool for tool in tools if tool.name != "x__picture"]
    hints = {tool.name: tools.hints(tool.name) for tool in kept}
    return batch.outcome.results, seen, hints, tools.servers["x"].starts


@pytest.mark.seldom
@pytest.mark.skipif(os.name != "posix", reason="servers are started on POSIX systems")
@pytest.mark.parametrize("trusted", [False, True])
def test_record_answers_as_the_program_it_stands_for(trusted: bool) -> None:
    """Same calls, same results, same progress, same restarts: as a program, and from the record."""
    real = connected(proper(trusted=trusted), _told)

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_record(), trusted=trusted)]) as tools:
            return await _told(tools)

    execution = sim.run(program)
    assert execution.error is None
    assert execution.value == real


def _server_of_this_process() -> Any:
    """A server that the SDK runs inside the simulation."""
    import importlib.util

    spec = importlib.util.spec_from_file_location("proper", SERVERS / "proper.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.server()


async def _batch_of_this_process() -> Any:
    """A batch on a server of this process beside a workspace: results, progress and virtual time."""
    workspace = Workspace(MemoryDisk({"a.txt": "one\n"}))
    server = mcp.McpServer("x", server=_server_of_this_process(), trusted=True)
    seen = []
    async with mcp.connect([server], owner=workspace) as tools:
        runtime = Runtime(Registry([*workspace.tools(), *tools]))
        async with runtime.open_batch() as batch:
            for call in calls_of(
                ("x__add", {"a": 1, "b": 2}),
                ("write_file", {"path": "a.txt", "content": "two\n"}),
                ("x__add", {"a": 3, "b": 4}),
                ("x__nap", {"seconds": 2.0}),
                ("x__put", {"key": "k", "value": "v"}),
                ("x__get", {"key": "k"}),
                ("x__get", {"key": "j"}),
            ):
                batch.submit(call)
            batch.seal()
            async for update in batch:
                if isinstance(update, Progress):
                    seen.append((update.call_index, update.message.get("message")))
    results = tuple((result.outcome, result.content) for result in batch.outcome.results)
    order = tuple(told for index in range(7) for told in seen if told[0] == index)
    return results, order, str(workspace.snapshot()), trio.current_time()


@pytest.mark.seldom
def test_batch_on_a_server_of_this_process_ends_alike_under_every_schedule() -> None:
    """The SDK's own session and dispatcher, stepped by the simulator: every schedule keeps every law."""
    strategy = sim.Random(sim.RandomWalk(seed=5), 1_000 if FULL else 60)
    report = sim.explore(_batch_of_this_process, strategy, lambda one: invariants.check(one.trace) or None)
    assert not report.failures
    assert len(report.outcomes) == 1
    [(results, order, files, seconds)] = report.outcomes
    assert {outcome for outcome, _ in results} == {Outcome.OK}
    contents = [content for _, content in results]
    assert contents[:1] + contents[2:] == ["3", "7", "slept", "kept", "v", "(nothing)"]
    assert order == (*((index, f"step {step}") for index in (0, 2) for step in range(3)), (3, "sleeping"))
    assert "two" in files
    assert seconds == 2.0


def test_every_trace_of_a_batch_on_a_record_ends_alike() -> None:
    """Not a sample: one execution of each, and there are few."""

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_record(), trusted=True)]) as tools:
            calls = [("x__add", {"a": 1, "b": 2}), ("x__get", {"key": "k"}), ("x__put", {"key": "k", "value": "v"})]
            return tuple(result.content for result in (await run(tools, *calls)).results)

    report = sim.explore(program, sim.DPOR(), lambda one: invariants.check(one.trace) or None, max_executions=1_000)
    assert report.complete
    assert list(report.outcomes) == [("3", "v", "kept")]


@pytest.mark.seldom
@pytest.mark.skipif(bool(FIRST), reason="version 1 of the SDK tells progress in order")
def test_sdk_alone_tells_progress_in_any_order() -> None:
    """Why progress is taken from the stream: the SDK starts a task for each message, and they change places."""
    from mcp.client import Client

    async def program() -> tuple[str | None, ...]:
        seen: list[str | None] = []

        async def told(progress: float, total: float | None, message: str | None) -> None:
            seen.append(message)

        async with Client(_server_of_this_process(), mode="legacy") as client:
            await client.call_tool("add", {"a": 1, "b": 2}, progress_callback=told)
        return tuple(seen)

    report = sim.explore(program, sim.Random(sim.RandomWalk(seed=1), 60))
    assert len(report.outcomes) > 1


@pytest.mark.seldom
def test_cancel_at_any_step_is_truthful_and_the_session_goes_on() -> None:
    """Cancelled wherever the explorer likes: what was answered is kept, and the next batch is answered."""

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_server_of_this_process())]) as tools:
            runtime = Runtime(Registry(tools))
            with trio.move_on_after(1.0):
                async with runtime.open_batch() as batch:
                    for call in calls_of(("x__add", {"a": 1, "b": 2}), ("x__nap", {"seconds": 9.0})):
                        batch.submit(call)
                    batch.seal()
                    async for _ in batch:
                        pass
            outcomes = tuple(result.outcome for result in batch.outcome.results)
            after = (await run(tools, ("x__add", {"a": 2, "b": 2}), ("x__get", {"key": "cancelled"}))).results
            return outcomes, after[0].content, after[1].content, tools.servers["x"].starts

    report = sim.explore(
        program,
        sim.Random(sim.RandomWalk(seed=2), 300 if FULL else 40),
        lambda one: invariants.check(one.trace) or None,
    )
    assert not report.failures
    assert list(report.outcomes) == [((Outcome.OK, Outcome.INTERRUPTED), "4", "yes", 1)]


@pytest.mark.seldom
def test_crash_of_a_record_ends_alike_under_every_schedule() -> None:
    """A read that runs on a server which dies is sent again and answered, whoever is first."""

    async def program() -> Any:
        server = mcp.McpServer("x", server=_record(), trusted=True, restarts=10)
        async with mcp.connect([server]) as tools:
            results: dict[str, Any] = {}

            async def one(name: str, input: dict[str, Any]) -> None:
                # A runtime each, so that they overlap: the server is all they share.
                async with Runtime(Registry(tools)).open_batch(batch_id=name) as batch:
                    batch.submit(ToolCall("1", name, input))
                [results[name]] = batch.outcome.results

            async with trio.open_nursery() as nursery:
                for name, input in (("x__add", {"a": 1, "b": 2}), ("x__get", {"key": "k"}), ("x__die", {"status": 1})):
                    nursery.start_soon(one, name, input)
            return tuple((name, results[name].outcome, results[name].content) for name in sorted(results))

    report = sim.explore(
        program,
        sim.Random(sim.RandomWalk(seed=3), 2_000 if FULL else 150),
        lambda one: invariants.check(one.trace) or None,
    )
    assert not report.failures
    expected = (("x__add", Outcome.OK, "3"), ("x__die", Outcome.ERROR, None), ("x__get", Outcome.OK, "v"))
    assert list(report.outcomes) == [expected]


def test_crash_of_a_record_meets_all_that_runs() -> None:
    """As that of a program does."""

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_record())]) as tools:
            results: list[Any] = []

            async def wait() -> None:
                results.extend((await run(tools, ("x__nap", {"seconds": 60.0}))).results)

            async with trio.open_nursery() as nursery:
                nursery.start_soon(wait)
                await trio.sleep(1)
                results.extend((await run(tools, ("x__die", {"status": 1}), ("x__add", {"a": 1, "b": 1}))).results)
        return sorted(str(result.error or result.content) for result in results), trio.current_time()

    lost = "MCP server 'x': the connection was lost while the call ran; effects may have landed"
    assert sim.run(program).value == (["2", lost, lost], 1.0)


def test_server_that_crashes_in_a_row_is_started_after_growing_pauses() -> None:
    """At once, then after a quarter of a second, then twice that; in virtual time."""

    async def program() -> Any:
        seconds = []
        async with mcp.connect([mcp.McpServer("x", server=_record(), restarts=5)]) as tools:
            for _ in range(7):
                before = trio.current_time()
                result = (await run(tools, ("x__die", {"status": 1}))).results[0]
                seconds.append((trio.current_time() - before, "given up" in result.error))
        return seconds

    assert sim.run(program).value == [
        (0.0, False), (0.0, False), (0.25, False), (0.5, False), (1.0, False), (2.0, False), (0.0, True),
    ]  # fmt: skip


def test_recorded_server_takes_its_time() -> None:
    """Virtual seconds, spread over the progress; a time limit is its own execution's."""

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_record(), timeout=2.0)]) as tools:
            done = await run(tools, ("x__nap", {"seconds": 1.5}), ("x__nap", {"seconds": 5.0}))
            return [result.outcome for result in done.results], trio.current_time()

    assert sim.run(program).value == ([Outcome.OK, Outcome.TIMED_OUT], 3.5)


def test_read_only_tool_is_ordered_with_the_owners_files() -> None:
    """With a workspace as owner a read waits for an earlier edit; without one it waits for nothing."""

    async def program(owned: bool) -> float:
        workspace = Workspace(MemoryDisk({"a.txt": "one\n"}))
        record = RecordedMcpServer(
            [Offered("look", hints=Hints(read_only=True))], {"look": lambda given: RecordedAnswer("seen", seconds=1.0)}
        )
        server = mcp.McpServer("x", server=record, trusted=True)
        async with mcp.connect([server], owner=workspace if owned else None) as tools:
            runtime = Runtime(Registry([*workspace.tools(), *tools]))
            calls = calls_of(("x__look", {}), ("write_file", {"path": "b.txt", "content": "b"}), ("x__look", {}))
            await runtime.run(calls)
        return trio.current_time()

    assert sim.run(lambda: program(True)).value == 2.0
    assert sim.run(lambda: program(False)).value == 1.0


def test_rules_about_paths_do_not_speak_of_a_servers_tools() -> None:
    """Trusted or not: only a rule without a path does."""
    from toolrt import Permissions, Rule

    async def program(trusted: bool, path: str | None) -> Outcome:
        workspace = Workspace(MemoryDisk({"a.txt": "one\n"}))
        permissions = Permissions(workspace, [Rule("*", path, "deny")], default="allow")
        server = mcp.McpServer("x", server=_record(), trusted=trusted)
        async with mcp.connect([server], owner=workspace) as tools:
            runtime = Runtime(Registry([*workspace.tools(), *tools]), approve=permissions)
            return (await runtime.run(calls_of(("x__get", {"key": "k"})))).results[0].outcome

    for trusted in (False, True):
        assert sim.run(lambda trusted=trusted: program(trusted, "**/a.txt")).value is Outcome.OK
        assert sim.run(lambda trusted=trusted: program(trusted, None)).value is Outcome.DENIED


def test_simulation_refuses_a_program_and_says_what_to_do() -> None:
    """No process is started; the text names the double."""

    async def program() -> None:
        async with mcp.connect([proper()]):
            raise AssertionError

    error = sim.run(program).error
    assert isinstance(error, NotSimulated)
    assert "McpServer(name, server=...)" in str(error)


def test_call_without_a_record_is_told() -> None:
    """The double never guesses."""

    async def program() -> Any:
        async with mcp.connect([mcp.McpServer("x", server=_record())]) as tools:
            return (await run(tools, ("x__get", {"key": "other"}))).results[0]

    result = sim.run(program).value
    assert result.outcome is Outcome.ERROR
    assert 'expected recorded arguments, recorded are: {"key": "k"}' in result.error


def test_record_that_cannot_be_is_refused() -> None:
    """Answers of tools that it does not offer, content that is no content, and no number of seconds."""
    with pytest.raises(DefinitionRefused, match="names of its tools"):
        RecordedMcpServer(TOOLS, {"nobody": []})
    with pytest.raises(DefinitionRefused, match="content blocks"):
        RecordedAnswer([1])
    with pytest.raises(DefinitionRefused, match="seconds, 0 or more"):
        RecordedAnswer(seconds=-1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"name": "a b"}, "1 to 32 letters"),
        ({"name": "a", "command": "my-server --x"}, "one each"),
        ({"name": "a", "command": []}, "one each"),
        ({"name": "a"}, "either a command or a server"),
        ({"name": "a", "command": ["x"], "server": object()}, "either a command or a server"),
        ({"name": "a", "command": ["x"], "timeout": 0}, "seconds above 0"),
        ({"name": "a", "command": ["x"], "start_timeout": None}, "seconds above 0"),
        ({"name": "a", "command": ["x"], "restarts": -1}, "a whole number"),
        ({"name": "a", "command": ["x"], "output_limit": 1}, "2 or more"),
        ({"name": "a", "command": ["x"], "env": {"A": 1}}, "texts by name"),
        ({"name": "a", "command": ["x"], "trusted": "yes"}, "a bool"),
        ({"name": "a", "command": ["x"], "only": "x"}, "a list of the server's tool names"),
    ],
)
def test_server_that_cannot_be_is_refused(options: dict[str, Any], said: str) -> None:
    """Where it is defined."""
    with pytest.raises(DefinitionRefused) as refused:
        mcp.McpServer(**options)
    assert said in str(refused.value)


def test_what_is_no_server_is_refused() -> None:
    """By `connect`, before anything is started."""
    with pytest.raises(DefinitionRefused, match="a list of McpServer"):
        mcp.connect(["my-server"])  # type: ignore[list-item]
    with pytest.raises(DefinitionRefused, match="claim_table"):
        mcp.connect([], owner=7)

    async def main() -> None:
        async with mcp.connect([mcp.McpServer("x", server=7)]):
            raise AssertionError

    with pytest.raises(DefinitionRefused, match="an MCPServer or Server"):
        trio.run(main)
