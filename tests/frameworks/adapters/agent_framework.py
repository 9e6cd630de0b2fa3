"""Microsoft Agent Framework: an agent with a chat client."""

from typing import Any

from agent_framework import Agent, BaseChatClient, ChatResponse, Content, FunctionInvocationLayer, FunctionTool, Message

from tests.frameworks.adapters._common import Answers, function_of, turns


class _Client(FunctionInvocationLayer, BaseChatClient):
    def __init__(self, calls: Any, one_a_turn: bool, **options: Any) -> None:
        super().__init__(**options)
        self._asked = turns(calls, one_a_turn)

    async def _inner_get_response(self, **_: Any) -> ChatResponse:
        contents: list[Any] = [
            Content.from_function_call(call.call_id, call.name, arguments=call.input) for call in next(self._asked)
        ]
        return ChatResponse(messages=[Message(role="assistant", contents=contents or ["done"])])


class AsItIs:
    """An agent as it is."""

    configuration: dict[str, Any] = {"max_consecutive_errors_per_request": 99}  # noqa: RUF012
    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        client = _Client(calls, self.one_a_turn, function_invocation_configuration=self.configuration)
        made = [FunctionTool(name=tool.name, description=tool.description, func=function_of(tool)) for tool in tools]
        options = {"allow_multiple_tool_calls": not self.one_a_turn}
        done = await Agent(client, tools=made, default_options=options).run("go")
        found = [one for message in done.messages for one in message.contents if one.type == "function_result"]
        return [(one.call_id, one.result, one.exception is not None) for one in found]


class OneAtOnce(AsItIs):
    """Without concurrent invocation."""

    configuration = {**AsItIs.configuration, "allow_concurrent_invocation": False}  # noqa: RUF012


class OneCallATurn(AsItIs):
    """The model is asked for one call in each turn."""

    one_a_turn = True
