"""AutoGen AgentChat: an AssistantAgent with a model client."""

import json
from typing import Any

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import TextMessage, ToolCallExecutionEvent
from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import ChatCompletionClient, CreateResult, ModelFamily, RequestUsage
from autogen_core.tools import FunctionTool

from tests.frameworks.adapters._common import Answers, function_of, turns


class _Client(ChatCompletionClient):
    def __init__(self, calls: Any, one_a_turn: bool) -> None:
        self._asked = turns(calls, one_a_turn)

    async def create(self, *args: Any, **kwargs: Any) -> CreateResult:
        calls = [FunctionCall(call.call_id, json.dumps(call.input), call.name) for call in next(self._asked)]
        return CreateResult(
            finish_reason="function_calls" if calls else "stop",
            content=calls or "done",
            usage=RequestUsage(0, 0),
            cached=False,
        )

    def create_stream(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def close(self) -> None:
        pass

    def actual_usage(self) -> RequestUsage:
        return RequestUsage(0, 0)

    total_usage = actual_usage

    def count_tokens(self, *args: Any, **kwargs: Any) -> int:
        return 0

    remaining_tokens = count_tokens

    @property
    def capabilities(self) -> Any:
        return self.model_info

    @property
    def model_info(self) -> Any:
        return {
            "vision": False,
            "function_calling": True,
            "json_output": False,
            "family": ModelFamily.UNKNOWN,
            "structured_output": False,
        }


class AsItIs:
    """An agent as it is."""

    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        made = [FunctionTool(function_of(tool), description=tool.description) for tool in tools]
        client = _Client(calls, self.one_a_turn)
        agent = AssistantAgent("a", client, tools=made, max_tool_iterations=len(calls) + 1)
        self.token = CancellationToken()
        done = await agent.on_messages([TextMessage(content="go", source="user")], self.token)
        events = [one for one in done.inner_messages if isinstance(one, ToolCallExecutionEvent)]
        return [(one.call_id, one.content, bool(one.is_error)) for event in events for one in event.content]


class Token(AsItIs):
    """Cancelled by its CancellationToken."""

    def cancel(self) -> None:
        """Cancel what the token is linked to."""
        self.token.cancel()


class OneCallATurn(Token):
    """The model client is told to ask for one call in each turn."""

    one_a_turn = True
