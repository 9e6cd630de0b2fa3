"""Agents with a model that asks for given calls, and then ends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

Call = tuple[str, dict[str, Any]]


def model_of(*responses: Sequence[Call]) -> FunctionModel:
    """A model whose responses make these calls, one list after another; then it says "done"."""

    def speak(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn >= len(responses):
            return ModelResponse([TextPart("done")])
        calls = [ToolCallPart(name, input, f"{turn}.{index}") for index, (name, input) in enumerate(responses[turn])]
        return ModelResponse(calls)

    return FunctionModel(speak)


def returns(messages: Sequence[ModelMessage]) -> list[tuple[str, Any]]:
    """Call id and content of each tool's answer, in order."""
    return [
        (part.tool_call_id, part.content)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    ]
