"""`check_tool` against tools that keep their promises and tools that break one each."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import trio

from toolrt import READ, WRITE, Claim, State, ToolOutput, sim, tool
from toolrt.errors import DefinitionRefused
from toolrt.model import Tool
from toolrt.testing import check_tool
from toolrt.workspace import MemoryDisk, Workspace

NUMBERS = itertools.count()

FILES = {"a.txt": "one", "b.txt": "two"}


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


def test_file_tools_of_the_workspace_keep_their_promises() -> None:
    """The tools that toolrt brings are the first to be checked."""
    inputs = {
        "read_file": [{"path": "a.txt"}, {"path": "./a.txt"}, {"path": "missing.txt"}],
        "write_file": [{"path": "a.txt", "content": "x"}, {"path": "new/c.txt", "content": "y"}],
        "edit_file": [{"path": "a.txt", "old": "one", "new": "1"}, {"path": "a.txt", "old": "gone", "new": "x"}],
    }
    for index, made in enumerate(Workspace(MemoryDisk(FILES)).tools()):
        if made.name in inputs:
            broken = check_tool(lambda workspace, at=index: workspace.tools()[at], inputs[made.name], workspace=FILES)
            assert broken == [], list(map(str, broken))


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
