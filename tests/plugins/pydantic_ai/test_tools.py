"""pydantic-ai's tools as tools of the runtime, and the reverse."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import pytest

pytest.importorskip("pydantic_ai", reason="toolrt[pydantic_ai]")

import pydantic_ai
from pydantic import BaseModel
from pydantic_ai import Agent, ApprovalRequired, ModelRetry, RunContext
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import BinaryContent, ToolReturn

import toolrt
from tests.plugins._one_call import result_of
from tests.plugins.pydantic_ai._agents import model_of, returns
from toolrt import File, Image, MemoryDisk, Outcome, Tool, Workspace
from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.plugins.pydantic_ai import ordered_tools


class Point(BaseModel):
    x: int
    y: int = 2


async def place(ctx: RunContext[str], point: Point, name: str = "p") -> str:
    """Place a point.

    Args:
        ctx: the run.
        point: where.
        name: what it is called.
    """
    await asyncio.sleep(0)
    return f"{ctx.deps} {ctx.tool_call_id} {ctx.tool_name} {point.x},{point.y} {name}"


def test_a_tool_keeps_its_name_description_schema_and_timeout() -> None:
    made = Tool.from_pydantic_ai(pydantic_ai.Tool(place, timeout=3), deps="Al", safe=True)
    assert (made.name, made.safe, made.timeout) == ("place", True, 3)
    assert "Place a point." in made.description
    assert made.schema["properties"]["name"]["description"] == "what it is called."
    assert result_of(made, {"point": {"x": 1}}).content == "Al call_0 place 1,2 p"
    assert result_of(made, {"point": {"x": "one"}}).outcome is Outcome.INVALID


def test_a_plain_function_runs_in_a_thread_and_needs_no_loop() -> None:
    def one(values: list[int]) -> ToolReturn[int]:
        """Add."""
        return ToolReturn(sum(values), metadata={"n": len(values)})

    for awaited in (True, False):
        assert result_of(Tool.from_pydantic_ai(pydantic_ai.Tool(one)), {"values": [1, 2]}, awaited).content == 3


def test_failures_are_results() -> None:
    def fail(kind: str) -> None:
        raise {"retry": ModelRetry("again"), "failed": ToolFailed("gone"), "value": ValueError("wrong")}.get(
            kind, ApprovalRequired()
        )

    made = Tool.from_pydantic_ai(pydantic_ai.Tool(fail))
    assert result_of(made, {"kind": "retry"}).error == "again"
    assert result_of(made, {"kind": "failed"}).error == "gone"
    assert result_of(made, {"kind": "value"}).error == "ValueError: wrong"
    assert "only an agent can carry out" in (result_of(made, {"kind": "approval"}).error or "")


def test_what_cannot_be_a_tool_is_refused() -> None:
    with pytest.raises(DefinitionRefused, match="requires_approval=True"):
        Tool.from_pydantic_ai(pydantic_ai.Tool(place, requires_approval=True))
    with pytest.raises(DefinitionRefused, match=r"a pydantic_ai\.Tool"):
        Tool.from_pydantic_ai(place)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] == "pydantic_ai"]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("_order", "_tools"):
        monkeypatch.delitem(sys.modules, f"toolrt.plugins.pydantic_ai.{name}", raising=False)
    for use in (
        lambda: Tool.from_pydantic_ai(place),
        lambda: toolrt.plugins.pydantic_ai.ordered_tools(),
        lambda: toolrt.plugins.pydantic_ai.ordered_toolset(None),
    ):
        with pytest.raises(MissingExtra, match=r"toolrt\[pydantic_ai\]"):
            use()


def test_file_tools_and_an_agents_own_tools_share_a_workspace() -> None:
    workspace = Workspace(MemoryDisk({"notes.txt": "one", "src/app.py": "app"}))
    seen: list[str] = []

    async def note(text: str) -> str:
        seen.append(text)
        return text

    calls: Any = [
        ("read_file", {"path": "notes.txt"}),
        ("edit_file", {"path": "notes.txt", "old": "one", "new": "one two"}),
        ("note", {"text": "between"}),
        ("edit_file", {"path": "notes.txt", "old": "two", "new": "two three"}),
        ("read_file", {"path": "notes.txt"}),
        ("read_file", {"path": "gone.txt"}),
        ("change_dir", {"path": "src"}),
        ("read_file", {"path": "src/app.py"}),
    ]
    agent = Agent(model_of(calls), tools=[note], capabilities=[ordered_tools(tools=workspace.tools())])
    told = [str(content) for _, content in returns(asyncio.run(agent.run("go")).all_messages())]
    assert "one two three" in told[4]
    assert "[error]" in told[5]
    assert told[6].endswith("every call starts anew]")
    assert told[7] == "app"
    assert seen == ["between"]


def test_pictures_and_files_are_handed_on_as_what_they_are() -> None:
    """In both directions."""
    png, document = BinaryContent(b"png", media_type="image/png"), BinaryContent(b"pdf", media_type="application/pdf")

    def look() -> ToolReturn[str]:
        """Look."""
        return ToolReturn("seen", content=["here:", png, document])

    def shot() -> BinaryContent:
        """Shoot."""
        return png

    answered = result_of(Tool.from_pydantic_ai(pydantic_ai.Tool(look)), {}).content
    assert answered == ["seen", "here:", Image(b"png", "image/png"), File(b"pdf", "application/pdf")]
    assert result_of(Tool.from_pydantic_ai(pydantic_ai.Tool(shot)), {}).content == Image(b"png", "image/png")

    @toolrt.tool(safe=True)
    async def picture(ctx: toolrt.ToolContext) -> Any:
        return Image(b"png", "image/png")

    @toolrt.tool(safe=True)
    async def both(ctx: toolrt.ToolContext) -> Any:
        return ["here:", Image(b"png", "image/png")]

    agent = Agent(model_of([("picture", {}), ("both", {})]), capabilities=[ordered_tools(tools=[picture, both])])
    messages = asyncio.run(agent.run("go")).all_messages()
    parts = [part for message in messages for part in message.parts if part.part_kind == "tool-return"]
    assert parts[0].files == [png]
    assert parts[1].files == [png]
    assert "here:" in str(parts[1].content)
