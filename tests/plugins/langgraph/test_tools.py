"""LangChain's tools as tools of the runtime, and the reverse."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated, Any

import pytest

pytest.importorskip("langchain_core", reason="toolrt[langgraph]")

from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool, ToolException, tool
from langgraph.prebuilt import InjectedState
from langgraph.types import Command
from pydantic import BaseModel, Field

import toolrt
from tests.plugins._one_call import result_of
from toolrt import Image, Outcome, Registry, Runtime, Text, Tool
from toolrt.errors import DefinitionRefused, MissingExtra
from toolrt.plugins.langgraph import langchain_tool


class Point(BaseModel):
    x: int
    y: int = Field(2, description="The height.")


@tool
async def place(point: Point, tags: list[str] | None = None) -> str:
    """Place a point.

    It is kept.
    """
    await asyncio.sleep(0)
    return f"{point.x},{point.y} {tags}"


def test_a_tool_keeps_its_name_description_and_schema() -> None:
    made = Tool.from_langchain(place, safe=True)
    assert (made.name, made.safe, made.is_async) == ("place", True, True)
    assert made.description.startswith("Place a point.")
    assert made.schema["properties"]["point"]["properties"]["y"]["description"] == "The height."
    assert result_of(made, {"point": {"x": 1}, "tags": ["a"]}).content == "1,2 ['a']"
    assert result_of(made, {"point": {"x": "one"}}).outcome is Outcome.INVALID
    assert Tool.from_langchain(place, name="put").name == "put"


def test_a_plain_function_runs_in_a_thread_and_needs_no_loop() -> None:
    @tool
    def name_of_thread(call_id: Annotated[str, InjectedToolCallId]) -> str:
        """Tell where it runs."""
        import threading

        return f"{call_id} {threading.current_thread() is threading.main_thread()}"

    made = Tool.from_langchain(name_of_thread)
    assert not made.schema.get("properties")
    for awaited in (True, False):
        assert result_of(made, {}, awaited).content == "call_0 False"


def test_failures_are_results() -> None:
    @tool
    def fail(kind: str) -> Any:
        """Fail."""
        if kind == "command":
            return Command(goto="end")
        raise ToolException("no") if kind == "tool" else ValueError("wrong")

    made = Tool.from_langchain(fail)
    assert result_of(made, {"kind": "tool"}).error == "ToolException: no"
    assert result_of(made, {"kind": "value"}).error == "ValueError: wrong"
    assert "only a graph can carry out" in (result_of(made, {"kind": "command"}).error or "")
    handled = StructuredTool.from_function(fail.func, name="fail", handle_tool_error="told")
    assert result_of(Tool.from_langchain(handled), {"kind": "tool"}).error == "told"


def test_a_tool_that_a_graph_injects_into_is_refused() -> None:
    @tool
    def told(state: Annotated[dict[str, Any], InjectedState]) -> str:
        """Tell."""
        return ""

    with pytest.raises(DefinitionRefused, match="injects 'state'"):
        Tool.from_langchain(told)
    with pytest.raises(DefinitionRefused, match="BaseTool"):
        Tool.from_langchain(print)


def test_without_the_package_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.split(".")[0] in ("langchain_core", "langgraph")]:
        monkeypatch.setitem(sys.modules, name, None)
    for name in ("_node", "_tools", "_kept"):
        monkeypatch.delitem(sys.modules, f"toolrt.plugins.langgraph.{name}", raising=False)
    for use in (
        lambda: Tool.from_langchain(place),
        lambda: langchain_tool(Tool("x", lambda ctx: None)),
        lambda: toolrt.plugins.langgraph.tool_node([]),
    ):
        with pytest.raises(MissingExtra, match=r"toolrt\[langgraph\]"):
            use()


def test_a_tool_of_the_runtime_is_one_of_langchains() -> None:
    @toolrt.tool(safe=True)
    async def double(ctx: toolrt.ToolContext, number: int) -> int:
        """Double it."""
        if number < 0:
            raise ValueError("negative")
        return 2 * number

    made = langchain_tool(double)
    assert isinstance(made, BaseTool)
    assert made.tool_call_schema == double.schema or made.args == double.schema["properties"]
    assert made.invoke({"number": 2}) == "4"
    assert asyncio.run(made.ainvoke({"number": 3})) == "6"
    assert made.invoke({"number": -1}) == "[error] ValueError: negative"
    with pytest.raises(DefinitionRefused, match="a runtime with a tool named 'double'"):
        langchain_tool(double, Runtime(Registry()))
    with pytest.raises(DefinitionRefused, match=r"a toolrt\.Tool"):
        langchain_tool(place)  # type: ignore[arg-type]


def test_pictures_are_handed_on_as_what_they_are() -> None:
    """In both directions, in each form that LangChain has."""
    url = {"type": "image_url", "image_url": {"url": "data:image/png;base64,cG5n"}}
    own = {"type": "image", "base64": "cG5n", "mime_type": "image/png"}

    @tool
    def look() -> list[Any]:
        """Look."""
        return [{"type": "text", "text": "here:"}, url, own]

    picture = Image(b"png", "image/png")
    assert result_of(Tool.from_langchain(look), {}).content == [Text("here:"), picture, picture]

    @toolrt.tool(safe=True)
    async def shot(ctx: toolrt.ToolContext) -> Any:
        return ["here:", picture]

    made = langchain_tool(shot)
    call = {"type": "tool_call", "id": "1", "name": "shot", "args": {}}
    assert made.invoke(call).content == [{"type": "text", "text": "here:"}, own]
