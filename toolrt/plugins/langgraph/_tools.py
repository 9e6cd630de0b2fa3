"""LangChain's tools as tools of the runtime, and the reverse.

Rules.
    1. A tool that has a coroutine awaits it on the caller's event loop; every other runs in a worker thread, and a
       cancel waits for that thread, as for any plain ``def`` tool.
    2. Outside a graph there is neither state nor store: a tool that has such arguments injected is refused.
"""

from __future__ import annotations

import base64
from typing import Any, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
from langchain_core.tools import Tool as TextTool
from langchain_core.tools.base import _is_injected_arg_type, get_all_basemodel_annotations
from langchain_core.utils.function_calling import convert_to_openai_tool

from toolrt import aio
from toolrt.errors import DefinitionRefused
from toolrt.interop import run_sync
from toolrt.interop._render import shown
from toolrt.model import File, Image, Registry, Text, Tool, ToolCall, ToolOutput, ToolResult
from toolrt.model import tool as runtime_tool
from toolrt.model._content import Part, in_base64
from toolrt.runtime import Runtime, ToolContext


def is_sync(tool: BaseTool) -> bool:
    """Whether LangChain runs it in a thread, also where it is awaited."""
    if isinstance(tool, StructuredTool | TextTool):
        return tool.coroutine is None
    return type(tool)._arun is BaseTool._arun


def tool_from_langchain(tool: BaseTool, **promises: Any) -> Tool:
    """See `toolrt.Tool.from_langchain`."""
    if not isinstance(tool, BaseTool):
        raise DefinitionRefused("Tool.from_langchain(tool)", "a langchain_core.tools.BaseTool", tool)
    injected = [
        name
        for name, hint in get_all_basemodel_annotations(tool.get_input_schema()).items()
        if _is_injected_arg_type(hint) and not _is_injected_arg_type(hint, injected_type=InjectedToolCallId)
    ]
    if injected:
        raise DefinitionRefused(
            f"tool {tool.name!r}",
            "a tool that needs no graph; inside one, use toolrt.plugins.langgraph.OrderedToolNode",
            f"a tool into which a graph injects {', '.join(map(repr, injected))}",
        )

    def asked(ctx: ToolContext, input: dict[str, Any]) -> dict[str, Any]:
        return {"type": "tool_call", "id": ctx.call_id, "name": tool.name, "args": input}

    def call(ctx: ToolContext, /, **input: Any) -> ToolOutput:
        return _output(tool.invoke(asked(ctx, input)))

    async def acall(ctx: ToolContext, /, **input: Any) -> ToolOutput:
        return _output(await tool.ainvoke(asked(ctx, input)))

    parameters = convert_to_openai_tool(tool)["function"].get("parameters", {"type": "object", "properties": {}})
    told = {"name": tool.name, "description": tool.description, "schema": parameters}
    made: Tool = runtime_tool(**{**told, **promises})(call if is_sync(tool) else aio.on_loop(acall))
    return made


def batched_tool(tool: Tool, runtime: Runtime | None) -> BaseTool:
    """See `toolrt.plugins.langgraph.langchain_tool`."""
    if not isinstance(tool, Tool):
        raise DefinitionRefused("langchain_tool(tool)", "a toolrt.Tool", tool)
    orders = Runtime(Registry([tool])) if runtime is None else runtime
    if tool.name not in orders.registry:
        raise DefinitionRefused("langchain_tool(runtime)", f"a runtime with a tool named {tool.name!r}", orders)

    def call(**input: Any) -> Any:
        return shown(run_sync(orders, [ToolCall(tool.name, tool.name, input)]).results[0], _block)

    async def acall(**input: Any) -> Any:
        return shown((await aio.run(orders, [ToolCall(tool.name, tool.name, input)])).results[0], _block)

    return StructuredTool(
        name=tool.name,
        description=tool.description or tool.name,
        args_schema=dict(tool.schema),
        func=call,
        coroutine=acall,
    )


def message_of(result: ToolResult) -> ToolMessage:
    """The message that answers a call of one of the runtime's own tools."""
    return ToolMessage(
        content=cast(Any, shown(result, _block)),
        name=result.name,
        tool_call_id=result.call_id,
        status="success" if result.ok else "error",
    )


def _block(part: Part) -> dict[str, Any]:
    """The part as LangChain has it."""
    if isinstance(part, Image | File):
        kind = "image" if isinstance(part, Image) else "file"
        return {"type": kind, "base64": in_base64(part.data), "mime_type": part.media_type}
    return {"type": "text", "text": part.in_words()}


def _parted(content: Any) -> Any:
    """What a tool of LangChain's answered, whose blocks of pictures and files become parts."""
    if not isinstance(content, list):
        return content
    parts = [_part_of(block) for block in content]
    return parts if any(isinstance(part, Image | File) for part in parts) else content


def _part_of(block: Any) -> Any:
    if not isinstance(block, dict):
        return block
    url = block.get("image_url")
    url = url.get("url") if isinstance(url, dict) else url
    data, kind = block.get("base64") or block.get("data"), block.get("mime_type") or ""
    if block.get("type") == "image_url" and isinstance(url, str) and url.startswith("data:"):
        about, _, data = url.removeprefix("data:").partition(",")
        kind = about.partition(";")[0]
    if block.get("type") == "text" and isinstance(block.get("text"), str):
        return Text(block["text"])
    if block.get("type") not in ("image", "image_url", "file") or not isinstance(data, str):
        return block
    try:
        raw = base64.b64decode(data, validate=True)
    except ValueError:
        return block
    return File(raw, kind) if block["type"] == "file" else Image(raw, kind or "image/png")


def _output(answer: Any) -> ToolOutput:
    if not isinstance(answer, ToolMessage):
        return ToolOutput(error=f"it gave a {type(answer).__name__}, which only a graph can carry out")
    if answer.status == "error":
        return ToolOutput(error=str(answer.content))
    return ToolOutput(_parted(answer.content))
