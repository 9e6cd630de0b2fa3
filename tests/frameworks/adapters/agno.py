"""Agno: an Agent with a Model."""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

from agno.agent import Agent
from agno.models.base import Model
from agno.models.response import ModelResponse
from agno.tools.function import Function

from tests.frameworks.adapters._common import Answers, blocking_of, function_of, turns


@dataclass
class _Model(Model):
    id: str = "fake"
    asked: Any = None

    def invoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.input)},
            }
            for call in next(self.asked)
        ]
        return ModelResponse(role="assistant", content=None if calls else "done", tool_calls=calls)

    async def ainvoke(self, *args: Any, **kwargs: Any) -> ModelResponse:
        return self.invoke()

    def invoke_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    ainvoke_stream = _parse_provider_response = _parse_provider_response_delta = invoke_stream


class AsItIs:
    """An agent as it is."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        return _answers(await _agent(map(function_of, tools), calls).arun("go"))


class InThread(AsItIs):
    """Not async: `run`, in a worker thread."""

    not_applicable = dict.fromkeys(
        ("cancel_truthful", "nothing_left_after_cancel"),
        "`run` is not async, and what cancels a task does not reach its thread",
    )

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent in a thread until the model asks for nothing."""
        loop = asyncio.get_running_loop()
        agent = _agent((blocking_of(tool, loop) for tool in tools), calls)
        return _answers(await asyncio.to_thread(agent.run, "go"))


def _agent(functions: Any, calls: Any) -> Agent:
    made = [Function.from_callable(function) for function in functions]
    return Agent(model=_Model(asked=turns(calls, one_a_turn=False)), tools=made, telemetry=False)


def _answers(done: Any) -> Answers:
    results = [one for one in done.messages or [] if one.role == "tool"]
    return [(one.tool_call_id, one.content, bool(one.tool_call_error)) for one in results]
