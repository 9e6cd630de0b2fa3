"""LlamaIndex: a FunctionAgent with a function calling model."""

from typing import Any

from llama_index.core.agent.workflow import FunctionAgent, ToolCallResult
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ToolCallBlock
from llama_index.core.llms.mock import MockFunctionCallingLLM
from llama_index.core.tools import FunctionTool

from tests.frameworks.adapters._common import Answers, function_of, turns


class _Model(MockFunctionCallingLLM):
    calls: Any
    asked: Any = None

    async def achat_with_tools(self, *, allow_parallel_tool_calls: bool = True, **kwargs: Any) -> ChatResponse:
        self.asked = self.asked or turns(self.calls, one_a_turn=not allow_parallel_tool_calls)
        blocks = [
            ToolCallBlock(tool_call_id=call.call_id, tool_name=call.name, tool_kwargs=call.input)
            for call in next(self.asked)
        ]
        return ChatResponse(message=ChatMessage(role="assistant", blocks=blocks))


class AsItIs:
    """An agent as it is."""

    parallel = True

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        made = [FunctionTool.from_defaults(async_fn=function_of(tool)) for tool in tools]
        agent = FunctionAgent(
            tools=made, llm=_Model(calls=calls), streaming=False, allow_parallel_tool_calls=self.parallel
        )
        self.handler = agent.run("go")
        done = await self.handler
        results = [one for one in done.tool_calls if isinstance(one, ToolCallResult)]
        return [(one.tool_id, one.tool_output.content, one.tool_output.is_error) for one in results]


class CancelRun(AsItIs):
    """Cancelled by the handler's own method."""

    async def cancel(self) -> None:
        """Ask the run to end."""
        await self.handler.cancel_run()


class OneCallATurn(CancelRun):
    """The model is asked for one call in each turn."""

    parallel = False
