"""Graphs of one tool node, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from langchain_core.messages import AIMessage, AnyMessage
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages


class State(TypedDict, total=False):
    messages: Annotated[list[AnyMessage], add_messages]
    user: str


def graph_of(node: Any, **compiled: Any) -> Any:
    """A graph that runs `node` once."""
    graph = StateGraph(State)
    graph.add_node("tools", node)
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    return graph.compile(**compiled)


def asks(*calls: tuple[str, dict[str, Any]], ids: Sequence[str] | None = None) -> dict[str, Any]:
    """A state whose last message makes these calls."""
    made = [
        {"name": name, "args": input, "id": f"call_{index}" if ids is None else ids[index], "type": "tool_call"}
        for index, (name, input) in enumerate(calls)
    ]
    return {"messages": [AIMessage("", tool_calls=made)]}


def answers(state: dict[str, Any]) -> list[tuple[str, str]]:
    """Call id and content of each answer, in order."""
    return [(message.tool_call_id, message.content) for message in state["messages"][1:]]
