"""kosong, the layer of Kimi CLI: one step with its SimpleToolset."""

import json
from typing import Any

import kosong
from kosong.chat_provider.mock import MockChatProvider
from kosong.message import Message, ToolCall
from kosong.tooling import CallableTool, ToolOk, ToolReturnValue
from kosong.tooling.simple import SimpleToolset

from tests.frameworks.adapters._common import Answers


class _Tool(CallableTool):
    _tool: Any = None

    async def __call__(self, **input: Any) -> ToolReturnValue:
        return ToolOk(output=await self._tool(**input))


class AsItIs:
    """A step as it is."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run one step, and wait for its results."""
        toolset = SimpleToolset()
        for tool in tools:
            made = _Tool(name=tool.name, description=tool.description, parameters=tool.schema)
            made._tool = tool
            toolset += made
        asked = [
            ToolCall(id=call.call_id, function=ToolCall.FunctionBody(name=call.name, arguments=json.dumps(call.input)))
            for call in calls
        ]
        history = [Message(role="user", content="go")]
        step = await kosong.step(MockChatProvider(asked), "", toolset, history)
        results = await step.tool_results()
        values = [(one.tool_call_id, one.return_value) for one in results]
        return [
            (call_id, value.message if value.is_error else value.output, value.is_error) for call_id, value in values
        ]
