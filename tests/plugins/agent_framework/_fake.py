"""A chat client of the Agent Framework that says what a test has written down."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
)

Call = tuple[str, dict[str, Any]]


class Script(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):  # type: ignore[misc]
    """Asks for the calls of one response after the other, and then answers "done"."""

    def __init__(self, *responses: Sequence[Call]) -> None:
        super().__init__()
        self._responses = list(responses)
        self.seen: list[Any] = []

    def _inner_get_response(self, *, messages: Any, options: Any, stream: bool = False, **named: Any) -> Any:
        self.seen.append(list(messages))
        contents = [Content.from_text("done")]
        if self._responses:
            contents = [
                Content.from_function_call(call_id=f"call_{index}", name=name, arguments=input)
                for index, (name, input) in enumerate(self._responses.pop(0))
            ]

        async def streamed() -> AsyncIterator[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(contents=[content], role="assistant")

        async def whole() -> ChatResponse[Any]:
            return ChatResponse(messages=[Message("assistant", contents)])

        return self._build_response_stream(streamed()) if stream else whole()


async def run(agent: Agent[Any], message: Any = "go", streamed: bool = False, **options: Any) -> Any:
    """Run the agent to its end."""
    if not streamed:
        return await agent.run(message, **options)
    stream = agent.run(message, stream=True, **options)
    async for _ in stream:
        pass
    return await stream.get_final_response()


def answers(agent: Agent[Any]) -> list[str]:
    """The results that the model was given last, in their order."""
    client: Any = agent.client
    return [
        content.result
        for message in client.seen[-1]
        for content in message.contents
        if content.type == "function_result"
    ]
