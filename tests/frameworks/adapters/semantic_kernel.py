"""Semantic Kernel: a ChatCompletionAgent with a chat completion service."""

import json
from typing import Any

from semantic_kernel import Kernel
from semantic_kernel.connectors.ai.chat_completion_client_base import ChatCompletionClientBase
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.prompt_execution_settings import PromptExecutionSettings
from semantic_kernel.contents import (
    AuthorRole,
    ChatHistory,
    ChatMessageContent,
    FunctionCallContent,
    FunctionResultContent,
)
from semantic_kernel.functions import kernel_function

from tests.frameworks.adapters._common import Answers, function_of, turns

#: How the kernel's own text for a function that failed begins; an answer has no other sign of an error.
_ERROR = "An error occurred while invoking the function"


class _Service(ChatCompletionClientBase):
    SUPPORTS_FUNCTION_CALLING = True
    asked: Any

    async def _inner_get_chat_message_contents(self, chat_history: Any, settings: Any) -> Any:
        items = [
            FunctionCallContent(
                id=call.call_id, plugin_name="p", function_name=call.name, arguments=json.dumps(call.input)
            )
            for call in next(self.asked)
        ]
        return [ChatMessageContent(role=AuthorRole.ASSISTANT, items=items, content=None if items else "done")]

    def _update_function_choice_settings_callback(self) -> Any:
        return lambda *args, **kwargs: None

    def _reset_function_choice_settings(self, settings: Any) -> None:
        pass


class AsItIs:
    """A kernel as it is."""

    one_a_turn = False

    async def execute(self, tools: Any, calls: Any) -> Answers:
        """Let the service invoke functions until the model asks for nothing."""
        kernel = Kernel()
        functions = [kernel_function(function_of(tool), name=tool.name) for tool in tools]
        kernel.add_plugin({function.__kernel_function_name__: function for function in functions}, "p")
        service = _Service(ai_model_id="fake", asked=turns(calls, self.one_a_turn))
        behavior = FunctionChoiceBehavior.Auto()
        behavior.maximum_auto_invoke_attempts = len(calls) + 1
        history = ChatHistory()
        await service.get_chat_message_contents(
            history, PromptExecutionSettings(function_choice_behavior=behavior), kernel=kernel
        )
        items = [item for message in history.messages for item in message.items]
        results = [item for item in items if isinstance(item, FunctionResultContent)]
        return [(one.id, str(one.result), str(one.result).startswith(_ERROR)) for one in results]


class OneCallATurn(AsItIs):
    """The model is asked for one call in each turn."""

    one_a_turn = True
