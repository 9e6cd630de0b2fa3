"""smolagents: a ToolCallingAgent in a worker thread, its tools in threads of its own."""

import asyncio
from typing import Any

import smolagents
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model

from tests.frameworks.adapters._common import Answers, blocking_of, turns

#: Providers' ids are not in the order of the calls as text; so are these.
_FIRST = 9


def _id(call_id: str) -> str:
    return f"id_{_FIRST + int(call_id.removeprefix('call_'))}"


class _Model(Model):
    def __init__(self, calls: Any) -> None:
        super().__init__()
        self._asked = turns(calls, one_a_turn=False)

    def generate(self, *args: Any, **kwargs: Any) -> ChatMessage:
        calls = [(_id(call.call_id), call.name, call.input) for call in next(self._asked)]
        asked = [
            ChatMessageToolCall(
                id=call_id, type="function", function=ChatMessageToolCallFunction(name=name, arguments=arguments)
            )
            for call_id, name, arguments in calls or [("id_0", "final_answer", {"answer": "done"})]
        ]
        return ChatMessage(role=MessageRole.ASSISTANT, content="", tool_calls=asked)


class AsItIs:
    """An agent as it is."""

    threads: int | None = None
    not_applicable = dict.fromkeys(
        ("cancel_truthful", "nothing_left_after_cancel"),
        "it has no async run; `interrupt()` is looked at before the next step",
    )

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent in a thread until the model gives its final answer."""
        loop = asyncio.get_running_loop()
        agent = smolagents.ToolCallingAgent(
            tools=[_of(tool, loop) for tool in tools],
            model=_Model(calls),
            max_tool_threads=self.threads,
            verbosity_level=smolagents.LogLevel.OFF,
        )
        await asyncio.to_thread(agent.run, "go", max_steps=2)
        step = next(one for one in agent.memory.steps if isinstance(one, smolagents.ActionStep))
        if step.error is not None:  # one error for the step; it names the tool and its arguments
            text = step.error.message
            return [
                (call.call_id, text, True) for call in calls if f"'{call.name}' with arguments {call.input}" in text
            ]
        lines = (step.observations or "").splitlines()
        order = [one.id for one in step.tool_calls or []]
        back = {_id(call.call_id): call.call_id for call in calls}
        return [(back[call_id], line, False) for call_id, line in zip(order, lines, strict=True)]


class OneThread(AsItIs):
    """One thread for tools."""

    threads = 1


def _of(tool: Any, loop: Any) -> smolagents.Tool:
    """A tool that waits in its thread for what it does on the loop."""
    function = blocking_of(tool, loop)
    if "path" in tool.schema["properties"]:

        def forward(self: Any, note: str, path: str) -> str:
            return function(note, path)

    else:

        def forward(self: Any, note: str) -> str:  # type: ignore[misc]
            return function(note)

    inputs = {name: {"type": "string", "description": name} for name in tool.schema["properties"]}
    fields = {
        "name": tool.name,
        "description": tool.description,
        "inputs": inputs,
        "output_type": "string",
        "forward": forward,
    }
    made: smolagents.Tool = type("Tool_" + tool.name, (smolagents.Tool,), fields)()
    return made
