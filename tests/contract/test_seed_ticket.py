"""The first seed: a ticket, in Japanese, that asks for ordered changes of one file within one batch.

Rules.  One test for each sentence; the docstring quotes it in English.  The ticket's Worker is the runtime here, its
guard, queue or mutex are tickets on claims, and its ToolExecutionContext is `ToolContext`.  Public names only: the
inside may change, and these tests stay as they are.

Limits.  Not held: what the ticket asks of its own repository (cargo, its ticket tool), and that it wants no
lock between processes or machines.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

import pytest
import trio

import toolrt
from tests.contract._every import Overlap, batch, calls_of, edit, every, is_free, read, streamed, write
from toolrt import WRITE, Claim, MemoryDisk, Outcome, Registry, Runtime, State, ToolCall, ToolContext, Workspace, sim
from toolrt.workspace import HardLink, Planted, RealDisk, Symlink

#: Edits that each find their place only when all before them have been made.
CHAIN = [edit("a.txt", f"<{number}>", f"<{number + 1}>") for number in range(5)]
START = {"a.txt": "<0>"}


# Background


async def test_background_approved_calls_run_in_parallel(autojump_clock: Any) -> None:
    """Four approved calls are inside their tool at once.

    Seed: "The LLM worker runs approved tool calls in parallel. This is to be kept."
    """
    inside = Overlap()

    @toolrt.tool(safe=True)
    async def look(ctx: ToolContext, number: int) -> None:
        inside.enter(number)
        await trio.sleep(1)
        inside.leave(number)

    runtime = Runtime(Registry([look]), approve=lambda request: True)
    await runtime.run(calls_of(*[("look", {"number": number}) for number in range(4)]))
    assert inside.most == 4


def test_background_order_is_never_left_to_chance() -> None:
    """Changes of one file end alike under every schedule.

    Seed: "When several Edit, Write or other mutation calls of one response name the same file, the order of
    execution is nondeterministic, and changes in another order than the model meant, failures and partial changes
    can happen."
    """
    outcomes, _, files = batch(START, CHAIN[0], write("a.txt", "<1> anew"), edit("a.txt", "anew", "again"))
    assert outcomes == ["ok", "ok", "ok"]
    assert files == {"a.txt": b"<1> again"}


def test_background_each_call_is_given_call_id_batch_id_and_call_index() -> None:
    """A tool sees its own three identities, whatever runs beside it.

    Seed: "Each tool call is handed call_id, batch_id and call_index; so the tool can refer to the order within the
    response and to the identity of the batch."
    """

    @toolrt.tool(safe=True)
    async def who(ctx: ToolContext) -> tuple[str, str, int]:
        await trio.lowlevel.checkpoint()
        return ctx.call_id, ctx.batch_id, ctx.call_index

    async def program() -> Any:
        runtime = Runtime(Registry([who]))
        async with runtime.open_batch(batch_id="the batch") as opened:
            for number in range(3):
                opened.submit(ToolCall(f"toolu_{number}", "who", {}))
        return tuple(result.content for result in opened.outcome.results)

    assert every(program) == tuple((f"toolu_{number}", "the batch", number) for number in range(3))


# Goal


def test_goal_mutations_of_one_file_are_serialised_in_call_index_order() -> None:
    """Edits that depend on each other all find their place.

    Seed: "Mutations of one target file do not conflict: the tool serialises them, and within one batch they are
    worked off in the order of call_index that the model returned."
    """
    outcomes, _, files = batch(START, *CHAIN)
    assert outcomes == ["ok"] * 5
    assert files == {"a.txt": b"<5>"}


# Requirements


async def test_requirement_runtime_has_no_policy_for_files(autojump_clock: Any) -> None:
    """Two tools that take one path and claim nothing overlap: the runtime reads no path.

    Seed: "The worker has no resource scheduling policy and no scheduler per file."
    """
    inside = Overlap()

    @toolrt.tool(safe=True)
    async def scribble(ctx: ToolContext, path: str) -> None:
        inside.enter(ctx.call_index)
        await trio.sleep(1)
        inside.leave(ctx.call_index)

    await Runtime(Registry([scribble])).run(calls_of(("scribble", {"path": "a.txt"}), ("scribble", {"path": "a.txt"})))
    assert inside.most == 2


async def test_requirement_what_is_claimed_is_the_tools_business(autojump_clock: Any) -> None:
    """Whatever a tool claims is ordered, also when it is no file.

    Seed: "The file mutation tools, Edit and Write, have the guard."
    """
    inside = Overlap()

    @toolrt.tool(claims=lambda input, state: [Claim(("printer", input["name"]), WRITE)])
    async def print_page(ctx: ToolContext, name: str) -> None:
        inside.enter(ctx.call_index)
        await trio.sleep(1)
        inside.leave(ctx.call_index)

    names = ["one", "one", "two", "one"]
    began = trio.current_time()
    await Runtime(Registry([print_page])).run(calls_of(*[("print_page", {"name": name}) for name in names]))
    assert inside.most == 2
    assert trio.current_time() - began == 3


def test_requirement_guard_is_per_canonical_target() -> None:
    """Names of one file claim the same, names of two files do not.

    Seed: "... a mutation guard, queue or mutex for each canonical target file path."
    """
    workspace = Workspace(MemoryDisk({**START, "link": Symlink("a.txt"), "b.txt": ""}))
    of = {name: workspace.claims(name, State(), WRITE)[0] for name in ("a.txt", "./a.txt", "link", "b.txt")}
    assert of["a.txt"] == of["./a.txt"] == of["link"] != of["b.txt"]


def test_requirement_same_batch_and_file_run_in_ascending_call_index() -> None:
    """The order is that of the calls, also where another would let more of them succeed.

    Seed: "Several mutations with the same batch_id and the same target file are executed in ascending call_index."
    """
    outcomes, _, files = batch(START, *CHAIN[::-1])
    assert outcomes == ["error"] * 4 + ["ok"]
    assert files == {"a.txt": b"<1>"}


async def test_requirement_different_files_are_not_serialised_needlessly(autojump_clock: Any) -> None:
    """Calls on four files start without waiting.

    Seed: "Mutations of different files are not serialised needlessly."
    """
    workspace = Workspace(MemoryDisk({"a.txt": "x", "b.txt": "x"}))
    async with Runtime(Registry(workspace.tools())).open_batch() as opened:
        named = (edit("a.txt", "x", "y"), edit("b.txt", "x", "y"), write("c.txt", ""), write("d/e.txt", ""))
        calls = [opened.submit(call) for call in calls_of(*named)]
        opened.seal()
        async for _ in opened:
            pass
    assert [call.waited for call in calls] == [0, 0, 0, 0]


def test_requirement_other_batches_exclude_each_other() -> None:
    """Of two batches that add to one file each takes its place as a whole.

    Seed: "Mutations of one file with different batch_ids keep an exclusion that does not break."
    """

    async def program() -> bool:
        workspace = Workspace(MemoryDisk({"a.txt": "|"}))

        async def one(name: str) -> None:
            named = [edit("a.txt", "|", f"{name}{number}|") for number in range(2)]
            done = await Runtime(Registry(workspace.tools())).run(calls_of(*named))
            assert [result.outcome for result in done.results] == [Outcome.OK] * 2

        async with trio.open_nursery() as nursery:
            nursery.start_soon(one, "x")
            nursery.start_soon(one, "y")
        return workspace.snapshot()["a.txt"] in (b"x0x1y0y1|", b"y0y1x0x1|")

    assert every(program) is True


def test_requirement_reason_for_the_order_of_batches_is_recorded() -> None:
    """A decision says how batches are ordered.

    Seed: "Whether a strict global order is needed or a plain mutex per file will do is decided when it is built,
    and the reason is recorded."
    """
    page = Path(__file__).parents[2] / "docs" / "decisions" / "001-cross-batch-order.md"
    assert "ticket" in page.read_text(encoding="utf-8")


def test_requirement_edit_and_write_share_one_boundary() -> None:
    """Edits see the writes before them and writes replace the edits before them.

    Seed: "Where Edit and Write have the same file as their target, they are on the same mutation boundary for that
    file, too."
    """
    outcomes, contents, _ = batch(
        START, write("a.txt", "<7>"), edit("./a.txt", "<7>", "<8>"), write("./a.txt", "<9>"), read("a.txt")
    )
    assert outcomes == ["ok"] * 4
    assert contents[-1] == "<9>"


@pytest.mark.parametrize("other", ["./a.txt", "d/../a.txt", "/workspace/a.txt", "link", "chain", "way/a.txt", "hard"])
def test_requirement_names_of_one_file_are_one(other: str) -> None:
    """An edit by another name finds what the edit before it left.

    Seed: "Relative and absolute paths, `..` and symlinks that point to the same real file: how they are treated is
    stated."
    """
    content: dict[str, Planted] = {
        **START,
        "d/x": "",
        "link": Symlink("a.txt"),
        "chain": Symlink("link"),
        "way": Symlink("."),
        "hard": HardLink("a.txt"),
    }
    outcomes, _, files = batch(content, CHAIN[0], edit(other, "<1>", "<2>"), CHAIN[2])
    assert outcomes == ["ok"] * 3
    assert files["a.txt"] == b"<3>"


@pytest.mark.parametrize("path", ["../secret", "/etc/passwd", "out/secret"])
def test_requirement_canonical_paths_do_not_contradict_the_scope(path: str) -> None:
    """A name that leads out of the workspace is refused, and the other calls go on.

    Seed: "... and do not contradict the existing scope, permission and path validation."
    """
    content: dict[str, Planted] = {**START, "out": Symlink("/etc")}
    outcomes, _, files = batch(content, write(path, "x"), CHAIN[0])
    assert outcomes[0] in ("error", "invalid", "denied")
    assert outcomes[1] == "ok"
    assert files["a.txt"] == b"<1>"


@pytest.mark.parametrize("how", ["waits", "timeout", "panic", "drop"])
def test_requirement_no_lock_stays(how: str) -> None:
    """However a call that holds a file ends, the next call on the file runs.

    Seed: "No lock stays behind when a call waits in the queue, times out, panics or is dropped."
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(START))

        @toolrt.tool(claims=lambda input, state: workspace.claims("a.txt", state, WRITE), timeout=2, owner=workspace)
        async def hold(ctx: ToolContext) -> None:
            if how == "panic":
                raise ExceptionGroup("several", [RuntimeError("one"), ValueError("two")])
            await trio.sleep_forever()

        runtime = Runtime(Registry([*workspace.tools(), hold]))
        with trio.move_on_after({"waits": 1, "drop": 1}.get(how, 10)):
            async with runtime.open_batch() as opened:
                opened.submit(ToolCall("holds", "hold", {}))
                if how == "waits":
                    opened.submit(ToolCall("waits", *CHAIN[0]))
        await is_free(workspace)
        (after,) = (await runtime.run([ToolCall("after", *CHAIN[0])])).results
        return [result.outcome for result in opened.outcome.results], after.outcome

    ended = {
        "waits": [Outcome.INTERRUPTED, Outcome.NOT_STARTED],
        "timeout": [Outcome.TIMED_OUT],
        "panic": [Outcome.ERROR],
        "drop": [Outcome.INTERRUPTED],
    }[how]
    execution = sim.run(program)
    assert execution.error is None
    assert execution.value == (ended, Outcome.OK)


def test_requirement_failure_is_a_clear_error_of_that_call_alone() -> None:
    """Only the calls that failed have an error, and it names the file.

    Seed: "On a failure the call in question alone returns a clear error result; mutations of other files, and the
    worker as a whole, are not stopped needlessly."
    """
    named = [edit("a.txt", "absent", "x"), write("b.txt", "b"), CHAIN[0], edit("none.txt", "x", "y"), read("b.txt")]
    outcomes, contents, files = batch(START, *named)
    assert outcomes == ["error", "ok", "ok", "error", "ok"]
    assert contents[-1] == "b"
    assert files == {"a.txt": b"<1>", "b.txt": b"b"}

    async def program() -> str:
        workspace = Workspace(MemoryDisk(START))
        (result,) = (await Runtime(Registry(workspace.tools())).run(calls_of(named[0]))).results
        return result.error or ""

    assert "a.txt" in sim.run(program).value


async def test_requirement_diagnostics_show_no_private_path(autojump_clock: Any) -> None:
    """Errors have the call's identity and no directory above the workspace.

    Seed: "call_id, batch_id and call_index are used where they help diagnostics; private paths are not exposed."
    """
    workspace = Workspace(MemoryDisk(START, root="/home/private/repo"))
    runtime = Runtime(Registry(workspace.tools()))
    named = [edit("a.txt", "absent", ""), read("none.txt"), write("../x", ""), ("edit_file", {"path": "a.txt"})]
    updates = await streamed(runtime, *calls_of(*named), batch_id="b")
    results = [update.result for update in updates if isinstance(update, toolrt.ResultReady)]
    assert [(result.call_id, result.call_index) for result in results] == [(f"toolu_{n}", n) for n in range(4)]
    assert all(result.error and "private" not in result.error for result in results)


# Not goals


def test_non_goal_no_switch_that_makes_calls_sequential_stands_in_for_order() -> None:
    """The runtime has no such option.

    Seed: "Not a goal: to introduce parallel_tool_calls=false."
    """
    assert "parallel_tool_calls" not in inspect.signature(Runtime).parameters
    with pytest.raises(TypeError):
        Runtime(Registry([]), parallel_tool_calls=False)  # type: ignore[call-arg]


@pytest.mark.parametrize("what", ["approval raises", "approval denies", "observer raises"])
def test_non_goal_hooks_hold_no_locks(what: str) -> None:
    """A hook that raises or denies leaves no lock behind.

    Seed: "Not a goal: to have hooks or interceptors carry the lifecycle of a lock."
    """

    class Observer:
        def event(self, kind: str, fields: Any) -> None:
            raise RuntimeError("a sink that fails")

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(START))

        def approve(request: Any) -> bool:
            if what == "approval raises":
                raise RuntimeError("no")
            return what != "approval denies"

        from toolrt.plugins.otel import Telemetry

        options: dict[str, Any] = {"approve": approve}
        if what == "observer raises":
            options["telemetry"] = Telemetry(Observer())
        done = await Runtime(Registry(workspace.tools()), **options).run(calls_of(CHAIN[0], CHAIN[1]))
        await is_free(workspace)
        return tuple(result.outcome for result in done.results)

    wanted = Outcome.OK if what == "observer raises" else Outcome.DENIED
    assert every(program, 10) == (wanted, wanted)


async def test_non_goal_not_every_tool_is_serialised(autojump_clock: Any) -> None:
    """Two calls conflict; all others of the batch run at once.

    Seed: "Not goals: to serialise all tools; to return to sequential execution of the whole response."
    """
    inside = Overlap()

    @toolrt.tool(claims=lambda input, state: [Claim(("thing", input["name"]), WRITE)])
    async def work(ctx: ToolContext, name: str) -> None:
        inside.enter(ctx.call_index)
        await trio.sleep(1)
        inside.leave(ctx.call_index)

    began = trio.current_time()
    await Runtime(Registry([work])).run(calls_of(*[("work", {"name": name}) for name in ("a", "a", "b", "c", "d")]))
    assert inside.most == 4
    assert trio.current_time() - began == 2


# Acceptance conditions: focused tests


def test_focused_same_batch_same_file_multiple_edit_order() -> None:
    """Five edits in a chain leave what the last one writes.

    Seed: "same-batch same-file multiple Edit order"
    """
    outcomes, contents, _ = batch(START, *CHAIN, read("a.txt"))
    assert outcomes == ["ok"] * 6
    assert contents[-1] == "<5>"


def test_focused_same_batch_same_file_write_and_edit_order() -> None:
    """The write in the middle decides what the edits around it find.

    Seed: "same-batch same-file Write + Edit order"
    """
    outcomes, contents, _ = batch(
        START, CHAIN[0], write("a.txt", "<3>"), CHAIN[3], CHAIN[1], write("a.txt", "end"), read("a.txt")
    )
    assert outcomes == ["ok", "ok", "ok", "error", "ok", "ok"]
    assert contents[-1] == "end"


def test_focused_different_file_mutations_remain_concurrent() -> None:
    """Each call waits in the middle until all others are there, too.

    Seed: "different-file mutations remain concurrent"
    """

    async def program() -> Any:
        workspace = Workspace(MemoryDisk(START))
        inside, met = [], trio.Event()

        @toolrt.tool(claims=lambda input, state: workspace.claims(input["path"], state, WRITE), owner=workspace)
        async def meet(ctx: ToolContext, path: str) -> None:
            inside.append(path)
            if len(inside) == 3:
                met.set()
            await met.wait()

        named = [("meet", {"path": path}) for path in ("a.txt", "b.txt", "d/c.txt")]
        done = await Runtime(Registry([meet])).run(calls_of(*named))
        return tuple(result.outcome for result in done.results)

    assert every(program) == (Outcome.OK,) * 3


def test_focused_failed_mutation_releases_the_per_file_guard() -> None:
    """The edit after a failed one is made.

    Seed: "failed mutation releases the per-file guard / mutations after it do not wait for ever"
    """
    outcomes, contents, _ = batch(START, edit("a.txt", "absent", "x"), CHAIN[0], edit("a.txt", "", ""), read("a.txt"))
    assert outcomes == ["error", "ok", "error", "ok"]
    assert contents[-1] == "<1>"


def test_focused_path_normalization_equivalence() -> None:
    """A file has one boundary by every name, also before it exists.

    Seed: "path normalization/equivalence case"
    """
    content: dict[str, Planted] = {"d/x": "", "way": Symlink("d"), "dangling": Symlink("d/new")}
    outcomes, contents, _ = batch(
        content, write("way/new", "1"), edit("d/new", "1", "2"), edit("dangling", "2", "3"), read("d/../way/new")
    )
    assert outcomes == ["ok"] * 4
    assert contents[-1] == "3"


def test_acceptance_holds_on_a_real_directory(tmp_path: Path) -> None:
    """On a disk with threads the edits land in call order, too.

    Seed: "Where one response has several Edits of one file, they are executed in ascending call_index"
    """
    for number in range(20):
        root = tmp_path / str(number)
        root.mkdir()
        (root / "a.txt").write_text("<0>")
        workspace = Workspace(RealDisk(root))
        done = trio.run(Runtime(Registry(workspace.tools())).run, calls_of(*CHAIN))
        assert [result.outcome for result in done.results] == [Outcome.OK] * 5
        assert (root / "a.txt").read_text() == "<5>"
