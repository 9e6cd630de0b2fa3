"""`check_tool` against tools that keep their promises and tools that break one each."""

from __future__ import annotations

import itertools
import time
from typing import Any

import pytest
import trio

from toolrt import READ, WRITE, Claim, OutputChunk, State, ToolOutput, sim, tool
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.model import Tool
from toolrt.testing import check_tool
from toolrt.workspace import Directory, MemoryDisk, Workspace

NUMBERS = itertools.count()

FILES = {"a.txt": "one", "b.txt": "two"}

TREE = {"a.txt": "one", "b.txt": "two\nthree\n", "d/c.txt": "one\ntwo\n", "d/e/f.py": "x = 1\n", "empty": Directory()}

PATCH = "--- a/b.txt\n+++ b/b.txt\n@@ -1,2 +1,2 @@\n two\n-three\n+3\n"

#: What each file tool of the workspace is asked: what works and what it refuses.
OF_FILE_TOOLS: dict[str, list[Any]] = {
    "read_file": [{"path": "a.txt"}, {"path": "./a.txt"}, {"path": "missing.txt"}, {"path": "d"}],
    "write_file": [
        {"path": "a.txt", "content": "x"},
        {"path": "new/c.txt", "content": "y"},
        {"path": "new/d.txt", "content": "z"},
    ],
    "edit_file": [
        {"path": "a.txt", "old": "one", "new": "1"},
        {"path": "d/c.txt", "old": "one", "new": "1"},
        {"path": "a.txt", "old": "gone", "new": "x"},
    ],
    "multi_edit": [
        {"path": "b.txt", "edits": [{"old": "two", "new": "2"}, {"old": "three", "new": "3"}]},
        {"path": "d/c.txt", "edits": [{"old": "gone", "new": "x"}]},
    ],
    "apply_patch": [{"patch": PATCH}, {"patch": PATCH.replace("b.txt", "missing.txt")}, {"patch": "no patch"}],
    "list_dir": [{"path": "."}, {"path": "d"}, {"path": "a.txt"}, {"path": "empty"}],
    "glob": [{"pattern": "**/*.txt"}, {"pattern": "*.py", "path": "d"}],
    "search": [{"pattern": "one"}, {"pattern": "t.o", "path": "d"}, {"pattern": "("}],
    "make_dir": [{"path": "made"}, {"path": "made/deep/er"}, {"path": "d"}],
    "move_path": [
        {"source": "a.txt", "target": "z.txt"},
        {"source": "d/e", "target": "moved"},
        {"source": "missing", "target": "y"},
    ],
    "delete_path": [{"path": "b.txt"}, {"path": "empty"}, {"path": "missing"}],
    "change_dir": [{"path": "d"}, {"path": "missing"}],
}


def file_tool(name: str, **promises: Any) -> Any:
    """A maker of a tool that appends to, or reads, the file it is told."""

    def make(workspace: Workspace) -> Tool:
        claims = promises.get("claims")

        @tool(
            name=name,
            safe=promises.get("safe", False),
            claims=(lambda input, state: claims(workspace, input, state)) if claims else None,
            schema=None,
        )
        async def touch(ctx: Any, path: str, read: bool = False) -> str:
            entry = tuple(path.split("/"))
            content = (await workspace.disk.read(entry, 1000)).content
            if not read:
                await workspace.disk.revise(entry, 1000, lambda _: content + b"!")
            return content.decode()

        return touch

    return make


def promises_of(broken: Any) -> list[str]:
    """The names of the promises that were broken."""
    return [found.promise for found in broken]


@pytest.mark.parametrize("name", sorted(OF_FILE_TOOLS))
def test_file_tools_of_the_workspace_keep_their_promises(name: str) -> None:
    """The tools that toolrt brings are the first to be checked."""
    index = next(at for at, made in enumerate(Workspace(MemoryDisk({})).tools()) if made.name == name)
    broken = check_tool(lambda workspace: workspace.tools()[index], OF_FILE_TOOLS[name], workspace=TREE, executions=8)
    assert broken == [], "\n".join(map(str, broken))


def test_every_file_tool_of_the_workspace_is_checked() -> None:
    """A tool that is added to the workspace is added here."""
    assert sorted(OF_FILE_TOOLS) == sorted(made.name for made in Workspace(MemoryDisk({})).tools())


def test_covering_claims_are_enough() -> None:
    """A tool that claims the file it changes keeps its promises."""
    honest = file_tool("honest", claims=lambda workspace, input, state: workspace.claims(input["path"], state, WRITE))
    assert check_tool(honest, [{"path": "a.txt"}], workspace=FILES) == []


def test_claims_that_do_not_cover_a_change_are_broken() -> None:
    """READ does not cover a change."""
    sly = file_tool("sly", claims=lambda workspace, input, state: workspace.claims(input["path"], state, READ))
    [broken] = check_tool(sly, [{"path": "a.txt"}], workspace=FILES)
    assert broken.promise == "claims"
    assert "changed a.txt" in str(broken)


def test_claims_on_another_file_are_broken() -> None:
    """A read of a file that is not claimed is seen."""
    astray = file_tool("astray", claims=lambda workspace, input, state: workspace.claims("b.txt", state, READ))
    [broken] = check_tool(astray, [{"path": "a.txt", "read": True}], workspace=FILES)
    assert broken.promise == "claims"
    assert "read a.txt" in broken.detail


def test_safe_tool_that_changes_a_file_is_broken() -> None:
    """Safe means without effect."""
    assert promises_of(check_tool(file_tool("rash", safe=True), [{"path": "a.txt"}], workspace=FILES)) == ["safe"]


def test_safe_tool_that_writes_a_cell_is_broken() -> None:
    """A shared cell counts as an effect."""
    cell = sim.Cell(0, name="shared")

    @tool(safe=True)
    async def count(ctx: Any) -> None:
        cell.set(1)

    assert promises_of(check_tool(count, [{}])) == ["safe"]


def test_undeclared_tool_may_do_anything() -> None:
    """Who promises nothing breaks nothing."""
    assert check_tool(file_tool("free"), [{"path": "a.txt"}], workspace=FILES) == []


def test_claims_that_raise_are_broken() -> None:
    """The runtime would claim everything: the author should know."""

    def broken_claims(input: Any, state: Any) -> Any:
        raise KeyError("path")

    @tool(claims=broken_claims)
    async def lost(ctx: Any) -> None:
        pass

    [broken] = check_tool(lost, [{}])
    assert broken.promise == "claims"
    assert "KeyError" in broken.detail


def test_claims_that_change_are_broken() -> None:
    """Claims asked twice are the same."""
    numbers = itertools.count()

    @tool(claims=lambda input, state: [Claim(("n", next(numbers)), WRITE)])
    async def moving(ctx: Any) -> None:
        pass

    assert promises_of(check_tool(moving, [{}])) == ["claims"]


def test_answers_that_change_are_broken() -> None:
    """The same input gives the same answer."""
    numbers = itertools.count()

    @tool(safe=True)
    def counter(ctx: Any) -> int:
        return next(numbers)

    assert promises_of(check_tool(counter, [{}])) == ["deterministic"]


def test_failing_the_same_way_twice_is_deterministic() -> None:
    """An error is an answer."""

    @tool(safe=True)
    async def failing(ctx: Any) -> None:
        await trio.sleep(100)
        raise ValueError("always")

    assert check_tool(failing, [{}]) == []


@pytest.mark.parametrize(
    ("modifier", "word"),
    [
        (lambda state: state["list"].append(1) or state, "changed the state"),
        (lambda state: state.set("n", next(NUMBERS)), "for an equal state"),
        (lambda state: {"n": 1}, "expected a State"),
    ],
    ids=["mutates", "impure", "no state"],
)
def test_modifiers_that_are_not_pure_are_broken(modifier: Any, word: str) -> None:
    """A modifier is a pure function from State to State."""

    @tool(safe=True)
    async def changing(ctx: Any) -> ToolOutput:
        return ToolOutput("ok", modifiers=[modifier])

    broken = check_tool(changing, [{}], state=State({"list": []}))
    assert promises_of(broken)[0] == "modifiers"
    assert word in broken[0].detail


def test_pure_modifiers_are_kept() -> None:
    """A modifier that makes a new state keeps its promise, and so does one that always raises."""

    @tool(safe=True)
    async def changing(ctx: Any) -> ToolOutput:
        return ToolOutput("ok", modifiers=[lambda state: state.set("n", 1), lambda state: state["missing"]])

    assert check_tool(changing, [{}]) == []


def test_state_changed_in_place_is_broken() -> None:
    """A call's state is a snapshot that others share."""

    @tool(safe=True)
    async def scribble(ctx: Any) -> None:
        ctx.state["list"].append(1)

    assert promises_of(check_tool(scribble, [{}], state=State({"list": []}))) == ["state"]


def test_input_that_does_not_fit_is_reported() -> None:
    """An input the schema refuses tests nothing, and says so."""

    @tool(safe=True)
    async def plain(ctx: Any) -> None:
        pass

    assert promises_of(check_tool(plain, [{"surplus": 1}])) == ["input"]


def test_tool_bound_to_a_workspace_is_checked_in_place() -> None:
    """A workspace that is given is used as it is."""
    workspace = Workspace(MemoryDisk(FILES))
    write = next(made for made in workspace.tools() if made.name == "write_file")
    assert check_tool(write, [{"path": "a.txt", "content": "x"}], workspace=workspace) == []
    assert workspace.snapshot()["a.txt"] == b"x"


def test_what_is_no_tool_is_refused() -> None:
    """A function of a workspace needs a workspace's content."""
    with pytest.raises(DefinitionRefused):
        check_tool(file_tool("free"), [{}])


# What a tool does with time, a cancel, and the calls beside it.


def test_async_tool_that_sleeps_in_its_thread_is_broken() -> None:
    """`time.sleep` in an async tool holds up all others."""

    @tool(safe=True)
    async def sleepy(ctx: Any) -> str:
        await trio.lowlevel.checkpoint()
        time.sleep(0)  # noqa: ASYNC251
        return "done"

    [broken] = check_tool(sleepy, [{}])
    assert broken.promise == "blocking"
    assert "time.sleep()" in broken.detail


def test_async_tool_that_computes_for_long_is_broken() -> None:
    """More than a second of processor time without a checkpoint holds up all others."""

    @tool(safe=True)
    async def busy(ctx: Any) -> str:
        until = time.thread_time() + 1.1
        while time.thread_time() < until:
            pass
        return "done"

    [broken] = check_tool(busy, [{}])
    assert broken.promise == "blocking"
    assert "computing" in broken.detail


def test_sync_tool_may_block() -> None:
    """It runs in a thread of its own."""

    @tool(safe=True)
    def sleepy(ctx: Any) -> str:
        time.sleep(0)
        return "done"

    assert check_tool(sleepy, [{}]) == []


async def _returns() -> str:
    try:
        await trio.sleep(1)
    except BaseException:
        return "stopped"
    return "done"


async def _raises_another() -> str:
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        raise ValueError("stopped") from None
    return "done"


async def _tries_again() -> str:
    for _ in range(3):
        try:
            await trio.sleep(1)
        except BaseException:
            continue
        return "done"
    return "gave up"


async def _never_stops() -> str:
    while True:
        try:
            await trio.sleep(1)
            return "done"
        except trio.Cancelled:
            pass


@pytest.mark.parametrize("body", [_returns, _raises_another, _tries_again, _never_stops], ids=lambda it: it.__name__)
def test_tool_that_swallows_a_cancel_is_broken(body: Any) -> None:
    """A cancel that reached the tool has to leave it."""

    @tool(safe=True)
    async def stubborn(ctx: Any) -> str:
        return str(await body())

    [broken] = check_tool(stubborn, [{}])
    assert broken.promise == "cancel"
    assert "checkpoint 1" in broken.detail


async def _shielded() -> str:
    with trio.CancelScope(shield=True):
        await trio.sleep(1)
    return "done"


async def _cleans_up() -> str:
    try:
        await trio.sleep(1)
    finally:
        with trio.move_on_after(5, shield=True):
            await trio.sleep(10)
    return "done"


async def _has_a_timeout() -> str:
    with trio.move_on_after(1):
        await trio.sleep(10)
    return "done"


async def _shielded_with_a_timeout() -> str:
    with trio.move_on_after(1, shield=True):
        await trio.sleep(10)
    return "done"


async def _with_children() -> str:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.sleep, 1)
        nursery.start_soon(trio.sleep, 2)
    return "done"


@pytest.mark.parametrize(
    "body",
    [_shielded, _cleans_up, _has_a_timeout, _shielded_with_a_timeout, _with_children],
    ids=lambda it: it.__name__,
)
def test_tool_that_passes_a_cancel_on_keeps_its_promise(body: Any) -> None:
    """Shields, clean-up, timeouts and children are all as they should be."""

    @tool(safe=True)
    async def obedient(ctx: Any) -> str:
        return str(await body())

    assert check_tool(obedient, [{}]) == []


def test_tool_that_finishes_when_interrupted_is_not_cancelled() -> None:
    """The runtime does not cancel such a tool either."""

    @tool(safe=True, interrupt="finish")
    async def finishes(ctx: Any) -> str:
        return await _returns()

    assert check_tool(finishes, [{}]) == []


def test_answer_that_depends_on_the_time_is_broken() -> None:
    """A clock is no input."""

    @tool(safe=True)
    async def now(ctx: Any) -> float:
        return trio.current_time()

    [broken] = check_tool(now, [{}])
    assert broken.promise == "timing"
    assert "1024" in broken.detail


def test_answer_that_depends_on_the_order_of_its_tasks_is_broken() -> None:
    """The first of two children to come back decides."""

    @tool(safe=True)
    async def first(ctx: Any) -> str:
        order: list[str] = []

        async def ask(name: str) -> None:
            await trio.lowlevel.checkpoint()
            order.append(name)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(ask, "left")
            nursery.start_soon(ask, "right")
        return order[0]

    [broken] = check_tool(first, [{}])
    assert broken.promise == "timing"
    assert "left" in broken.detail
    assert "right" in broken.detail


def counter_tool(**promises: Any) -> Any:
    """A maker of a tool that counts in a dict, with a checkpoint between looking and writing."""

    def make() -> Tool:
        counts: dict[str, int] = {}

        @tool(schema=None, **promises)
        async def count(ctx: Any, name: str) -> int:
            seen = counts.get(name, 0)
            await trio.lowlevel.checkpoint()
            counts[name] = seen + 1
            return counts[name]

        return count

    return make


def test_tool_that_is_not_safe_although_it_says_so_is_found() -> None:
    """Two calls at once lose one count, which one after the other do not."""
    broken = check_tool(counter_tool(safe=True), [{"name": "a"}])
    assert set(promises_of(broken)) == {"safe"}
    assert "[1, 2]" in broken[0].detail


def test_claims_on_less_than_what_is_shared_are_found() -> None:
    """READ lets a second call of the same name in."""
    claims = lambda input, state: [Claim(("count", input["name"]), READ)]  # noqa: E731
    broken = check_tool(counter_tool(claims=claims), [{"name": "a"}, {"name": "b"}])
    assert set(promises_of(broken)) == {"claims"}


def test_claims_on_what_is_shared_are_enough() -> None:
    """A tool that keeps something between calls and claims it is as it should be, made anew for each run."""
    claims = lambda input, state: [Claim(("count", input["name"]), WRITE)]  # noqa: E731
    assert check_tool(counter_tool(claims=claims), [{"name": "a"}, {"name": "b"}]) == []


def test_tool_that_keeps_something_is_told_to_be_made_anew() -> None:
    """The same tool twice answers otherwise: the message says what to give instead."""
    [broken] = check_tool(counter_tool()(), [{"name": "a"}])
    assert broken.promise == "deterministic"
    assert "a function that makes it" in broken.detail


def test_state_that_is_replaced_is_broken() -> None:
    """Assigning to ctx.state changes nothing that others see: the author meant a modifier."""

    @tool(safe=True)
    async def assigns(ctx: Any) -> None:
        ctx.state = ctx.state.set("n", 1)

    [broken] = check_tool(assigns, [{}])
    assert broken.promise == "state"
    assert "modifier" in broken.detail


def test_state_changed_on_the_way_out_is_broken() -> None:
    """What a cancelled tool does counts too."""

    @tool(safe=True)
    async def scribbles_late(ctx: Any) -> None:
        try:
            await trio.sleep(1)
        except trio.Cancelled:
            ctx.state["list"].append(1)
            raise

    assert promises_of(check_tool(scribbles_late, [{}], state=State({"list": []}))) == ["state"]


def test_input_that_is_changed_is_broken() -> None:
    """The call's record is not the tool's to change."""

    @tool(safe=True, schema=None)
    async def takes(ctx: Any, names: list[str]) -> str:
        return names.pop()

    [broken] = check_tool(takes, [{"names": ["a", "b"]}])
    assert broken.promise == "state"
    assert "its input" in broken.detail


def test_tool_that_never_ends_is_broken() -> None:
    """Nobody else is there to wake it."""

    @tool(safe=True)
    async def waits(ctx: Any) -> None:
        await trio.sleep_forever()

    assert promises_of(check_tool(waits, [{}])) == ["ends"]


def test_tool_that_needs_a_thread_is_refused() -> None:
    """What cannot be simulated cannot be checked, and is not taken for an answer."""

    @tool(safe=True)
    async def threaded(ctx: Any) -> None:
        async with trio.open_nursery():
            await trio.to_thread.run_sync(int)

    with pytest.raises(NotSimulated):
        check_tool(threaded, [{}])


@pytest.mark.parametrize("executions", [0, True, "many"])
def test_executions_that_are_no_number_are_refused(executions: Any) -> None:
    """Nothing is run then."""
    with pytest.raises(DefinitionRefused):
        check_tool(counter_tool(), [], executions=executions)


def test_checked_tool_has_the_services_of_its_owner() -> None:
    """A tool that goes through ``ctx.files``, and tells what it does, can be checked as it is."""

    def make(workspace: Workspace) -> Tool:
        @tool(claims=lambda input, state: workspace.claims(input["path"], state, READ), safe=True, owner=workspace)
        async def size(ctx: Any, path: str) -> int:
            ctx.emit(OutputChunk(0, "looking"))
            ctx.changes_no_file()
            found = await ctx.files.read(ctx, workspace.identify(path, ctx.state))
            return len(found.content)

        return size

    assert check_tool(make, [{"path": "a.txt"}], workspace=FILES) == []
