"""Our plain dictionaries are what the providers' SDKs send and receive."""

import importlib
from collections.abc import Callable
from types import ModuleType

import pytest

from toolrt.interop import read_response, render_results, render_tools
from toolrt.model import File, Image, Outcome, ToolCall, ToolResult, tool

pydantic = pytest.importorskip("pydantic", reason="pydantic, which both SDKs bring, is not installed")

RESULTS = [
    ToolResult("a", 0, "lookup", Outcome.OK, "text"),
    ToolResult("b", 1, "lookup", Outcome.ERROR, {"part": 1}, "it failed"),
    ToolResult(
        "c", 2, "lookup", Outcome.OK, ["a", Image(b"png", "image/png"), File(b"%PDF", "application/pdf"), File(b"x")]
    ),
]


@tool(schema={"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]})
async def lookup(ctx: object, key: str) -> str:
    """Find what a key stands for."""
    return key


def sdk(module: str) -> ModuleType:
    """A module of an SDK, or a skip that says which is missing."""
    package = module.partition(".")[0]
    pytest.importorskip(package, reason=f"the {package} SDK is not installed")
    return importlib.import_module(module)


def test_anthropic_message_is_read() -> None:
    """What the SDK makes of a message is read with every field it has."""
    types = sdk("anthropic.types")
    message = types.Message.model_validate(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": [
                {"type": "text", "text": "Looking."},
                {"type": "tool_use", "id": "a", "name": "lookup", "input": {"key": "k"}},
            ],
            "stop_reason": "tool_use",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
    )
    assert read_response(message.model_dump()).calls == (ToolCall("a", "lookup", {"key": "k"}),)


def test_openai_response_items_are_read() -> None:
    """What the SDK makes of a function call is read with every field it has."""
    types = sdk("openai.types.responses")
    item = types.ResponseFunctionToolCall(
        type="function_call", id="fc_1", call_id="a", name="lookup", arguments='{"key": "k"}', status="completed"
    )
    assert read_response({"output": [item.model_dump()]}).calls == (ToolCall("a", "lookup", {"key": "k"}),)


def test_openai_chat_message_is_read() -> None:
    """What the SDK makes of a chat message is read with every field it has."""
    types = sdk("openai.types.chat")
    message = types.ChatCompletionMessage.model_validate(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "lookup", "arguments": '{"key": "k"}'}}
            ],
        }
    )
    dumped = {"choices": [{"index": 0, "message": message.model_dump()}]}
    assert read_response(dumped).calls == (ToolCall("a", "lookup", {"key": "k"}),)


def of_anthropic() -> list[dict]:
    rendered = render_results(RESULTS, "anthropic")
    assert isinstance(rendered, dict)
    return rendered["content"]


RESPONSES = "openai.types.responses"


@pytest.mark.parametrize(
    ("module", "type_", "made"),
    [
        ("anthropic.types", "ToolResultBlockParam", of_anthropic),
        ("anthropic.types", "ToolParam", lambda: render_tools([lookup], "anthropic")),
        (f"{RESPONSES}.response_input_param", "FunctionCallOutput", lambda: render_results(RESULTS, "openai")),
        (RESPONSES, "FunctionToolParam", lambda: render_tools([lookup], "openai")),
        ("openai.types.chat", "ChatCompletionToolMessageParam", lambda: render_results(RESULTS, "chat")),
        ("openai.types.chat", "ChatCompletionFunctionToolParam", lambda: render_tools([lookup], "chat")),
    ],
)
def test_what_is_rendered_fits(module: str, type_: str, made: Callable[[], list[dict]]) -> None:
    """Each item is of the SDK's request type, has all that is required, and no key of it is unknown there."""
    adapter = pydantic.TypeAdapter(getattr(sdk(module), type_))
    items = made()
    assert items
    for item in items:
        assert adapter.dump_python(adapter.validate_python(item, extra="forbid"), mode="json") == item
