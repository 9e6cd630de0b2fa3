"""A model of LlamaIndex that says what a test has written down."""

from collections.abc import Sequence
from typing import Any

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, LLMMetadata
from llama_index.core.llms.function_calling import FunctionCallingLLM
from llama_index.core.llms.llm import ToolSelection
from pydantic import PrivateAttr

Call = tuple[str, dict[str, Any]]


class Script(FunctionCallingLLM):
    """Asks for the calls of one response after the other, and then answers "done"."""

    _responses: list[Sequence[Call]] = PrivateAttr()
    _seen: list[Any] = PrivateAttr()

    def __init__(self, *responses: Sequence[Call]) -> None:
        super().__init__()
        self._responses = list(responses)
        self._seen = []

    @property
    def metadata(self) -> LLMMetadata:
        """What agents ask of a model."""
        return LLMMetadata(is_function_calling_model=True)

    async def astream_chat_with_tools(self, tools: Any, chat_history: Any = None, **named: Any) -> Any:
        """Stream the next response."""

        async def streamed() -> Any:
            yield await self.achat_with_tools(tools, chat_history=chat_history)

        return streamed()

    async def achat_with_tools(self, tools: Any, chat_history: Any = None, **named: Any) -> ChatResponse:
        """Give the next response."""
        self._seen.append(list(chat_history))
        calls = self._responses.pop(0) if self._responses else []
        selected = [
            ToolSelection(tool_id=f"call_{index}", tool_name=name, tool_kwargs=input)
            for index, (name, input) in enumerate(calls)
        ]
        message = ChatMessage(role="assistant", content="" if calls else "done", additional_kwargs={"calls": selected})
        return ChatResponse(message=message)

    def get_tool_calls_from_response(self, response: Any, *args: Any, **named: Any) -> Any:
        """The calls of a response."""
        return list(response.message.additional_kwargs.get("calls", []))

    def answers(self) -> list[Any]:
        """The results that the model was given last, in their order."""
        return [message.content for message in self._seen[-1] if message.role == "tool"]

    def _prepare_chat_with_tools(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError

    def _unused(self, *args: Any, **named: Any) -> Any:
        raise NotImplementedError

    chat = achat = complete = acomplete = stream_chat = astream_chat = stream_complete = astream_complete = _unused
