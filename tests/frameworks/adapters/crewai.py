"""CrewAI: an Agent, whose tools run in threads."""

import asyncio
import json
from typing import Any

from crewai import Agent
from crewai.llms.base_llm import BaseLLM
from crewai.tools import tool as crewai_tool

from tests.frameworks.adapters._common import Answers, blocking_of, turns

#: How the agent's own text for a tool that failed begins; an answer has no other sign of an error.
_ERROR = "Error executing tool"


class _Model(BaseLLM):
    asked: Any = None
    shown: Any = None

    def call(self, messages: Any, *args: Any, **kwargs: Any) -> Any:
        self.shown = [one for one in messages if one.get("role") == "tool"]
        calls = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.input)},
            }
            for call in next(self.asked)
        ]
        return calls or "Final Answer: done"

    def supports_function_calling(self) -> bool:
        return True


class AsItIs:
    """An agent as it is."""

    limit: int | None = None

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the agent until the model asks for nothing; its tools run in threads, async ones in other loops."""
        loop = asyncio.get_running_loop()
        made = [crewai_tool(tool.name, max_usage_count=self.limit)(blocking_of(tool, loop)) for tool in tools]
        model = _Model(model="fake")
        model.asked = turns(calls, one_a_turn=False)
        agent = Agent(role="a", goal="b", backstory="c", llm=model, tools=made, cache=False, verbose=False)
        await agent.kickoff_async("go")
        return [(one["tool_call_id"], one["content"], one["content"].startswith(_ERROR)) for one in model.shown]


class Limited(AsItIs):
    """Every tool may be used so many times, which makes calls run in turn."""

    limit = 99
