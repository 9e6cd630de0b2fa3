"""AG2: an Agent with a client that gives scripted turns."""

import json
from typing import Any

from ag2 import Agent
from ag2.events import ToolCallEvent, ToolErrorEvent, ToolResultsEvent
from ag2.testing import TestConfig
from ag2.tools import tool as ag2_tool

from tests.frameworks.adapters._common import Answers, function_of


class AsItIs:
    """An agent as it is."""

    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing."""
        asked = [ToolCallEvent(call.name, id=call.call_id, arguments=json.dumps(call.input)) for call in calls]
        script = asked if self.one_a_turn else [asked]
        model = TestConfig(*script, "done", raise_tool_errors=False)
        agent = Agent("a", config=model, tools=[ag2_tool(function_of(tool)) for tool in tools])
        reply = await agent.ask("go")
        events = await reply.history.get_events()
        results = [one for event in events if isinstance(event, ToolResultsEvent) for one in event.results]
        return [(one.parent_id, one.result.parts[0].content, isinstance(one, ToolErrorEvent)) for one in results]


class OneCallATurn(AsItIs):
    """The model is asked for one call in each turn."""

    one_a_turn = True
