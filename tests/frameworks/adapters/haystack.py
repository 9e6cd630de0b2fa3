"""Haystack: an Agent with a chat generator."""

from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.components.agents.state import State
from haystack.dataclasses import ChatMessage, ToolCall
from haystack.tools import Tool

from tests.frameworks.adapters._common import Answers, function_of, turns


@component
class _Generator:
    def __init__(self, calls: Any) -> None:
        self._asked = turns(calls, one_a_turn=False)

    @component.output_types(replies=list[ChatMessage])
    def run(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        """Ask for the calls."""
        calls = [ToolCall(call.name, call.input, id=call.call_id) for call in next(self._asked)]
        return {"replies": [ChatMessage.from_assistant(None if calls else "done", tool_calls=calls)]}

    @component.output_types(replies=list[ChatMessage])
    async def run_async(self, messages: list[ChatMessage], tools: Any = None) -> dict[str, Any]:
        """Ask for the calls."""
        return self.run(messages, tools)


class AsItIs:
    """An agent as it is."""

    options: dict[str, Any] = {}  # noqa: RUF012

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        agent = Agent(chat_generator=_Generator(calls), tools=[self.tool(tool) for tool in tools], **self.options)
        done = await agent.run_async([ChatMessage.from_user("go")])
        results = [one.tool_call_result for one in done["messages"] if one.tool_call_result]
        return [(one.origin.id, one.result, one.error) for one in results]

    def tool(self, tool: Any) -> Tool:
        """One of the agent's tools."""
        return Tool(tool.name, tool.description, tool.schema, async_function=function_of(tool))


class OneAtOnce(AsItIs):
    """One call at once."""

    options = {"tool_concurrency_limit": 1}  # noqa: RUF012


class KeyOfState(AsItIs):
    """The files are a key of the agent's state: writers have it as an input and an output, readers as an input."""

    options = {"state_schema": {"files": {"type": str}}}  # noqa: RUF012

    def tool(self, tool: Any) -> Tool:
        """A tool that says whether it reads and writes the files."""
        function = function_of(tool)
        reads, writes = tool.name not in ("search", "fail"), not tool.safe

        async def with_files(files: str = "", **input: str) -> Any:
            text = await function(**input)
            return {"text": text, "files": ""} if writes else text

        return Tool(
            tool.name,
            tool.description,
            tool.schema,
            async_function=with_files,
            inputs_from_state={"files": "files"} if reads else None,
            outputs_to_state={"files": {"source": "files"}} if writes else None,
            outputs_to_string={"source": "text"} if writes else None,
        )


class StateParameter(AsItIs):
    """Every tool takes the whole state as a parameter."""

    options = {"state_schema": {"files": {"type": str}}}  # noqa: RUF012

    def tool(self, tool: Any) -> Tool:
        """A tool that may read and write any key."""
        function = function_of(tool)

        async def with_path(state: State, note: str, path: str) -> str:
            return await function(note=note, path=path)

        async def with_note(state: State, note: str) -> str:
            return await function(note=note)

        chosen = with_path if "path" in tool.schema["properties"] else with_note
        return Tool(tool.name, tool.description, tool.schema, async_function=chosen)
