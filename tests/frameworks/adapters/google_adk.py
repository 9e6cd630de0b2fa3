"""Google ADK: an Agent with a BaseLlm, in a runner in memory."""

from typing import Any

from google.adk.agents import Agent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from tests.frameworks.adapters._common import Answers, function_of, turns


class _Model(BaseLlm):
    asked: Any

    async def generate_content_async(self, *args: Any, **kwargs: Any) -> Any:
        parts = [
            types.Part(function_call=types.FunctionCall(id=call.call_id, name=call.name, args=call.input))
            for call in next(self.asked)
        ]
        yield LlmResponse(content=types.Content(role="model", parts=parts or [types.Part(text="done")]))


class AsItIs:
    """An agent as it is."""

    options: dict[str, Any] = {}  # noqa: RUF012

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        made = [function_of(tool) for tool in tools]
        model = _Model(model="fake", asked=turns(calls, one_a_turn=False))
        runner = InMemoryRunner(Agent(name="a", model=model, tools=made, **self.options), app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text="go")])
        found = []
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message):
            found += event.get_function_responses()
        return [(one.id, one.response.get("result", one.response), "error" in one.response) for one in found]


def _told(tool: Any, args: Any, tool_context: Any, error: Exception) -> dict[str, str]:
    return {"error": str(error)}


class ToldErrors(AsItIs):
    """Errors are answered by the callback for them."""

    options = {"on_tool_error_callback": _told}  # noqa: RUF012
