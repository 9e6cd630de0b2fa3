"""Responses that are refused: what is said, and where."""

import json
import re

import pytest

from toolrt.errors import DefinitionRefused, InputRefused
from toolrt.interop import MAX_NESTING, MAX_RESPONSE_BYTES, parse_response, read_response

USE = {"type": "tool_use", "id": "a", "name": "t", "input": {}}
FUNCTION_CALL = {"type": "function_call", "call_id": "a", "name": "t", "arguments": "{}"}
CHAT_CALL = {"id": "a", "type": "function", "function": {"name": "t", "arguments": "{}"}}
TEXT = {"type": "text", "text": "hello"}


class Message:
    """Looks like an SDK's object."""

    def model_dump(self) -> dict:
        return {"content": [USE]}


def without(item: dict, key: str) -> dict:
    return {other: value for other, value in item.items() if other != key}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        # Another shape
        pytest.param(None, "expected an object or an array, got null", id="null"),
        pytest.param("[]", "expected an object or an array, got a string", id="string"),
        pytest.param(7, "expected an object or an array, got a number", id="number"),
        pytest.param(True, "expected an object or an array, got a boolean", id="boolean"),
        pytest.param({}, "no response in a known format: an object with the keys (none)", id="empty-object"),
        pytest.param({"type": "error", "error": {}}, "an object with the keys type, error", id="error-body"),
        pytest.param({"output": "text"}, "an object with the keys output", id="output-no-array"),
        pytest.param([{"id": "a"}], "[0] has neither a type nor a name", id="neither-type-nor-name"),
        pytest.param([{"role": "user", "content": "hi"}], "a conversation, not a response", id="conversation"),
        pytest.param([USE, 7], "[1]: expected an object, got a number", id="list-of-other-things"),
        pytest.param({"content": [USE, "x"]}, "content[1]: expected an object, got a string", id="block-no-object"),
        pytest.param({"choices": [None]}, "choices[0]: expected an object, got null", id="choice-no-object"),
        pytest.param(
            {"choices": [{"delta": {}}]}, "choices[0].message: expected an object, got nothing", id="stream-chunk"
        ),
        pytest.param({"tool_calls": {}}, "tool_calls: expected an array, got an object", id="tool_calls-no-array"),
        # No calls
        pytest.param([], "there are no tool calls in it (the list has nothing)", id="empty-list"),
        pytest.param({"calls": []}, "there are no tool calls in it (calls has nothing)", id="empty-calls"),
        pytest.param({"choices": []}, "there are no tool calls in it (choices has nothing)", id="no-choices"),
        pytest.param({"content": "hi", "role": "assistant"}, "there are no tool calls in it", id="content-string"),
        pytest.param({"content": [TEXT, TEXT]}, "no tool calls in it (content has only text)", id="text-only"),
        pytest.param({"output": [{"type": "message"}]}, "(output has only message)", id="message-only"),
        pytest.param([TEXT], "there are no tool calls in it (the list has only text)", id="bare-text-only"),
        pytest.param(
            {"choices": [{"message": {"content": "hi", "tool_calls": None}}]},
            "no tool calls in it",
            id="chat-text-only",
        ),
        # Calls that could not be answered
        pytest.param(
            {"content": [TEXT, TEXT, TEXT, without(USE, "name")]},
            "content[3].name: expected a string, got nothing",
            id="anthropic-without-name",
        ),
        pytest.param([{**USE, "name": 7}], "[0].name: expected a string, got a number", id="name-no-string"),
        pytest.param([without(USE, "id")], "[0].id: expected a string, got nothing", id="anthropic-without-id"),
        pytest.param(
            {"output": [without(FUNCTION_CALL, "call_id")]},
            "output[0].call_id: expected a string, got nothing",
            id="responses-without-id",
        ),
        pytest.param(
            [without(FUNCTION_CALL, "name")], "[0].name: expected a string, got nothing", id="responses-without-name"
        ),
        pytest.param(
            {"choices": [{"message": {"tool_calls": [CHAT_CALL, without(CHAT_CALL, "function")]}}]},
            "choices[0].message.tool_calls[1].function: expected an object, got nothing",
            id="chat-without-function",
        ),
        pytest.param(
            {"tool_calls": [{**CHAT_CALL, "function": {}}]},
            "tool_calls[0].function.name: expected a string, got nothing",
            id="chat-without-name",
        ),
        pytest.param([without(CHAT_CALL, "id")], "[0].id: expected a string, got nothing", id="chat-without-id"),
        pytest.param(
            [{"id": "a", "type": "custom"}], "[0].custom: expected an object, got nothing", id="custom-without-custom"
        ),
        pytest.param(
            [{"name": "t"}, {"input": {}}], "[1].name: expected a string, got nothing", id="plain-without-name"
        ),
        pytest.param([{"name": "t", "id": 7}], "[0].id: expected a string, got a number", id="plain-id-no-string"),
        pytest.param(
            [{"name": "t", "id": ""}, {"name": ["t"]}], "[1].name: expected a string, got an array", id="plain"
        ),
        pytest.param([{"name": "t\ud800"}], "[0].name: half of a surrogate pair", id="name-not-utf-8"),
        pytest.param([{**USE, "id": "\udc00"}], "[0].id: half of a surrogate pair", id="id-not-utf-8"),
        pytest.param(
            {"output": [FUNCTION_CALL, {"type": "custom_tool_call", "call_id": "c"}]},
            "output[1] is a custom_tool_call, which no function's result can answer",
            id="other-kind-of-call",
        ),
        pytest.param([{"type": "computer_call", "call_id": "c"}], "[0] is a computer_call", id="bare-other-kind"),
        # More than one answer
        pytest.param(
            [{"name": "t", "input": {}, "arguments": {}}], "[0] has both input and arguments", id="input-and-arguments"
        ),
        pytest.param(
            {"choices": [{"message": {"tool_calls": [CHAT_CALL]}}] * 2},
            "tool calls in choices[0].message.tool_calls and choices[1].message.tool_calls",
            id="two-choices",
        ),
        pytest.param(
            {"content": [USE], "tool_calls": [CHAT_CALL]}, "tool calls in tool_calls and content", id="two-places"
        ),
        pytest.param(
            [USE, FUNCTION_CALL],
            "[1] is a call in the format openai-responses in a list of the format anthropic",
            id="two-formats",
        ),
        pytest.param(
            {"content": [FUNCTION_CALL]}, "content[0] is a call in the format openai-responses", id="wrong-place"
        ),
    ],
)
def test_response_is_refused(source: object, why: str) -> None:
    """A response of which a call could go unanswered is refused, saying where and why."""
    with pytest.raises(InputRefused, match=re.escape(why)):
        read_response(source)


def test_refusal_tells_a_remedy() -> None:
    """A refusal says what to do next."""
    with pytest.raises(InputRefused) as caught:
        read_response({"surprise": 1})
    assert "Give an Anthropic message" in caught.value.remedy


def test_sdk_object_is_refused_with_the_way_out() -> None:
    """An SDK's object is no JSON, and one call makes it that."""
    with pytest.raises(InputRefused) as caught:
        read_response(Message())
    assert "model_dump()" in caught.value.remedy


def test_long_keys_are_shortened() -> None:
    """A refusal stays readable whatever the file holds."""
    with pytest.raises(InputRefused) as caught:
        read_response({f"{index}" + "k" * 1_000: 1 for index in range(1_000)})
    assert len(str(caught.value)) < 700


# Text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("", "it is empty", id="empty"),
        pytest.param(b" \n\t", "it is empty", id="blank"),
        pytest.param(b"\xef\xbb\xbf", "it is empty", id="only-bom"),
        pytest.param("[1,\n  2,\n  oops]", "Expecting value at line 3, column 3", id="not-json"),
        pytest.param('[{"name": "a"}] {}', "Extra data at line 1, column 17", id="two-values"),
        pytest.param("[", "Expecting value at line 1, column 2", id="cut-off"),
        pytest.param(b'[{"name": "\xff"}]', "it is not UTF-8: byte 0xff at offset 11", id="not-utf-8"),
        pytest.param('[{"name": "\ud800"}]', "[0].name: half of a surrogate pair", id="string-not-utf-8"),
        pytest.param('[{"name": "a"}]'.encode("utf-16"), "it is UTF-16, not UTF-8", id="utf-16"),
        pytest.param('[{"name": "a", "input": {"n": NaN}}]', "NaN is not JSON, at [0].input.n", id="nan"),
        pytest.param("[1, -Infinity]", "-Infinity is not JSON, at [1]", id="infinity"),
        pytest.param('{"calls": [1e999]}', 'the number "1e999" is too large to hold, at calls[0]', id="too-large"),
        pytest.param("NaN", "NaN is not JSON", id="nan-alone"),
        pytest.param("[" + "NaN," * 200 + "0]", "the first of more than 100 flaws", id="many-flaws"),
        pytest.param("[" + "7" * 1_001 + "]", "an integer of 1,001 digits", id="many-digits"),
        pytest.param(
            '[{"name": "a", "input": {"path": "x", "path": "y"}}]',
            'the key "path" appears twice in one object, at [0].input',
            id="key-twice",
        ),
        pytest.param('{"a": {"b": 1, "b": 2}, "a": 0}', 'the key "a" appears twice', id="key-twice-in-one-dropped"),
        pytest.param('{"odd key": [NaN]}', 'NaN is not JSON, at ["odd key"][0]', id="odd-key"),
        pytest.param("[" * 100_000, "nested too deeply (more than 200 levels)", id="deep-and-open"),
        pytest.param(
            "[" * (MAX_NESTING + 1) + "]" * (MAX_NESTING + 1), "nested too deeply (more than 200 levels)", id="deep"
        ),
    ],
)
def test_text_is_refused(text: str | bytes, why: str) -> None:
    """A text without exactly one meaning is refused under its name, saying where and why."""
    with pytest.raises(InputRefused, match=re.escape(why)) as caught:
        parse_response(text, "answer.json")
    assert str(caught.value).startswith("answer.json: ")


@pytest.mark.parametrize("text", [[], {}, None, 5])
def test_what_is_no_text_is_refused_with_the_way_out(text: object) -> None:
    """What was decoded already is for `read_response`."""
    with pytest.raises(DefinitionRefused, match="read_response"):
        parse_response(text)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", ["", "  "])
def test_empty_arguments_are_none(arguments: str) -> None:
    """As some models call a function that has no parameters."""
    asked = [{"type": "function_call", "call_id": "c", "name": "now", "arguments": arguments}]
    assert parse_response(json.dumps(asked)).calls[0].input == {}


def test_refusal_in_a_text_carries_its_name() -> None:
    """A response that is JSON of another shape is refused under the file's name too."""
    with pytest.raises(InputRefused) as caught:
        parse_response("{}", "answer.json")
    assert caught.value.what == "answer.json"


def test_nesting_up_to_the_limit_is_read() -> None:
    """The limit itself is still read: the list, the call and its input are three levels of it."""
    inner = "[" * (MAX_NESTING - 3) + "]" * (MAX_NESTING - 3)
    assert parse_response(f'[{{"name": "a", "input": {{"x": {inner}}}}}]', "r.json").calls[0].name == "a"


def test_integer_up_to_the_limit_is_read() -> None:
    """An integer of 1,000 digits is read exactly."""
    digits = "7" * 1_000
    assert parse_response(f'[{{"name": "a", "input": {{"n": {digits}}}}}]', "r.json").calls[0].input["n"] == int(digits)


@pytest.mark.parametrize("text", ['[{"name": "a"}]', b'[{"name": "a"}]'])
def test_byte_order_mark_is_passed_over(text: str | bytes) -> None:
    """A byte order mark says nothing about the response."""
    marked = "\ufeff" + text if isinstance(text, str) else b"\xef\xbb\xbf" + text
    assert parse_response(marked, "r.json") == parse_response(text, "r.json")


def padded(size: int) -> str:
    text = json.dumps([{"name": "a"}])
    return text + " " * (size - len(text))


def test_text_of_the_largest_size_is_read() -> None:
    """The size limit is itself allowed."""
    assert parse_response(padded(MAX_RESPONSE_BYTES), "r.json").calls[0].name == "a"


@pytest.mark.parametrize("convert", [str, str.encode], ids=["str", "bytes"])
def test_text_over_the_size_limit_is_refused(convert) -> None:
    """One byte above the limit is too much, and the limit is named."""
    with pytest.raises(InputRefused, match="larger than the limit of 33,554,432 bytes"):
        parse_response(convert(padded(MAX_RESPONSE_BYTES + 1)), "r.json")


def test_size_limit_counts_bytes_of_a_string() -> None:
    """A string is as large as its UTF-8."""
    with pytest.raises(InputRefused, match="larger than the limit"):
        parse_response('[{"name": "' + "é" * (MAX_RESPONSE_BYTES // 2) + '"}]', "r.json")
