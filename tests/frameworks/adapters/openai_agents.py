"""OpenAI Agents SDK: Runner.run with a Model."""

import json
from typing import Any

from agents import Agent, ModelResponse, ModelSettings, RunConfig, Runner, Usage, function_tool, set_tracing_disabled
from agents.models.interface import Model
from agents.run_config import ToolExecutionConfig
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from tests.frameworks.adapters._common import Answers, function_of, turns

set_tracing_disabled(True)

#: How the SDK's own failure function begins its text; an answer has no other sign of an error.
_ERROR = "An error occurred while running the tool"


class _Model(Model):
    def __init__(self, calls: Any) -> None:
        self._calls = calls
        self._asked: Any = None

    async def get_response(self, *args: Any, model_settings: Any, **options: Any) -> Any:
        self._asked = self._asked or turns(self._calls, one_a_turn=model_settings.parallel_tool_calls is False)
        output: list[Any] = [
            ResponseFunctionToolCall(
                call_id=call.call_id, name=call.name, arguments=json.dumps(call.input), type="function_call"
            )
            for call in next(self._asked)
        ]
        if not output:
            text = ResponseOutputText(text="done", type="output_text", annotations=[])
            output = [
                ResponseOutputMessage(id="m", content=[text], role="assistant", status="completed", type="message")
            ]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError


class AsItIs:
    """An agent as it is."""

    settings = ModelSettings()
    run_config = RunConfig()

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        made = [function_tool(function_of(tool)) for tool in tools]
        agent = Agent(name="a", tools=made, model=_Model(calls), model_settings=self.settings)
        done = await Runner.run(agent, "go", run_config=self.run_config, max_turns=len(calls) + 2)
        outputs = [one for one in done.to_input_list() if one.get("type") == "function_call_output"]
        return [(one["call_id"], one["output"], str(one["output"]).startswith(_ERROR)) for one in outputs]


class OneAtOnce(AsItIs):
    """At most one function tool at once."""

    run_config = RunConfig(tool_execution=ToolExecutionConfig(max_function_tool_concurrency=1))


class OneCallATurn(AsItIs):
    """The model is asked for one call in each turn."""

    settings = ModelSettings(parallel_tool_calls=False)
