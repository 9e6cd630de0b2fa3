"""`check_tool` against tools that keep what they declare, and tools that break one promise each."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
import trio

from tests.testing._promises import FILES, counter_tool, file_tool, promises_of
from toolrt import READ, WRITE, Claim, OutputChunk, State, ToolOutput, sim, tool
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.model import Tool
from toolrt.testing import check_tool
from toolrt.workspace import MemoryDisk, Workspace

NUMBERS = itertools.count()


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


@pytest.mark.parametrize("wrong", [file_tool("free"), "write_file", None], ids=["maker", "name", "nothing"])
def test_what_is_no_tool_is_refused(wrong: Any) -> None:
    """A function of a workspace needs a workspace's content."""
    with pytest.raises(DefinitionRefused, match="a function of a workspace and its content"):
        check_tool(wrong, [{}])


def test_tool_that_needs_an_event_loop_of_its_own_is_refused() -> None:
    """What cannot be simulated cannot be checked, and is not taken for an answer."""

    @tool(safe=True)
    async def looped(ctx: Any) -> None:
        async with trio.open_nursery():
            asyncio.new_event_loop()

    with pytest.raises(NotSimulated):
        check_tool(looped, [{}])


def test_tool_with_a_worker_thread_is_checked() -> None:
    """The simulator steps worker threads, too."""

    @tool(safe=True)
    async def threaded(ctx: Any) -> int:
        return await trio.to_thread.run_sync(int)

    check_tool(threaded, [{}])


@pytest.mark.parametrize("executions", [0, True, "many"])
def test_executions_that_are_no_number_are_refused(executions: Any) -> None:
    """Nothing is run then."""
    with pytest.raises(DefinitionRefused, match="a number of executions, 1 or more"):
        check_tool(counter_tool(), [], executions=executions)


@pytest.mark.parametrize(
    "inputs", [[], (), iter([]), None, 5, {}, {"name": "a"}, "name"], ids=lambda value: type(value).__name__
)
def test_nothing_to_try_is_refused(inputs: Any) -> None:
    """No input, or one that is not in a list, would say that a tool was checked which was not."""
    with pytest.raises(DefinitionRefused, match="at least one input"):
        check_tool(counter_tool(), inputs)


@pytest.mark.parametrize("state", [5, {}, "state"], ids=repr)
def test_state_that_is_none_is_refused(state: Any) -> None:
    """A `State`, or None."""
    with pytest.raises(DefinitionRefused, match="a State, or None"):
        check_tool(counter_tool(), [{"name": "a"}], state)


class _Odd(BaseException):
    pass


@pytest.mark.parametrize("error", [ValueError("no"), _Odd("no")], ids=["exception", "base"])
def test_safe_that_raises_is_broken(error: BaseException) -> None:
    """It runs alone then, which its author did not ask for."""

    def safe(input: Any) -> bool:
        raise error

    [broken] = check_tool(counter_tool(safe=safe), [{"name": "a"}])
    assert broken.promise == "safe"
    assert f"raised {type(error).__name__}: no" in broken.detail


def test_claims_that_raise_anything_are_broken() -> None:
    """Also what is no Exception."""

    def claims(input: Any, state: Any) -> Any:
        raise _Odd("no")

    [broken] = check_tool(counter_tool(claims=claims), [{"name": "a"}])
    assert (broken.promise, broken.detail) == ("claims", "expected claims, they raised _Odd: no")


def test_safe_that_changes_its_mind_is_broken() -> None:
    """Asked twice about one input, it says the same."""
    answers = iter([True, False] * 50)
    [broken] = check_tool(counter_tool(safe=lambda input: next(answers)), [{"name": "a"}])
    assert (broken.promise, broken.detail) == ("safe", "answered True, and False the second time")


def test_safe_that_answers_neither_yes_nor_no_is_broken() -> None:
    """Anything but True runs the call alone."""
    [broken] = check_tool(counter_tool(safe=lambda input: "yes"), [{"name": "a"}])
    assert (broken.promise, broken.detail) == ("safe", "expected True or False, it answered 'yes'")
