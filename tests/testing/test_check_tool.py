"""`check_tool` against tools that keep what they declare, and tools that break one promise each."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest
import trio

from tests.testing._promises import FILES, Promises, check, counter_tool, file_tool, promises_of
from toolrt import READ, WRITE, Claim, OutputChunk, State, ToolOutput, sim, tool
from toolrt.errors import DefinitionRefused, NotSimulated
from toolrt.model import Tool
from toolrt.testing import check_tool
from toolrt.workspace import MemoryDisk, Workspace

NUMBERS = itertools.count()
CELL = sim.Cell(0, name="shared")
A_LIST = State({"list": []})
ON_A, READS_A = [{"path": "a.txt"}], [{"path": "a.txt", "read": True}]

case = Promises()


def claiming(path: str | None, mode: Any) -> Any:
    """Claims on a file, or on the one that the input names."""
    return lambda workspace, input, state: workspace.claims(path or input["path"], state, mode)


case.kept(ON_A, workspace=FILES)(file_tool("claims_that_cover_are_enough", claims=claiming(None, WRITE)))
case.kept(ON_A, workspace=FILES)(file_tool("undeclared_tool_may_do_anything"))
case.broken("safe", inputs=ON_A, workspace=FILES)(file_tool("safe_tool_changes_a_file", safe=True))
case.broken("claims", "changed a.txt", inputs=ON_A, workspace=FILES)(
    file_tool("read_claim_does_not_cover_a_change", claims=claiming(None, READ))
)
case.broken("claims", "read a.txt", inputs=READS_A, workspace=FILES)(
    file_tool("claims_on_another_file", claims=claiming("b.txt", READ))
)


@case.broken("safe")
@tool(safe=True)
async def safe_tool_writes_a_cell(ctx: Any) -> None:
    """A shared cell counts as an effect."""
    CELL.set(1)


def _raises(input: Any, state: Any) -> Any:
    raise KeyError("path")


@case.broken("claims", "KeyError")
@tool(claims=_raises)
async def claims_that_raise(ctx: Any) -> None:
    """The runtime would claim everything: the author should know."""


@case.broken("claims")
@tool(claims=lambda input, state: [Claim(("n", next(NUMBERS)), WRITE)])
async def claims_that_change(ctx: Any) -> None:
    """Claims asked twice are the same."""


@case.broken("deterministic")
@tool(safe=True)
def answers_that_change(ctx: Any) -> int:
    """The same input gives the same answer."""
    return next(NUMBERS)


@case.kept()
@tool(safe=True)
async def failing_the_same_way_twice(ctx: Any) -> None:
    """An error is an answer."""
    await trio.sleep(100)
    raise ValueError("always")


def modifying(name: str, *modifiers: Any) -> Tool:
    """A tool with these modifiers."""

    @tool(safe=True, name=name)
    async def changing(ctx: Any) -> ToolOutput:
        return ToolOutput("ok", modifiers=modifiers)

    return changing


# One that makes a new state keeps its promise, and so does one that always raises.
case.kept()(modifying("pure", lambda state: state.set("n", 1), lambda state: state["missing"]))
case.broken("modifiers", "for an equal state", state=A_LIST)(
    modifying("impure", lambda state: state.set("n", next(NUMBERS)))
)
case.broken("modifiers", "expected a State", state=A_LIST)(modifying("no_state", lambda state: {"n": 1}))


@case.broken("state", state=State({"list": []}))
@tool(safe=True)
async def state_changed_in_place(ctx: Any) -> None:
    """A call's state is a snapshot that others share."""
    ctx.state["list"].append(1)


@case.broken("state", "modifier")
@tool(safe=True)
async def state_replaced(ctx: Any) -> None:
    """Assigning to ctx.state changes nothing that others see: the author meant a modifier."""
    ctx.state = ctx.state.set("n", 1)


@case.broken("state", state=State({"list": []}))
@tool(safe=True)
async def state_changed_on_the_way_out(ctx: Any) -> None:
    """What a cancelled tool does counts too."""
    try:
        await trio.sleep(1)
    except trio.Cancelled:
        ctx.state["list"].append(1)
        raise


@case.broken("state", "its input", inputs=[{"names": ["a", "b"]}])
@tool(safe=True, schema=None)
async def input_changed(ctx: Any, names: list[str]) -> str:
    """The call's record is not the tool's to change."""
    return names.pop()


@case.broken("input", inputs=[{"surplus": 1}])
@tool(safe=True)
async def input_that_does_not_fit(ctx: Any) -> None:
    """An input the schema refuses tests nothing, and says so."""


@case.kept(ON_A, workspace=FILES)
def services_of_its_owner(workspace: Workspace) -> Tool:
    """A tool that goes through ``ctx.files``, and tells what it does, can be checked as it is."""

    @tool(claims=lambda input, state: workspace.claims(input["path"], state, READ), safe=True, owner=workspace)
    async def size(ctx: Any, path: str) -> int:
        ctx.emit(OutputChunk(0, "looking"))
        ctx.changes_no_file()
        found = await ctx.files.read(ctx, workspace.identify(path, ctx.state))
        return len(found.content)

    return size


@case.kept()
@tool(safe=True)
async def worker_thread(ctx: Any) -> int:
    """The simulator steps worker threads, too."""
    return await trio.to_thread.run_sync(int)


class _Odd(BaseException):
    pass


def raising(error: BaseException) -> Any:
    """A function that raises it, whatever it is asked."""

    def ask(*asked: Any) -> Any:
        raise error

    return ask


# A call whose safety is not known runs alone, which its author did not ask for.
ON_NAME = [{"name": "a"}]
case.broken("safe", "raised ValueError: no", inputs=ON_NAME)(counter_tool(safe=raising(ValueError("no"))))
case.broken("safe", "raised _Odd: no", inputs=ON_NAME)(counter_tool(safe=raising(_Odd("no"))))
case.broken("claims", "expected claims, they raised _Odd: no", inputs=ON_NAME)(counter_tool(claims=raising(_Odd("no"))))
case.broken("safe", "the second time", inputs=ON_NAME)(counter_tool(safe=lambda input: next(NUMBERS) % 2 == 0))
case.broken("safe", "expected True or False, it answered 'yes'", inputs=ON_NAME)(counter_tool(safe=lambda input: "yes"))


@pytest.mark.parametrize(("made", "promise", "words", "inputs", "options"), case.cases)
def test_tool_breaks_this_promise_and_no_other(
    made: Any, promise: str | None, words: tuple[str, ...], inputs: list[Any], options: dict[str, Any]
) -> None:
    """The promise is named, once for each input, with what the check saw."""
    check(made, promise, words, inputs, options)


def test_modifier_that_changes_the_state_is_broken() -> None:
    """The check tells it first, though the next run of the tool finds another state, too."""
    made = modifying("mutates", lambda state: state["list"].append(1) or state)
    broken = check_tool(made, [{}], state=State({"list": []}))
    assert promises_of(broken)[0] == "modifiers"
    assert "changed the state" in broken[0].detail


def test_tool_bound_to_a_workspace_is_checked_in_place() -> None:
    """A workspace that is given is used as it is."""
    workspace = Workspace(MemoryDisk(FILES))
    write = next(made for made in workspace.tools() if made.name == "write_file")
    assert check_tool(write, [{"path": "a.txt", "content": "x"}], workspace=workspace) == []
    assert workspace.snapshot()["a.txt"] == b"x"


def test_tool_that_needs_an_event_loop_of_its_own_is_refused() -> None:
    """What cannot be simulated cannot be checked, and is not taken for an answer."""

    @tool(safe=True)
    async def looped(ctx: Any) -> None:
        async with trio.open_nursery():
            asyncio.new_event_loop()

    with pytest.raises(NotSimulated):
        check_tool(looped, [{}])


WRONG: dict[str, tuple[list[Any], str]] = {
    # A function of a workspace needs a workspace's content.
    "tool": ([file_tool("free"), "write_file", None], "a function of a workspace and its content"),
    # Without an input in a list it would be said that a tool was checked which was not.
    "inputs": ([[], (), iter([]), None, 5, {}, {"name": "a"}, "name"], "at least one input"),
    "state": ([5, {}, "state"], "a State, or None"),
    "executions": ([0, True, "many"], "a number of executions, 1 or more"),
}


@pytest.mark.parametrize(
    ("argument", "value", "expected"),
    [(argument, value, expected) for argument, (values, expected) in WRONG.items() for value in values],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_wrong_argument_is_refused(argument: str, value: Any, expected: str) -> None:
    """Nothing is run then."""
    arguments = {"tool": counter_tool(), "inputs": [{"name": "a"}], "state": None, "executions": 10, argument: value}
    with pytest.raises(DefinitionRefused, match=expected):
        check_tool(arguments.pop("tool"), arguments.pop("inputs"), arguments.pop("state"), **arguments)
