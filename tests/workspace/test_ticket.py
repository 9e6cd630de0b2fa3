"""The mutation ticket, under its own words: its five focused tests, its acceptance conditions, its requirements.

The words are those of the ticket (the seed in Japanese); the headings below quote it.  Each test holds on a real
directory with real threads, again and again, and on the twin under many schedules.
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from tests.workspace._everywhere import Everywhere, everywhere
from toolrt import WRITE, Registry, Runtime, State, ToolCall, sim
from toolrt.workspace import HardLink, MemoryDisk, RealDisk, Symlink, Workspace


def edit(path: str, old: str, new: str) -> Any:
    return "edit_file", {"path": path, "old": old, "new": new}


def write(path: str, content: str) -> Any:
    return "write_file", {"path": path, "content": content}


def read(path: str) -> Any:
    return "read_file", {"path": path}


#: Edits of which each finds its place only when those before it have been made.
CHAIN = [edit("a.txt", f"<{number}>", f"<{number + 1}>") for number in range(6)]

START = {"a.txt": "<0>"}


# Focused tests.


def test_same_batch_same_file_multiple_edit_order() -> None:
    """`same-batch same-file multiple Edit order`: six edits that depend on each other all find their place."""
    ending = everywhere(START, *CHAIN)
    assert ending.outcomes == ["ok"] * 6
    assert ending.files == {"a.txt": b"<6>"}


def test_same_batch_same_file_multiple_edit_order_against_the_dependence() -> None:
    """The order is that of call_index, also where another would let more of the edits succeed."""
    ending = everywhere(START, *CHAIN[::-1])
    assert ending.outcomes == ["error"] * 5 + ["ok"]
    assert ending.files == {"a.txt": b"<1>"}


def test_same_batch_same_file_write_and_edit_order() -> None:
    """`same-batch same-file Write + Edit order`: the write in the middle decides what the edits around it find."""
    ending = everywhere(
        START, CHAIN[0], write("a.txt", "<3>"), CHAIN[3], CHAIN[1], write("a.txt", "<5>"), CHAIN[5], read("a.txt")
    )
    assert ending.outcomes == ["ok", "ok", "ok", "error", "ok", "ok", "ok"]
    assert ending.results[-1][1] == "<6>"


def test_different_file_mutations_remain_concurrent() -> None:
    """`different-file mutations remain concurrent`: each waits until all others are in the middle of theirs."""
    names = [f"{name}.txt" for name in "abcd"]

    async def program(workspace: Workspace) -> None:
        inside, all_inside = 0, trio.Event()

        @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
        async def meet(ctx: Any, path: str) -> None:
            nonlocal inside
            inside += 1
            if inside == len(names):
                all_inside.set()
            await all_inside.wait()

        calls = [ToolCall(name, "meet", {"path": name}) for name in names]
        done = await Runtime(Registry([meet])).run(calls, State())
        assert [result.outcome.value for result in done.results] == ["ok"] * 4

    report = sim.explore(
        lambda: program(Workspace(MemoryDisk(START))),
        sim.Random(sim.RandomWalk(seed=1), 60),
        check=lambda execution: execution.error is None,
    )
    assert report.verdict is sim.PASS


@pytest.mark.parametrize("kind", ["write_file", "edit_file"])
def test_different_file_mutations_overlap_with_the_tools_themselves(kind: str) -> None:
    """Every mutation of the workspace's own is under way before any has ended, under some schedule."""
    names = [f"{name}.txt" for name in "abc"]
    calls = [
        ToolCall(n, *((edit if kind == "edit_file" else lambda n, *_: write(n, "x"))(n, "<0>", "x"))) for n in names
    ]

    async def program() -> None:
        workspace = Workspace(MemoryDisk(dict.fromkeys(names, "<0>")))
        await Runtime(Registry(workspace.tools())).run(calls, State())

    most = 0
    for seed in range(40):
        running = 0
        for event in sim.run(program, sim.RandomWalk(seed=seed)).trace.events:
            running += (event.kind == "file.mutation_began") - (event.kind == "file.mutation_ended")
            most = max(most, running)
    assert most == len(names)


def test_failed_mutation_releases_the_per_file_guard() -> None:
    """`failed mutation releases the per-file guard`: what comes after a failed edit of the file is done."""
    ending = everywhere(START, edit("a.txt", "absent", "x"), CHAIN[0], edit("a.txt", "", "x"), CHAIN[1], read("a.txt"))
    assert ending.outcomes == ["error", "ok", "error", "ok", "ok"]
    assert ending.results[-1][1] == "<2>"


@pytest.mark.seldom
def test_path_normalization_equivalence() -> None:
    """`path normalization/equivalence case`: seven names of one file are one boundary."""
    content = {
        "a.txt": "<0>",
        "link": Symlink("a.txt"),
        "chain": Symlink("link"),
        "way": Symlink("."),
        "d/up": Symlink(".."),
        "hard": HardLink("a.txt"),
    }
    names = ["./a.txt", "{root}/a.txt", "d/../a.txt", "chain", "way/a.txt", "d/up/a.txt", "hard"]
    calls = [edit(name, f"<{number}>", f"<{number + 1}>") for number, name in enumerate(names)]
    ending = everywhere(content, *calls, read("a.txt"))
    assert ending.outcomes == ["ok"] * 8
    assert ending.results[-1][1] == "<7>"


def test_path_normalization_equivalence_before_the_file_exists() -> None:
    """A file that the first call creates has the same boundary before and after, by every name."""
    content = {"d/x": "", "way": Symlink("d"), "dangling": Symlink("d/new")}
    ending = everywhere(
        content,
        write("way/new", "<0>"),
        edit("d/new", "<0>", "<1>"),
        edit("dangling", "<1>", "<2>"),
        read("d/../way/new"),
    )
    assert ending.outcomes == ["ok"] * 4
    assert ending.results[-1][1] == "<2>"


# Acceptance conditions.


def test_acceptance_edits_of_one_file_run_in_call_index_order() -> None:
    """Several Edits of one file in one batch are executed in ascending call_index, one after the other."""

    async def program() -> None:
        workspace = Workspace(MemoryDisk(START))
        calls = [ToolCall(f"{number}", *call) for number, call in enumerate(CHAIN)]
        await Runtime(Registry(workspace.tools())).run(calls, State())

    for seed in range(60):
        events = sim.run(program, sim.RandomWalk(seed=seed)).trace.events
        order = [(e.kind[-5:], e.fields["call"]) for e in events if e.kind.startswith("file.mutation")]
        assert order == [(what, number) for number in range(6) for what in ("began", "ended")]


def test_acceptance_write_and_edit_share_one_boundary() -> None:
    """Write and Edit of one file conflict with each other exactly as each does with itself."""
    workspace = Workspace(MemoryDisk(START))
    tools = {tool.name: tool for tool in workspace.tools()}
    claims = [
        tools[name].claims_for(input, State()) for name, input in (write("a.txt", ""), edit("./a.txt", "<0>", "x"))
    ]
    assert claims[0][0] == claims[1][0]
    assert claims[0][0].mode is WRITE


def test_acceptance_different_files_stay_parallel() -> None:
    """Edits and Writes of different files wait for nothing."""

    async def program() -> list[Any]:
        workspace = Workspace(MemoryDisk({"a": "<0>", "d/b": "<0>"}))
        async with Runtime(Registry(workspace.tools())).open_batch(State()) as batch:
            for number, call in enumerate(
                [edit("a", "<0>", "x"), write("c", "x"), edit("d/b", "<0>", "x"), write("d/e", "")]
            ):
                batch.submit(ToolCall(str(number), *call))
            batch.seal()
            async for _ in batch:
                pass
            return [call.waited for call in batch.calls]

    assert sim.run(program).value == [0, 0, 0, 0]


def test_acceptance_worker_owns_no_file_policy() -> None:
    """The runtime and the order know claims; no module of theirs imports the workspace or speaks of paths."""
    package = Path(toolrt.__file__).parent
    for room in ("runtime", "order"):
        for module in (package / room).glob("*.py"):
            tree = ast.parse(module.read_text())
            imported = {
                name
                for node in ast.walk(tree)
                if isinstance(node, ast.Import | ast.ImportFrom)
                for name in (
                    [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
                )
            }
            assert not {name for name in imported if "workspace" in name or name in ("os", "pathlib", "posixpath")}, (
                module
            )


def test_acceptance_worker_starts_approved_calls_in_parallel() -> None:
    """Approved calls of different files all start before any of them ends."""

    async def program() -> None:
        workspace = Workspace(MemoryDisk({}))
        runtime = Runtime(Registry(workspace.tools()), approve=lambda request: True)
        await runtime.run([ToolCall(str(n), *write(f"{n}.txt", "x")) for n in range(5)], State())

    kinds = [e.kind for e in sim.run(program).trace.events if e.kind in ("call.started", "call.ended")]
    assert kinds == ["call.started"] * 5 + ["call.ended"] * 5


def test_acceptance_error_in_a_mutation_releases_the_guard() -> None:
    """However a tool of one's own breaks off in the middle of a file, the calls after it do not wait for ever."""

    def breaking(workspace: Workspace) -> list[toolrt.Tool]:
        @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
        async def break_off(ctx: Any, path: str) -> None:
            await trio.lowlevel.checkpoint()
            raise ExceptionGroup("several", [RuntimeError("one"), ValueError("two")])

        @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
        def break_off_in_a_thread(ctx: Any, path: str) -> None:
            raise RuntimeError("panic")

        return [break_off, break_off_in_a_thread]

    calls = [("break_off", {"path": "a.txt"}), ("break_off_in_a_thread", {"path": "a.txt"}), CHAIN[0]]
    ending = everywhere(START, *calls, more=breaking)
    assert ending.outcomes == ["error", "error", "ok"]


# Requirements.


@pytest.mark.seldom
@pytest.mark.parametrize("how", ["disk", "cancel", "timeout"])
def test_requirement_no_lock_stays_after_timeout_or_drop(how: str) -> None:
    """After a fault of the disk, a cancel or a timeout at any step, the next mutation of the file goes through."""

    async def program(at: int) -> bool:
        step = 0

        def fault(effect: str, path: str) -> None:
            nonlocal step
            step += 1
            if how == "disk" and step == at:
                raise OSError(5, "broken")

        workspace = Workspace(MemoryDisk(START, fault=fault))
        runtime = Runtime(Registry(workspace.tools()))
        with trio.CancelScope() as scope:

            async def cancel() -> None:
                for _ in range(at):
                    await trio.lowlevel.checkpoint()
                scope.cancel()

            async with trio.open_nursery() as nursery:
                if how == "cancel":
                    nursery.start_soon(cancel)
                if how == "timeout":
                    scope.deadline = trio.current_time() + at / 10
                await runtime.run([ToolCall(str(n), *call) for n, call in enumerate(CHAIN)], State())
                nursery.cancel_scope.cancel()
        step = 10**9
        done = await runtime.run([ToolCall("next", *write("a.txt", "after"))], State())
        assert done.results[0].outcome.value == "ok"
        assert workspace.claim_table.statistics()["groups"] == 0
        assert workspace.snapshot() == {"a.txt": b"after"}
        return scope.cancelled_caught

    for at in range(30):
        for seed in range(4):
            execution = sim.run(lambda at=at: program(at), sim.RandomWalk(seed=seed))
            assert execution.error is None, (at, seed, execution.error)


def test_requirement_failure_stays_with_the_call() -> None:
    """Only the call that failed has an error; other files, and the same file later, are changed."""
    calls = [
        edit("a.txt", "absent", ""),
        write("b.txt", "b"),
        CHAIN[0],
        edit("missing.txt", "x", "y"),
        write("c.txt", "c"),
    ]
    ending = everywhere(START, *calls)
    assert ending.outcomes == ["error", "ok", "ok", "error", "ok"]
    assert ending.files == {"a.txt": b"<1>", "b.txt": b"b", "c.txt": b"c"}


def test_requirement_different_batches_never_lose_a_mutation() -> None:
    """Two batches, each on a runtime of its own, add to one file at the same time: every addition is there."""

    async def program(workspace: Workspace) -> None:
        async def batch(name: str) -> None:
            runtime = Runtime(Registry(workspace.tools()))
            calls = [ToolCall(f"{name}{n}", *edit("a.txt", "|", f"{name}{n}|")) for n in range(3)]
            done = await runtime.run(calls, State())
            assert [result.outcome.value for result in done.results] == ["ok"] * 3

        async with trio.open_nursery() as nursery:
            nursery.start_soon(batch, "x")
            nursery.start_soon(batch, "y")
        text = workspace.snapshot()["a.txt"]
        # Within a batch the order is that of its calls; and between them each batch takes its place as a whole.
        assert text in (b"x0x1x2y0y1y2|", b"y0y1y2x0x1x2|")

    found = set()

    def check(execution: sim.Execution) -> bool:
        found.add(repr(execution.error))
        return execution.error is None

    report = sim.explore(
        lambda: program(Workspace(MemoryDisk({"a.txt": "|"}))), sim.Random(sim.RandomWalk(seed=1), 60), check
    )
    assert report.verdict is sim.PASS, found


def test_requirement_different_batches_on_a_real_directory(tmp_path: Path) -> None:
    """The same with real threads."""
    (tmp_path / "a.txt").write_text("|")
    workspace = Workspace(RealDisk(tmp_path))

    async def batch(name: str) -> None:
        calls = [ToolCall(f"{name}{n}", *edit("a.txt", "|", f"{name}{n}|")) for n in range(5)]
        done = await Runtime(Registry(workspace.tools())).run(calls, State())
        assert [result.outcome.value for result in done.results] == ["ok"] * 5

    async def program() -> None:
        async with trio.open_nursery() as nursery:
            for name in "wxyz":
                nursery.start_soon(batch, name)

    trio.run(program)
    text = (tmp_path / "a.txt").read_text()
    parts = sorted(text[at : at + 10] for at in range(0, 40, 10))
    assert parts == ["".join(f"{name}{n}" for n in range(5)) for name in "wxyz"]


def test_requirement_diagnostics_name_call_and_batch_and_no_private_path() -> None:
    """What is reported of a mutation names batch, call and the file below the root, and nothing above it."""

    async def program() -> None:
        workspace = Workspace(MemoryDisk(START, root="/home/private/repo"))
        await Runtime(Registry(workspace.tools())).run([ToolCall("id", *CHAIN[0])], State())

    trace = sim.run(program).trace
    began = next(event for event in trace.events if event.kind == "file.mutation_began")
    assert began.fields["batch"]
    assert (began.fields["call"], began.fields["file"]) == (0, "a.txt")
    assert "private" not in trace.to_json()


# Not goals.


def test_non_goal_nothing_makes_a_whole_response_sequential() -> None:
    """A batch in which two calls conflict still runs all others at once."""
    calls = [*CHAIN[:2], write("b.txt", ""), write("c.txt", ""), read("d.txt")]

    async def program() -> None:
        workspace = Workspace(MemoryDisk({**START, "d.txt": ""}))
        await Runtime(Registry(workspace.tools())).run(
            [ToolCall(str(number), *call) for number, call in enumerate(calls)], State()
        )

    started = []
    for event in sim.run(program).trace.events:
        if event.kind == "call.ended":
            break
        if event.kind == "call.started":
            started.append(event.fields["call"])
    assert started == [0, 2, 3, 4]


def test_everywhere_would_notice_a_batch_without_order() -> None:
    """What these tests stand on: tools that claim nothing lose edits, and that is found."""

    def careless(workspace: Workspace) -> list[toolrt.Tool]:
        edit_file = next(tool for tool in workspace.tools() if tool.name == "edit_file")

        @toolrt.tool(safe=True, owner=workspace)
        async def careless_edit(ctx: Any, path: str, old: str, new: str) -> None:
            content = await workspace.disk.read(("a.txt",), 100)
            text = getattr(content, "content", content).decode().replace(old, new)
            await trio.lowlevel.checkpoint()
            assert edit_file
            workspace.disk.put("a.txt", text)  # type: ignore[attr-defined]

        return [careless_edit]

    calls = tuple(("careless_edit", input) for _, input in CHAIN[:3])
    with pytest.raises(AssertionError):
        Everywhere(START, calls, careless).on_the_twin()
