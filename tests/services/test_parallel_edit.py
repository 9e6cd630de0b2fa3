"""`parallel_edit_files`: several files at once, each by a part that can touch nothing else."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st

from toolrt import MemoryDisk, Registry, Runtime, State, ToolCall, ToolOutput, Workspace, sim
from toolrt.errors import DefinitionRefused
from toolrt.invariants import require
from toolrt.invariants.oracle import run_one_by_one
from toolrt.model import ApprovalRequest, BatchOutcome, FileChanged, Outcome, Progress, Tool
from toolrt.services import parallel_edit_tool
from toolrt.testing import check_tool
from toolrt.workspace import HardLink, Symlink

FILES: dict[str, Any] = {"a.txt": "one a\n", "b.txt": "one b\n", "src/c.txt": "one c\n"}


def call(name: str, **input: Any) -> ToolCall:
    return ToolCall(name, name, input)


def edits(*paths: str, old: str = "one", new: str = "two") -> ToolCall:
    """A scripted call that makes the same edit in each file."""
    return call("parallel_edit_files", parts=[{"path": path, "edits": [{"old": old, "new": new}]} for path in paths])


def asks(*paths: str, instructions: str = "do it", **more: Any) -> ToolCall:
    """A call whose parts are given instructions."""
    return call("parallel_edit_files", parts=[{"path": path, "instructions": instructions} for path in paths], **more)


def runtime_of(workspace: Workspace, edit: Any = None, part_timeout: float | None = 300, **options: Any) -> Runtime:
    tool = parallel_edit_tool(workspace, edit, part_timeout=part_timeout)
    return Runtime(Registry([*workspace.tools(), tool]), **options)


async def answers(workspace: Workspace, asked: ToolCall, edit: Any = None, **options: Any) -> Any:
    (result,) = (await runtime_of(workspace, edit, **options).run([asked])).results
    assert result.error is None, result.error
    return result.content


async def test_scripted_edits_are_made() -> None:
    """Every file has its edit, and the answer is in the order of the parts."""
    workspace = Workspace(MemoryDisk(FILES))
    found = await answers(workspace, edits("src/c.txt", "a.txt"))
    assert [part["path"] for part in found["parts"]] == ["src/c.txt", "a.txt"]
    assert (found["done"], found["failed"]) == (2, 0)
    assert workspace.snapshot() == {"a.txt": b"two a\n", "b.txt": b"one b\n", "src/c.txt": b"two c\n"}


async def test_part_that_fails_leaves_the_others_alone() -> None:
    """It is reported in its place, with its own words."""
    workspace = Workspace(MemoryDisk({**FILES, "b.txt": "other\n"}))
    found = await answers(workspace, edits("a.txt", "b.txt", "missing.txt", "../out.txt"))
    assert [part["outcome"] for part in found["parts"]] == ["ok", "error", "error", "error"]
    assert "b.txt" in found["parts"][1]["error"]
    assert "nothing of that name" in found["parts"][2]["error"]
    assert (found["done"], found["failed"]) == (1, 3)
    assert workspace.snapshot()["a.txt"] == b"two a\n"


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.txt", "a.txt"), ("a.txt", "./a.txt"), ("a.txt", "link.txt"), ("a.txt", "hard.txt"), ("new/x", "new/../new/x")],
)
async def test_two_names_of_one_file_are_refused(one: str, other: str) -> None:
    """Before any part runs; the text has both names, and no claim was taken to change anything."""
    asked: list[Any] = []
    workspace = Workspace(MemoryDisk({**FILES, "link.txt": Symlink("a.txt"), "hard.txt": HardLink("a.txt")}))
    before = workspace.snapshot()

    def approve(request: ApprovalRequest) -> bool:
        asked.extend(claim.mode.value for claim in request.claims)
        return True

    runtime = runtime_of(workspace, approve=approve)
    (result,) = (await runtime.run([edits("b.txt", one, other)])).results
    assert result.outcome is Outcome.ERROR
    assert repr(one) in str(result.error)
    assert repr(other) in str(result.error)
    assert set(asked) == {"read"}
    assert workspace.snapshot() == before


@pytest.mark.parametrize("paths", [["a.txt"], [f"{number}.txt" for number in range(13)]])
async def test_too_few_or_too_many_parts_are_refused(paths: list[str]) -> None:
    """2 to 12."""
    (result,) = (await runtime_of(Workspace(MemoryDisk(FILES))).run([edits(*paths)])).results
    assert result.outcome in (Outcome.INVALID, Outcome.ERROR)
    assert "parts" in str(result.error)


async def test_parts_get_their_instructions_and_the_contract() -> None:
    """And a share of what the context has room for."""
    seen: list[Any] = []

    async def edit(ctx: Any, path: str, instructions: str) -> str:
        seen.append((path, instructions, ctx.state.context_budget))
        return f"done {path}"

    workspace = Workspace(MemoryDisk(FILES))
    runtime = runtime_of(workspace, edit)
    outcome = await runtime.run([asks("a.txt", "b.txt", contract="Agree.")], State(context_budget=90_000))
    assert sorted(seen) == [("a.txt", "Agree.\n\ndo it", 45_000), ("b.txt", "Agree.\n\ndo it", 45_000)]
    assert [part["answer"] for part in outcome.results[0].content["parts"]] == ["done a.txt", "done b.txt"]


async def test_part_runs_tools_on_its_own_file_and_no_other() -> None:
    """What lies outside its claim is INVALID, whoever asks."""
    found: dict[str, list[str]] = {}

    async def edit(ctx: Any, path: str, instructions: str) -> str:
        other = "b.txt" if path == "a.txt" else "a.txt"
        calls = [
            call("read_file", path=path),
            call("edit_file", path=path, old="one", new="two"),
            call("read_file", path=other),
            call("write_file", path=other, content="mine"),
            call("parallel_edit_files", parts=[{"path": name, "instructions": ""} for name in (path, other)]),
        ]
        found[path] = [result.outcome.value for result in (await ctx.run(calls)).results]
        return "done"

    workspace = Workspace(MemoryDisk(FILES))
    await answers(workspace, asks("a.txt", "b.txt"), edit)
    assert found["a.txt"] == found["b.txt"] == ["ok", "ok", "invalid", "invalid", "invalid"]
    assert workspace.snapshot() == {"a.txt": b"two a\n", "b.txt": b"two b\n", "src/c.txt": b"one c\n"}


async def test_change_dir_of_a_part_is_its_own() -> None:
    """Neither the other parts nor the caller see it, nor a modifier that a part returns."""
    seen: list[Any] = []

    async def edit(ctx: Any, path: str, instructions: str) -> ToolOutput:
        before = ctx.state.working_dir
        name = path.rsplit("/", 1)[-1]
        calls = [call("change_dir", path="src"), call("edit_file", path=name, old="one", new="two")]
        results = (await ctx.run(calls if "/" in path else calls[1:])).results
        seen.append((path, before, [result.outcome.value for result in results]))
        return ToolOutput("done", modifiers=[lambda state: state.replace(working_dir="src")])

    workspace = Workspace(MemoryDisk(FILES))
    outcome = await runtime_of(workspace, edit).run([asks("src/c.txt", "a.txt"), call("read_file", path="b.txt")])
    assert sorted(seen) == [("a.txt", None, ["ok"]), ("src/c.txt", None, ["ok", "ok"])]
    assert outcome.state.working_dir is None
    assert outcome.results[1].outcome is Outcome.OK
    assert workspace.snapshot()["src/c.txt"] == b"two c\n"


def test_part_has_a_time_limit() -> None:
    """A part that takes longer times out by itself; the others are done."""

    async def edit(ctx: Any, path: str, instructions: str) -> str:
        await trio.sleep(9 if path == "b.txt" else 1)
        return "done"

    async def program() -> Any:
        found = await answers(Workspace(MemoryDisk(FILES)), asks("a.txt", "b.txt", "src/c.txt"), edit, part_timeout=5)
        return [part["outcome"] for part in found["parts"]], trio.current_time()

    execution = sim.run(program)
    assert execution.error is None, execution.error
    require(execution.trace)
    assert execution.value == (["ok", "timed_out", "ok"], 5)


async def test_progress_says_which_part() -> None:
    """What a part says is handed on at once, with its file."""

    async def edit(ctx: Any, path: str, instructions: str) -> str:
        ctx.progress("half")
        return "done"

    async with runtime_of(Workspace(MemoryDisk(FILES)), edit).open_batch() as batch:
        batch.submit(asks("a.txt", "b.txt"))
        batch.seal()
        said = [update.message async for update in batch if isinstance(update, Progress)]
    assert sorted(map(str, said)) == [str({"path": path, "message": "half"}) for path in ("a.txt", "b.txt")]


async def test_events_of_parts_are_handed_on_where_they_are_wanted() -> None:
    """Which file changed, by which part; who did not ask for events sees none."""
    parts = [{"path": path, "edits": [{"old": "one", "new": "1"}]} for path in ("a.txt", "missing.txt")]
    for events in (True, False):
        workspace = Workspace(MemoryDisk({"a.txt": "one"}))
        runtime = Runtime(Registry([*workspace.tools(), parallel_edit_tool(workspace)]))
        async with runtime.open_batch(batch_id="b", events=events) as batch:
            batch.submit(ToolCall("c", "parallel_edit_files", {"parts": parts}))
            batch.seal()
            said = [update.message async for update in batch if isinstance(update, Progress)]
        changed = FileChanged("a.txt", batch_id="b/0.1", call_index=0, call_id="c.0")
        assert said == ([changed] if events else [])


async def test_approval_is_asked_for_each_part() -> None:
    """With the call that they are parts of; one that is denied is reported, the other is done."""

    def approve(request: ApprovalRequest) -> bool | str:
        if request.parent is None:
            return True
        assert request.parent.name == "parallel_edit_files"
        return "not this one" if request.input["path"] == "a.txt" else True

    workspace = Workspace(MemoryDisk(FILES))
    found = await answers(workspace, edits("a.txt", "b.txt"), approve=approve)
    assert [part["outcome"] for part in found["parts"]] == ["denied", "ok"]
    assert workspace.snapshot()["a.txt"] == b"one a\n"


@pytest.mark.parametrize(
    "make",
    [
        lambda workspace: parallel_edit_tool(None),  # type: ignore[arg-type]
        lambda workspace: parallel_edit_tool(workspace, lambda ctx, path, what: None),  # type: ignore[arg-type,return-value]
        lambda workspace: parallel_edit_tool(workspace, part_timeout=0),
    ],
)
def test_wrong_definitions_are_refused(make: Any) -> None:
    """A tool that cannot work is refused where it is made."""
    with pytest.raises(DefinitionRefused, match="parallel_edit_tool"):
        make(Workspace(MemoryDisk(FILES)))


async def test_undo_of_a_batch_takes_back_what_its_parts_did() -> None:
    """A part's change is one of the call whose part it is."""
    workspace = Workspace(MemoryDisk(FILES))
    before = workspace.snapshot()

    async def edit(ctx: Any, path: str, instructions: str) -> str:
        await ctx.run([call("edit_file", path=path, old="one", new="two")])
        return "done"

    async with runtime_of(workspace, edit).open_batch(batch_id="mine") as batch:
        batch.submit(call("edit_file", path="src/c.txt", old="one", new="two"))
        batch.submit(asks("a.txt", "b.txt"))
    assert workspace.snapshot() != before
    (version,) = [one for one in await workspace.history.versions("a.txt") if one.call_id is not None]
    assert (version.batch_id, version.call_index, version.call_id) == ("mine", 1, "parallel_edit_files")
    await workspace.history.undo("mine")
    assert workspace.snapshot() == before


def test_tool_keeps_its_promises() -> None:
    """As `check_tool` sees them: its claims cover what its parts change, under every order of their steps."""
    inputs = [edits("a.txt", "b.txt").input, edits("a.txt", "./a.txt").input, edits("b.txt", "none.txt").input]
    assert check_tool(lambda workspace: parallel_edit_tool(workspace), inputs, workspace=FILES, executions=8) == []


def test_part_that_cheats_is_noticed() -> None:
    """A part that goes past claims, to the files themselves, breaks the promise that its author made."""

    def make(workspace: Workspace) -> Tool:
        async def edit(ctx: Any, path: str, instructions: str) -> None:
            await ctx.files.revise(ctx, workspace.identify("b.txt"), lambda before: b"mine")

        return parallel_edit_tool(workspace, edit)

    (broken, *_) = check_tool(make, [asks("a.txt", "src/c.txt").input], workspace=FILES, executions=4)
    assert broken.promise == "claims"
    assert "changed b.txt" in broken.detail


# Under the simulator

_CALLS = [
    edits("a.txt", "b.txt"),
    call("edit_file", path="b.txt", old="b", new="c"),
    edits("src/c.txt", "b.txt", old="o", new="0"),
    call("read_file", path="src/c.txt"),
]


def _program(calls: list[ToolCall], limit: int | None, kept: list[Any]) -> Any:
    async def program() -> Any:
        workspace = Workspace(MemoryDisk(FILES))
        batch = runtime_of(workspace, limit=limit).open_batch(batch_id="outer")
        kept[:] = [workspace, batch]
        async with batch:
            for one in calls:
                batch.submit(one)
            batch.seal()
            async for _ in batch:
                pass
        return tuple(sorted(workspace.snapshot().items())), tuple(map(str, batch.outcome.results))

    return program


@pytest.mark.seldom
@pytest.mark.parametrize("limit", [1, 2, None])
def test_every_schedule_leaves_the_same(limit: int | None) -> None:
    """Files and answers do not depend on the schedule, and all laws hold inside and outside."""
    kept: list[Any] = []
    report = sim.explore(_program(_CALLS, limit, kept), sim.Portfolio(40), lambda execution: require(execution.trace))
    assert report.verdict is sim.PASS, report.failures[0].explain()
    assert len(report.outcomes) == 1


@pytest.mark.seldom
def test_cancel_before_any_step_is_truthful() -> None:
    """A file is as it was or as one of its versions; nothing is left; what is said done is done."""
    kept: list[Any] = []
    texts = {
        "a.txt": {b"one a\n", b"two a\n"},
        "b.txt": {b"one b\n", b"two b\n", b"two c\n", b"tw0 c\n", b"one c\n", b"0ne c\n"},
        "src/c.txt": {b"one c\n", b"0ne c\n"},
    }

    def check(execution: sim.Execution) -> None:
        require(execution.trace)
        workspace, batch = kept
        for path, content in workspace.snapshot().items():
            assert content in texts[path], (path, content)
        assert workspace.claim_table.statistics()["groups"] == 0
        for result in batch.outcome.results:
            if result.name == "parallel_edit_files" and result.outcome is Outcome.OK:
                for part in result.content["parts"]:
                    if part["outcome"] == "ok":
                        assert workspace.snapshot()[part["path"]] != FILES[part["path"]].encode()

    report = sim.explore(_program(_CALLS, 2, kept), sim.Portfolio(60), check, cancel_at="any")
    assert not report.failures, report.failures[0].explain()


_PATHS = st.sampled_from(["a.txt", "b.txt", "src/c.txt", "./a.txt", "new.txt"])


@st.composite
def _calls(draw: st.DrawFn) -> list[ToolCall]:
    calls = []
    for _ in range(draw(st.integers(1, 3))):
        new = draw(st.sampled_from("xy"))
        if draw(st.booleans()):
            calls.append(
                edits(*draw(st.lists(_PATHS, min_size=2, max_size=3)), old=draw(st.sampled_from("on")), new=new)
            )
        else:
            calls.append(call("edit_file", path=draw(_PATHS), old="n", new=new))
    return calls


@pytest.mark.seldom
@settings(max_examples=30, derandomize=True)
@given(calls=_calls(), choices=st.lists(st.integers(0, 4), max_size=120), limit=st.sampled_from([None, 1, 2]))
def test_any_calls_end_as_one_at_a_time(calls: list[ToolCall], choices: list[int], limit: int | None) -> None:
    """Outcomes, answers and files are those of the calls one after the other, parts too."""
    kept: list[Any] = []
    execution = sim.run(_program(calls, limit, kept), sim.Choices(choices))
    assert execution.error is None, execution.error
    require(execution.trace)
    outcome: BatchOutcome = kept[1].outcome

    async def one_by_one() -> Any:
        workspace = Workspace(MemoryDisk(FILES))
        registry = Registry([*workspace.tools(), parallel_edit_tool(workspace)])
        found = await run_one_by_one(calls, registry, State())
        return [(result.outcome, _said(result)) for result in found.results], workspace.snapshot()

    expected = sim.run(one_by_one)
    assert expected.error is None, expected.error
    assert ([(result.outcome, _said(result)) for result in outcome.results], kept[0].snapshot()) == expected.value


def _said(result: Any) -> Any:
    if not isinstance(result.content, dict):
        return result.content
    return [(part["path"], part["outcome"], part.get("answer")) for part in result.content["parts"]]
