"""Responses that are understood: each provider's shapes, and what becomes of a call that is wrong in itself."""

import json

import pytest

from toolrt.interop import Response, parse_response, read_response
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


@pytest.mark.parametrize("wrap", [anthropic_blocks, responses_items, chat_calls, plain_calls])
def test_duplicate_ids_are_both_kept(wrap) -> None:
    """Two calls of one id are two calls."""
    twins = (ToolCall("same", "first", {}), ToolCall("same", "second", {}))
    assert read_response(wrap(*twins)).calls == twins


def test_text_is_read_like_its_value() -> None:
    """Parsing the text of a response is reading its value."""
    source = {"content": anthropic_blocks(*CALLS)}
    assert parse_response(json.dumps(source), "r.json") == read_response(source)


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


def test_plain_call_without_id_is_named_by_its_place() -> None:
    """A missing id is made up from the place in the list."""
    source = [{"name": "a", "input": {}}, {"name": "b", "id": None, "input": {}}]
    assert [call.call_id for call in read_response(source).calls] == ["call_0", "call_1"]


def test_plain_call_takes_id_for_call_id() -> None:
    """An id may be called id."""
    assert read_response([{"id": "x", "name": "a"}]).calls[0].call_id == "x"


def test_plain_call_prefers_call_id() -> None:
    """As in the Responses API, call_id is what a result answers to."""
    assert read_response([{"id": "x", "call_id": "y", "name": "a"}]).calls[0].call_id == "y"


def test_plain_call_without_input_has_an_empty_one() -> None:
    """A call without arguments need not say so."""
    assert read_response([{"name": "a"}]).calls[0].input == {}


@pytest.mark.parametrize("arguments", [{"n": 1}, '{"n": 1}'])
def test_plain_call_takes_arguments_for_input(arguments: object) -> None:
    """Arguments are an input, also as the JSON text that OpenAI writes."""
    assert read_response([{"name": "a", "arguments": arguments}]).calls[0].input == {"n": 1}


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


@pytest.mark.parametrize("value", [None, True, 7, "text", ["list"]])
def test_anthropic_input_of_a_wrong_type_goes_on(value: object) -> None:
    """An input that is no object is the fault of its call."""
    source = [{"type": "tool_use", "id": "a", "name": "t", "input": value}]
    assert read_response(source).calls == (ToolCall("a", "t", value),)


@pytest.mark.parametrize("value", [None, True, 7, ["list"]])
def test_openai_arguments_of_a_wrong_type_go_on(value: object) -> None:
    """Arguments that are no text are the fault of their call."""
    source = [{"type": "function_call", "call_id": "a", "name": "t", "arguments": value}]
    assert read_response(source).calls == (ToolCall("a", "t", value),)


def test_missing_input_goes_on_as_none() -> None:
    """A provider's call without any input is the fault of that call: None is no object."""
    assert read_response([{"type": "tool_use", "id": "a", "name": "t"}]).calls[0].input is None


def test_arguments_that_are_json_but_no_object_go_on_parsed() -> None:
    """The runtime says what kind of value it got instead of an object."""
    source = [{"type": "function_call", "call_id": "a", "name": "t", "arguments": "[1, 2]"}]
    assert read_response(source).calls[0].input == [1, 2]


def test_custom_chat_call_goes_on_with_its_text() -> None:
    """Free text for a custom tool is no object, and its call can be answered like any other."""
    source = [{"id": "a", "type": "custom", "custom": {"name": "t", "input": "free text"}}]
    assert read_response(source).calls == (ToolCall("a", "t", "free text"),)


def test_empty_name_goes_on() -> None:
    """A name that no tool has, the empty one too, is the fault of its call."""
    assert read_response([{"name": ""}]).calls[0].name == ""
