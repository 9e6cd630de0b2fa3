"""LangGraph: a graph of one ToolNode, and the prebuilt agent."""

import warnings
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import StructuredTool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, create_react_agent

from tests.frameworks.adapters._common import Answers, function_of, turns

warnings.filterwarnings("ignore", message="create_react_agent has been moved")


class Node:
    """A ToolNode as it is."""

    options: dict[str, Any] = {}  # noqa: RUF012

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run the node on one message."""
        graph = StateGraph(MessagesState)
        graph.add_node("tools", ToolNode(_tools(tools), **self.options))
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        return _answers(await graph.compile().ainvoke({"messages": [_asks(calls)]}))


class NodeWithErrors(Node):
    """A ToolNode that answers errors."""

    options = {"handle_tool_errors": True}  # noqa: RUF012


class _Model(BaseChatModel):
    asked: Any
    settings: dict[str, Any] = {}  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **settings: Any) -> Any:
        return self.model_copy(update={"settings": settings})

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=_asks(next(self.asked)))])

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return self._generate(*args, **kwargs)


class Agent:
    """The prebuilt agent, which sends each call to a task of its own."""

    config: dict[str, Any] = {}  # noqa: RUF012
    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Run it until the model asks for nothing."""
        node = ToolNode(_tools(tools), handle_tool_errors=True)
        model = _Model(asked=turns(calls, self.one_a_turn))
        agent = create_react_agent(model.bind_tools([], parallel_tool_calls=not self.one_a_turn), node)
        return _answers(await agent.ainvoke({"messages": [("user", "go")]}, self.config))


class OneTask(Agent):
    """At most one task at once."""

    config = {"max_concurrency": 1}  # noqa: RUF012


class OneCallATurn(Agent):
    """The model is asked for one call in each turn."""

    one_a_turn = True


def _tools(tools: Any) -> list[Any]:
    return [StructuredTool.from_function(coroutine=function_of(tool), name=tool.name) for tool in tools]


def _asks(calls: Any) -> AIMessage:
    asked = [{"name": call.name, "args": call.input, "id": call.call_id, "type": "tool_call"} for call in calls]
    return AIMessage("" if asked else "done", tool_calls=asked)


def _answers(state: Any) -> Answers:
    found = [one for one in state["messages"] if isinstance(one, ToolMessage)]
    return [(one.tool_call_id, one.content, one.status == "error") for one in found]
