"""A model of the OpenAI Agents SDK that says what a test has written down."""

import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from agents import Agent, Model, ModelResponse, Runner, Usage, set_tracing_disabled
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

set_tracing_disabled(True)

Call = tuple[str, dict[str, Any]]


class Script(Model):
    """Asks for the calls of one response after the other, and then answers "done"."""

    def __init__(self, *responses: Sequence[Call]) -> None:
        self._responses = list(responses)
        self.inputs: list[Any] = []

    def _output(self, input: Any) -> list[Any]:
        self.inputs.append(input)
        if not self._responses:
            text = ResponseOutputText(type="output_text", text="done", annotations=[])
            return [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]
        return [
            ResponseFunctionToolCall(
                type="function_call", call_id=f"call_{index}", id=f"fc_{index}", name=name, arguments=json.dumps(input)
            )
            for index, (name, input) in enumerate(self._responses.pop(0))
        ]

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **named: Any) -> ModelResponse:
        """Give the next response."""
        return ModelResponse(output=self._output(input), usage=Usage(), response_id=None)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **named: Any
    ) -> AsyncIterator[Any]:
        """Stream the next response."""
        response = Response(
            id="r",
            created_at=0,
            model="script",
            object="response",
            output=self._output(input),
            tool_choice="none",
            tools=[],
            parallel_tool_calls=True,
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)


async def run(agent: Any, input: Any = "go", streamed: bool = False, **options: Any) -> Any:
    """Run the agent to its end."""
    if not streamed:
        return await Runner.run(agent, input, **options)
    result = Runner.run_streamed(agent, input, **options)
    async for _ in result.stream_events():
        pass
    return result


def answers(agent: Agent[Any]) -> list[str]:
    """The results that the model was given last, in their order."""
    script: Any = agent.model
    return [item["output"] for item in script.inputs[-1] if item.get("type") == "function_call_output"]
