"""PydanticAI: an agent with a FunctionModel."""

from typing import Any

from pydantic_ai import Agent, Tool
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import FunctionModel

from tests.frameworks.adapters._common import Answers, function_of, turns


class AsItIs:
    """Tools as they are."""

    #: Whether a tool that fails raises ToolFailed, which the model is told.
    tells_model = False
    #: Which tools are barriers.
    sequential = staticmethod(lambda tool: False)
    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        asked = turns(calls, self.one_a_turn)

        def model(messages: Any, info: Any) -> ModelResponse:
            parts = [ToolCallPart(call.name, call.input, tool_call_id=call.call_id) for call in next(asked)]
            return ModelResponse(parts or [TextPart("done")])

        agent = Agent(FunctionModel(model), tools=[self.tool(tool) for tool in tools])
        done = await agent.run("go", model_settings={"parallel_tool_calls": not self.one_a_turn})
        parts = [part for message in done.all_messages() for part in message.parts]
        answers = [part for part in parts if isinstance(part, ToolReturnPart)]
        return [(part.tool_call_id, part.content, part.outcome != "success") for part in answers]

    def tool(self, tool: Any) -> Tool:
        """One of the agent's tools."""
        function = function_of(_Failing(tool) if self.tells_model else tool)
        return Tool(function, takes_ctx=False, sequential=self.sequential(tool))


class _Failing:
    """A tool whose errors are for the model."""

    def __init__(self, tool: Any) -> None:
        self.name, self.description, self.schema, self._tool = tool.name, tool.description, tool.schema, tool

    async def __call__(self, **input: Any) -> Any:
        try:
            return await self._tool(**input)
        except Exception as error:
            raise ToolFailed(str(error)) from error


class ToldErrors(AsItIs):
    """Errors as ToolFailed."""

    tells_model = True


class Sequential(ToldErrors):
    """Errors as ToolFailed, and every tool that is not safe a barrier."""

    sequential = staticmethod(lambda tool: not tool.safe)


class AllSequential(ToldErrors):
    """Errors as ToolFailed, in the agent's sequential mode."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run in that mode."""
        with Agent.parallel_tool_call_execution_mode("sequential"):
            return await super().execute(tools, calls)


class OneCallATurn(ToldErrors):
    """Errors as ToolFailed; the model is asked for one call in each turn."""

    one_a_turn = True
