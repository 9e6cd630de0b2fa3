"""Responses that are understood: each provider's shapes, and what becomes of a call that is wrong in itself."""

import json

import pytest

from toolrt.interop import Response, read_response
from toolrt.model import ToolCall

CALLS = (ToolCall("a", "read_file", {"path": "x.py"}), ToolCall("b", "write_file", {"path": "y", "content": ""}))


def anthropic_blocks(*calls: ToolCall) -> list[dict]:
    return [{"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.input} for call in calls]


def responses_items(*calls: ToolCall) -> list[dict]:
    return [
        {
            "type": "function_call",
            "id": f"fc_{index}",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": json.dumps(call.input),
        }
        for index, call in enumerate(calls)
    ]


def chat_calls(*calls: ToolCall) -> list[dict]:
    return [
        {
            "id": call.call_id,
            "type": "function",
            "function": {"name": call.name, "arguments": json.dumps(call.input)},
        }
        for call in calls
    ]


def plain_calls(*calls: ToolCall) -> list[dict]:
    return [{"call_id": call.call_id, "name": call.name, "input": call.input} for call in calls]


def chat_completion(message: dict, *others: dict) -> dict:
    return {"choices": [{"index": 0, "message": one, "finish_reason": "tool_calls"} for one in (message, *others)]}


TEXT = {"type": "text", "text": "I will look."}
REASONING = {"type": "reasoning", "summary": []}


@pytest.mark.parametrize(
    ("source", "format"),
    [
        pytest.param({"role": "assistant", "content": [TEXT, *anthropic_blocks(*CALLS)]}, "anthropic", id="message"),
        pytest.param([TEXT, *anthropic_blocks(*CALLS)], "anthropic", id="content"),
        pytest.param({"output": [REASONING, *responses_items(*CALLS)]}, "openai-responses", id="response"),
        pytest.param([REASONING, *responses_items(*CALLS)], "openai-responses", id="output"),
        pytest.param(
            chat_completion({"content": None, "tool_calls": chat_calls(*CALLS)}), "openai-chat", id="completion"
        ),
        pytest.param({"role": "assistant", "tool_calls": chat_calls(*CALLS)}, "openai-chat", id="chat-message"),
        pytest.param(
            {"role": "assistant", "content": [TEXT], "tool_calls": chat_calls(*CALLS)},
            "openai-chat",
            id="chat-message-with-parts",
        ),
        pytest.param(chat_calls(*CALLS), "openai-chat", id="tool_calls"),
        pytest.param(plain_calls(*CALLS), "calls", id="list"),
        pytest.param({"calls": plain_calls(*CALLS)}, "calls", id="calls"),
    ],
)
def test_shape_is_understood(source: object, format: str) -> None:
    """Every documented shape gives the same calls in the same order, and is named as its format."""
    assert read_response(source) == Response(CALLS, format)


def test_ten_thousand_calls_are_read() -> None:
    """No number of calls is refused here."""
    calls = tuple(ToolCall(f"c{index}", "read_file", {"path": str(index)}) for index in range(10_000))
    assert read_response(anthropic_blocks(*calls)).calls == calls


def test_server_tool_use_is_passed_over() -> None:
    """What the provider ran itself is no call of ours."""
    source = [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}, *anthropic_blocks(*CALLS)]
    assert read_response(source).calls == CALLS


def test_hosted_shell_call_with_output_is_passed_over() -> None:
    """A call whose output stands in the same response asks nothing of us."""
    shell = [{"type": "shell_call", "call_id": "s"}, {"type": "shell_call_output", "call_id": "s"}]
    assert read_response({"output": [*shell, *responses_items(*CALLS)]}).calls == CALLS


def test_one_choice_with_calls_is_taken() -> None:
    """Of several alternatives, the only one that calls tools is meant."""
    source = chat_completion({"content": "no"}, {"content": None, "tool_calls": chat_calls(*CALLS)})
    assert read_response(source).calls == CALLS


# Plain calls


@pytest.mark.parametrize(
    ("written", "call"),
    [
        ({"name": "a"}, ToolCall("call_0", "a", {})),
        ({"name": "a", "id": None}, ToolCall("call_0", "a", {})),
        ({"name": ""}, ToolCall("call_0", "", {})),
        ({"name": "a", "id": "x"}, ToolCall("x", "a", {})),
        ({"name": "a", "id": "x", "call_id": "y"}, ToolCall("y", "a", {})),
        ({"name": "a", "arguments": {"n": 1}}, ToolCall("call_0", "a", {"n": 1})),
        ({"name": "a", "arguments": '{"n": 1}'}, ToolCall("call_0", "a", {"n": 1})),
    ],
    ids=lambda value: ",".join(value) if isinstance(value, dict) else "",
)
def test_plain_call_may_be_written_in_these_ways(written: dict, call: ToolCall) -> None:
    """Its place stands for a missing id, `call_id` comes before `id`, and any text is a name; it needs no input."""
    second = {"name": "b", "input": {}}
    assert read_response([written, second]).calls == (call, ToolCall("call_1", "b", {}))


def test_plain_call_under_calls_may_carry_any_type() -> None:
    """Under the key calls every element is a call."""
    assert read_response({"calls": [{"type": "tool_call", "name": "a"}]}).calls[0].name == "a"


# Faults that stay with their call


@pytest.mark.parametrize(
    "arguments",
    [
        "{",
        '{"n": 1',
        "{'n': 1}",
        '{"n": NaN}',
        '{"n": 1, "n": 2}',
        '{"n": 1e999}',
        "[" * 5_000,
        "[" * 201 + "]" * 201,
    ],
    ids=["brace", "cut-off", "quotes", "nan", "twice", "infinite", "unclosed", "too-deep"],
)
@pytest.mark.parametrize("shape", ["responses", "chat"])
def test_arguments_that_are_not_json_go_on_as_text(shape: str, arguments: str) -> None:
    """Arguments that cannot be read are the fault of their call: its input is the text itself."""
    if shape == "responses":
        source: list[dict] = [{"type": "function_call", "call_id": "a", "name": "t", "arguments": arguments}]
        source += responses_items(*CALLS)
    else:
        source = [{"id": "a", "type": "function", "function": {"name": "t", "arguments": arguments}}]
        source += chat_calls(*CALLS)
    assert read_response(source).calls == (ToolCall("a", "t", arguments), *CALLS)


ANTHROPIC = {"type": "tool_use", "id": "a", "name": "t"}
OPENAI = {"type": "function_call", "call_id": "a", "name": "t"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        *(({**ANTHROPIC, "input": value}, value) for value in (None, True, 7, "text", ["list"])),
        *(({**OPENAI, "arguments": value}, value) for value in (None, True, 7, ["list"])),
        (ANTHROPIC, None),
        ({**OPENAI, "arguments": "[1, 2]"}, [1, 2]),
        ({"id": "a", "type": "custom", "custom": {"name": "t", "input": "free text"}}, "free text"),
    ],
)
def test_input_that_is_no_object_goes_on(written: dict, value: object) -> None:
    """It is the fault of its call, and the runtime says what came instead; a missing one is None."""
    assert read_response([written]).calls == (ToolCall("a", "t", value),)
