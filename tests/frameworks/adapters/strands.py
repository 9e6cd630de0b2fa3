"""Strands Agents: an agent with a Model."""

import json
from typing import Any

from strands import Agent
from strands import tool as strands_tool
from strands.models.model import Model
from strands.tools.executors import ConcurrentToolExecutor, SequentialToolExecutor

from tests.frameworks.adapters._common import Answers, function_of, turns


class _Model(Model):
    def __init__(self, calls: Any) -> None:
        self._asked = turns(calls, one_a_turn=False)

    def update_config(self, **config: Any) -> None:
        pass

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, *args: Any, **kwargs: Any) -> Any:
        calls = next(self._asked)
        yield {"messageStart": {"role": "assistant"}}
        for call in calls:
            yield {"contentBlockStart": {"start": {"toolUse": {"toolUseId": call.call_id, "name": call.name}}}}
            yield {"contentBlockDelta": {"delta": {"toolUse": {"input": json.dumps(call.input)}}}}
            yield {"contentBlockStop": {}}
        if not calls:
            yield {"contentBlockStart": {"start": {}}}
            yield {"contentBlockDelta": {"delta": {"text": "done"}}}
            yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "tool_use" if calls else "end_turn"}}


class Concurrent:
    """The executor that an agent has if none is named."""

    executor: Any = ConcurrentToolExecutor

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        made = [strands_tool(function_of(tool)) for tool in tools]
        agent = Agent(model=_Model(calls), tools=made, callback_handler=None, tool_executor=self.executor())
        await agent.invoke_async("go")
        blocks = [block for message in agent.messages for block in message["content"]]
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        return [(one["toolUseId"], one["content"][0].get("text"), one["status"] == "error") for one in results]


class Sequential(Concurrent):
    """The sequential executor."""

    executor = SequentialToolExecutor
