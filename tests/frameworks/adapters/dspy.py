"""DSPy: a ReActV2 module with a model that gives scripted answers."""

import json
from typing import Any

import dspy
from dspy.utils.dummies import DummyLM

from tests.frameworks.adapters._common import Answers, function_of


class AsItIs:
    """A module as it is."""

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the module until the model submits."""
        script = [
            [{"id": call.call_id, "name": call.name, "args": call.input} for call in calls],
            [{"name": "submit", "args": {"answer": "done"}}],
        ]
        model = DummyLM([{"next_thought": "", "tool_calls": json.dumps({"tool_calls": asked})} for asked in script])
        module = dspy.ReActV2("question -> answer", tools=[function_of(tool) for tool in tools])
        with dspy.context(lm=model, adapter=dspy.ChatAdapter()):
            done = await module.acall(question="go")
        found = done.history.messages[0]["tool_calls"].tool_call_results.tool_call_results
        return [(one.call_id, one.value, one.is_error) for one in found]
